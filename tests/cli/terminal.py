"""A command at a terminal: a person types, and sees what comes."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.cli.kit import PROGRAM, environment

SETTINGS = {"TERM": "xterm", "PYTHONUTF8": "1", "COLUMNS": "", "PROMPT_TOOLKIT_NO_CPR": "1"}
"""No emulator answers here, so a chat does not ask where the cursor is."""

PATIENCE = 60.0
"""Longer than anything takes on a busy machine; what is waited for comes far earlier."""


class Terminal:
    def __init__(self, process: subprocess.Popen[bytes], end: int) -> None:
        self.process = process
        self._end = end
        self.seen = ""
        self._read = 0

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def until(self, words: str) -> str:
        """What came since the last time, up to these words."""
        limit = time.monotonic() + PATIENCE
        while (at := self.seen.find(words, self._read)) < 0:
            if time.monotonic() > limit or not self._hear(limit):
                raise AssertionError(f"{words!r} did not come; seen: {self.seen[self._read :]!r}")
        came, self._read = self.seen[self._read : at], at + len(words)
        return came

    def press(self, key: str, words: str) -> None:
        """As a person does: once more where nothing comes of it. Python forgets a signal that comes just before it
        waits for a line, until the next key."""
        limit = time.monotonic() + PATIENCE
        while self.seen.find(words, self._read) < 0 and time.monotonic() < limit:
            self.type(key)
            soon = time.monotonic() + 5.0
            while self.seen.find(words, self._read) < 0 and self._hear(soon):
                pass
        self.until(words)

    def ended(self) -> int:
        limit = time.monotonic() + PATIENCE
        while self._hear(limit):
            pass
        return self.process.wait(PATIENCE)

    def _hear(self, limit: float) -> bool:
        ready, _, _ = select.select([self._end], [], [], max(0.0, limit - time.monotonic()))
        if not ready:
            return False
        with suppress(OSError):
            if heard := os.read(self._end, 65_536):
                self.seen += heard.decode("utf-8", "replace").replace("\r\n", "\n")
                return True
        return False


@contextmanager
def terminal(*words: str, columns: int = 100, **settings: str) -> Iterator[Terminal]:
    end, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, columns))
    process = subprocess.Popen(
        [*PROGRAM, *words],
        env=environment(**{**SETTINGS, **settings}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        # Its own session, whose terminal this is: Ctrl-C reaches it as it does a person's.
        preexec_fn=_own_terminal,  # noqa: PLW1509
    )
    os.close(theirs)
    try:
        yield Terminal(process, end)
    finally:
        process.kill()
        process.wait()
        os.close(end)


def _own_terminal() -> None:
    os.setsid()
    # Whoever runs the tests in the background has it ignored, and so would everything they start.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
