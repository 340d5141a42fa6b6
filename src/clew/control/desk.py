"""The desk that every use case works at: the database, the machine beside it, and what is heard of both."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from clew.control.faults import NoMachine
from clew.control.hearing import Hints
from clew.protocol.machine import Machine
from clew.protocol.orders import ClaimRequest
from clew.store.database import Database
from clew.store.standing import Orders

Result = TypeVar("Result")


class Desk:
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

    @contextmanager
    def standing_by(self, asked: ClaimRequest, ring: Callable[[], None]) -> Iterator[Callable[[], Awaitable[Orders]]]:
        """Within, work may be handed over, and it rings then. What was handed over is asked for afterwards."""
        loop, standby = asyncio.get_running_loop(), self._database.stand_by(asked)

        def call(orders: Future[Orders]) -> None:
            if orders.result():
                loop.call_soon_threadsafe(ring)

        standby.orders.add_done_callback(call)
        try:
            yield lambda: asyncio.wrap_future(standby.orders)
        finally:
            self._database.withdraw(standby)

    def here(self) -> Machine:
        """The machine, for what only a machine can tell."""
        if self.machine is None:
            raise NoMachine("No machine is at hand to ask.", "Start one with `clew up`.")
        return self.machine

    async def close(self) -> None:
        """Stop hearing. The database is its owner's to close."""
        await self.hints.close()
