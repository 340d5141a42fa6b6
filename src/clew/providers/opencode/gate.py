"""The gate of a server: a prompt that was posted, and of which nothing was heard since, is let in or kept out for good.

OpenCode answers a prompt before it keeps it, so that a prompt whose message is not there may still come. Its plugin
makes a file of the message's name before the message is kept (gate.js), and Clew makes the same file to keep it out.
Only one of them can.
"""

import os
from pathlib import Path

from clew.programs.faults import Refused


class Gate:
    """`directory` is the one that the server's plugin looks at."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._shut: set[str] = set()

    def open(self, message: str) -> None:
        """Before it is posted, and when its message is known to be there."""
        self._shut.discard(message)
        (self._directory / message).unlink(missing_ok=True)

    def shut(self, message: str) -> bool:
        """Keep it out. False when it has passed: then its message is there, or is being written."""
        if message in self._shut:
            return True
        try:
            os.close(os.open(self._directory / message, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        except OSError as fault:
            words = f"A prompt cannot be withdrawn: nothing can be made in {self._directory} ({fault.strerror})."
            raise Refused(words, "See that there is room on the disk.") from fault
        self._shut.add(message)
        return True
