"""The log: lines of JSON in the data directory, warnings for whoever watches."""

import json
import logging
import sys
import time
from logging.handlers import RotatingFileHandler
from pathlib import Path

from clew.server.datadir import told

_LARGEST = 5 * 1024 * 1024
_KEPT = 3


class Lines(logging.Formatter):
    """One object on one line. The token is in none of them, whatever an error says."""

    def __init__(self, secret: str) -> None:
        super().__init__()
        self._secret = secret

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "of": record.name,
            "words": record.getMessage(),
        }
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False).replace(self._secret, "***")


class Warnings(logging.Formatter):
    def __init__(self, secret: str) -> None:
        super().__init__("clew: %(message)s")
        self._secret = secret

    def format(self, record: logging.LogRecord) -> str:
        # The trace is in the file.
        return f"clew: {record.getMessage()}".replace(self._secret, "***")


def keep_log(directory: Path, secret: str) -> None:
    try:
        file = RotatingFileHandler(directory / "clew.log", maxBytes=_LARGEST, backupCount=_KEPT, encoding="utf-8")
    except OSError as fault:
        raise told(fault, directory) from fault
    file.setFormatter(Lines(secret))
    file.setLevel(logging.INFO)
    shown = logging.StreamHandler(sys.stderr)
    shown.setFormatter(Warnings(secret))
    shown.setLevel(logging.WARNING)
    root = logging.getLogger()
    root.handlers[:] = [file, shown]
    root.setLevel(logging.INFO)
    # A disk that is full must not fill the screen as well.
    logging.raiseExceptions = False
