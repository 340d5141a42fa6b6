"""What a session's shells get, and how they are found again: variables of its own, a mark among them.

The server is shared, so its mark tells nothing of whose a process is. The plugin lays what is written here over the
server's environment in every shell of this session and its subagents.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import orjson

from clew.programs.ledger import Ledger, LedgerEntry


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
