"""The taps as whoever plays a round sees them: told when a word passes, and told what to do with it."""

import socket
import sys
import threading
import time
from pathlib import Path

_TAPS = Path(__file__).parent / "taps"


class Taps:
    """Made for one ground; `environment` and `before` go into the settings of its agents."""

    def __init__(self, root: Path, over_http: bool) -> None:
        self._rules = root / "rules"
        for kind in ("hold", "drop", "trouble"):
            (self._rules / kind).mkdir(parents=True)
        self._ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._ear.bind(("127.0.0.1", 0))
        self._out: dict[str, float] = {}
        self._changed = threading.Condition()
        self._script = _TAPS / ("wire.py" if over_http else "pipe.py")
        self._thread = threading.Thread(target=self._hear, name="taps")
        self._thread.start()

    @property
    def environment(self) -> dict[str, str]:
        return {"BOUNDARY_EAR": str(self._ear.getsockname()[1]), "BOUNDARY_RULES": str(self._rules)}

    def before(self, program: tuple[str, ...]) -> tuple[str, ...]:
        return sys.executable, "-I", str(self._script), *program

    def wait(self, token: str, seconds: float) -> float | None:
        """When the word passed, as soon as it does."""
        end = time.monotonic() + seconds
        with self._changed:
            while token not in self._out:
                if (left := end - time.monotonic()) <= 0 or not self._changed.wait(left):
                    return None
            return self._out[token]

    def passed(self, token: str) -> float | None:
        with self._changed:
            return self._out.get(token)

    def hold(self, token: str) -> None:
        """The word is not to pass, until `drop` says that it never does."""
        (self._rules / "hold" / token).touch()

    def drop(self, token: str) -> None:
        """What is held is dropped. What has not come yet passes: it is not the prompt that was meant."""
        (self._rules / "drop" / token).touch()
        (self._rules / "hold" / token).unlink(missing_ok=True)

    def disturb(self, name: str, trouble: str) -> None:
        """`name` is a word's token, or the session that is looked at."""
        (self._rules / "trouble" / name).write_text(trouble, encoding="ascii")

    def calm(self, name: str) -> bool:
        """Take a trouble back; whether it had come."""
        rule = self._rules / "trouble" / name
        came = not rule.exists()
        rule.unlink(missing_ok=True)
        return came

    def close(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"end", self._ear.getsockname())
        self._thread.join(10)
        self._ear.close()

    def _hear(self) -> None:
        while (said := self._ear.recv(200)) != b"end":
            _, token, at = said.decode().split(" ")
            with self._changed:
                self._out.setdefault(token, float(at))
                self._changed.notify_all()
