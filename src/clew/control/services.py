"""The services that every use case works at: the database, the machine beside it, and what is heard of both."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from clew.control.faults import NoMachine
from clew.control.hints import Hints
from clew.protocol.machine import Machine
from clew.store.engine.database import Database

Result = TypeVar("Result")


class Services:
    """`data` is the directory that the server keeps its own files in. The machine may come later, or never."""

    def __init__(self, database: Database, data: Path, machine: Machine | None = None) -> None:
        self._database = database
        self.data = data
        self.machine = machine
        self.hints = Hints(database)

    async def write(self, operation: Callable[[Connection], Result]) -> Result:
        """One transaction; the answer is there when it is durable."""
        return await asyncio.wrap_future(self._database.write(operation))

    async def read(self, operation: Callable[[Connection], Result]) -> Result:
        """The last commit, without waiting for whoever writes."""
        return await asyncio.to_thread(self._database.read, operation)

    def here(self) -> Machine:
        """The machine, for what only a machine can tell."""
        if self.machine is None:
            raise NoMachine("No machine is at hand to ask.", "Start one with `clew up`.")
        return self.machine

    async def close(self) -> None:
        """Stop hearing. The database is its owner's to close."""
        await self.hints.close()
