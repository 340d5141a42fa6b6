"""Files that Clew's plugin in the server reads and writes (plugin.js), all in one directory of that server."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import orjson

from clew.programs.faults import Refused
from clew.programs.state import Ledger, LedgerEntry


class Gate:
    """Decides once whether a posted prompt may still enter its session.

    OpenCode answers a prompt before it stores it, so a prompt that is not in the session may still come. The plugin
    creates a file with the message's name before the message is stored (gate.js), and Clew creates the same file to
    keep the message out. O_EXCL lets only one of them succeed.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._shut: set[str] = set()

    def open(self, message: str) -> None:
        """Call it before the message is posted, and when it is known to be in the session."""
        self._shut.discard(message)
        (self._directory / message).unlink(missing_ok=True)

    def shut(self, message: str) -> bool:
        """Keep the message out. False when it has passed: it is in the session, or is being written."""
        if message in self._shut:
            return True
        try:
            os.close(os.open(self._directory / message, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        except OSError as fault:
            words = f"A prompt cannot be withdrawn: no file can be created in {self._directory} ({fault.strerror})."
            raise Refused(words, "See that there is room on the disk.") from fault
        self._shut.add(message)
        return True


class ShellEnvironment:
    """The variables of one session's shells, and a process tag by which their processes are found and ended.

    The server is shared, so its own tag does not tell to which session a process belongs. The plugin adds these
    variables to the environment of every shell of this session and of its subagents.
    """

    def __init__(self, id_: str, environment: Mapping[str, str], ledger: Ledger | None) -> None:
        self._name = f"{id_}.json"
        self._entry = LedgerEntry(ledger)
        self._environment = {**environment, **self._entry.tag.environment}
        self._files: set[Path] = set()

    def write(self, directory: Path) -> None:
        """Write them where the plugin looks, readable for this user only: they may be secret."""
        path = directory / self._name
        self._files.add(path)
        file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as written:
            written.write(orjson.dumps(self._environment))

    async def end_processes(self) -> None:
        await self._entry.end_processes()

    async def remove(self) -> None:
        for path in self._files:
            with contextlib.suppress(OSError):
                path.unlink()
        try:
            await self.end_processes()
        finally:
            self._entry.remove()
