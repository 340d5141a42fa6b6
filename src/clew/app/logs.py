"""What a server prints: its log (JSON lines in the data directory, warnings on the terminal), and its notices.

The token is masked in the log and on the terminal.
"""

import json
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

from clew.server.data_dir import file_fault

_MAX_BYTES = 5 * 1024 * 1024
_OLD_FILES = 3


class _MaskedLines(logging.Formatter):
    """Lines as `text` makes them of a record, without the secret."""

    def __init__(self, secret: str, text: Callable[[logging.LogRecord], str]) -> None:
        super().__init__()
        self._secret = secret
        self._text = text

    def format(self, record: logging.LogRecord) -> str:
        return self._text(record).replace(self._secret, "***")


def _json_line(record: logging.LogRecord) -> str:
    line: dict[str, object] = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
        "level": record.levelname.lower(),
        "of": record.name,
        "words": record.getMessage(),
    }
    if record.exc_info:
        line["trace"] = logging.Formatter().formatException(record.exc_info)
    return json.dumps(line, ensure_ascii=False)


def _terminal_line(record: logging.LogRecord) -> str:
    """Without the traceback, which is in the file."""
    return f"clew: {record.getMessage()}"


def start_logging(directory: Path, secret: str) -> None:
    try:
        file = RotatingFileHandler(
            directory / "clew.log", maxBytes=_MAX_BYTES, backupCount=_OLD_FILES, encoding="utf-8"
        )
    except OSError as fault:
        raise file_fault(fault, directory) from fault
    file.setFormatter(_MaskedLines(secret, _json_line))
    file.setLevel(logging.INFO)
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setFormatter(_MaskedLines(secret, _terminal_line))
    terminal.setLevel(logging.WARNING)
    root = logging.getLogger()
    root.handlers[:] = [file, terminal]
    root.setLevel(logging.INFO)
    # With a full disk, logging would print a traceback for every line.
    logging.raiseExceptions = False


@dataclass(frozen=True, slots=True)
class Ready:
    address: str
    link: str
    data: Path
    database: str


@dataclass(frozen=True, slots=True)
class FoundAgents:
    """Installed agent programs with their versions, and the names of the configured agents."""

    installed: tuple[tuple[str, str], ...]
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stopping:
    live: int
    message: str


Notice = Ready | FoundAgents | Stopping
