"""What a session's shells get, and how they are found again: variables of its own, a mark among them.

The server is shared, so its mark tells nothing of whose a process is. The plugin lays what is written here over the
server's environment in every shell of this session and its subagents.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import orjson

from clew.programs.faults import BadArguments
from clew.programs.ledger import Ledger
from clew.programs.process_tag import end_tagged, new_tag


def must_be_variables(environment: Mapping[str, str]) -> None:
    """A shell that cannot be given its variables would not start, and say nothing of why."""
    for name, value in environment.items():
        try:
            proper = bool(name) and "=" not in name and "\0" not in f"{name}{value}" and f"{name}{value}".encode()
        except UnicodeEncodeError:
            proper = False
        if not proper:
            raise BadArguments(f"{name[:80]!r} cannot be a variable of a program.", "Take it out, or mend it.")


class Belongings:
    def __init__(self, id_: str, environment: Mapping[str, str], ledger: Ledger | None) -> None:
        self._name, self._ledger = f"{id_}.json", ledger
        self._mark = new_tag()
        self._environment = {**environment, **self._mark.environment}
        self._files: set[Path] = set()
        if ledger is not None:
            ledger.add(self._mark)

    def lay(self, sessions: Path) -> None:
        """Where a server's plugin looks for it. They may be secrets, so nobody else can read them."""
        path = sessions / self._name
        self._files.add(path)
        file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as written:
            written.write(orjson.dumps(self._environment))

    async def end_processes(self) -> None:
        await asyncio.to_thread(end_tagged, [self._mark])

    async def end(self) -> None:
        for path in self._files:
            with contextlib.suppress(OSError):
                path.unlink()
        try:
            await self.end_processes()
        finally:
            if self._ledger is not None:
                self._ledger.remove(self._mark)
