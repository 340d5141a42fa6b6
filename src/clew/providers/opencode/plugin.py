"""The gate of a server: a prompt that was posted, and of which nothing was heard since, is let in or kept out for good.

OpenCode answers a prompt before it keeps it, so that a prompt whose message is not there may still come. Its plugin
makes a file of the message's name before the message is kept (gate.js), and Clew makes the same file to keep it out.
Only one of them can.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import orjson

from clew.programs.faults import Refused
from clew.programs.ledger import Ledger, LedgerEntry


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


class Belongings:
    def __init__(self, id_: str, environment: Mapping[str, str], ledger: Ledger | None) -> None:
        self._name = f"{id_}.json"
        self._entry = LedgerEntry(ledger)
        self._environment = {**environment, **self._entry.tag.environment}
        self._files: set[Path] = set()

    def lay(self, sessions: Path) -> None:
        """Where a server's plugin looks for it. They may be secrets, so nobody else can read them."""
        path = sessions / self._name
        self._files.add(path)
        file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as written:
            written.write(orjson.dumps(self._environment))

    async def end_processes(self) -> None:
        await self._entry.end_processes()

    async def end(self) -> None:
        for path in self._files:
            with contextlib.suppress(OSError):
                path.unlink()
        try:
            await self.end_processes()
        finally:
            self._entry.remove()
