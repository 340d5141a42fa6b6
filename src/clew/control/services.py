"""The services that every use case works with: the database, the connected machines, and hints of changes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

from clew.control.actor import Actor, name_of
from clew.control.faults import BadRequest, NoMachine
from clew.control.hints import Hints
from clew.kernel import MachineId
from clew.ports.work import WorkOf
from clew.protocol.machine import Machine
from clew.store.engine.database import Database, Transaction

Result = TypeVar("Result")

PATIENCE = 150.0
"""Seconds that a machine has for an answer about one worktree. Git's own deadlines are shorter."""

_log = logging.getLogger("clew.actions")


class Services:
    """`data` is the directory of the server's own files. Machines may be connected later."""

    def __init__(self, database: Database, data: Path, machines: Iterable[Machine] = ()) -> None:
        self._database = database
        self.data = data
        self.machines: dict[MachineId, Machine] = {machine.id: machine for machine in machines}
        self.hints = Hints(database)

    async def write(self, operation: Callable[[Transaction], Result]) -> Result:
        """Run it as one transaction; return its result once that is durable."""
        return await asyncio.wrap_future(self._database.write(operation))

    async def read(self, operation: Callable[[Transaction], Result]) -> Result:
        """Read the last commit, without waiting for writers."""
        return await asyncio.to_thread(self._database.read, operation)

    def record(self, actor: Actor, action: str) -> None:
        """Log an action that no row of the database names the actor of."""
        _log.info("%s %s", name_of(actor), action)

    def connect(self, machine: Machine) -> None:
        self.machines[machine.id] = machine

    def machine(self, wanted: str) -> Machine:
        """The machine with that id."""
        found = self.machines.get(MachineId(wanted))
        if found is None:
            raise NoMachine(f"Machine {wanted!r} is not connected.", "Start Clew on it with `clew up`, then try again.")
        return found

    def connected(self) -> list[Machine]:
        """All machines; at least one."""
        if not self.machines:
            raise NoMachine("No machine is connected.", "Start one with `clew up`.")
        return list(self.machines.values())

    def chosen_machine(self, wanted: str | None) -> Machine:
        """The machine with that id; without one, the only machine there is."""
        if wanted is not None:
            return self.machine(wanted)
        first, *others = self.connected()
        if others:
            names = ", ".join(sorted(self.machines))
            raise BadRequest(f"Several machines are connected: {names}.", "Say which one is meant, as `machine`.")
        return first

    def remaining_machine(self, wanted: str | None) -> Machine:
        """The machine with that id; where that one is not connected, the only machine there is. A database that was
        brought to another machine names the former one."""
        if len(self.machines) == 1 and wanted not in self.machines:
            return self.chosen_machine(None)
        return self.chosen_machine(wanted)

    async def ask_worktrees(self, machine: str, asked: Callable[[WorkOf], Awaitable[Result]]) -> Result:
        """The answer of the machine that has a worktree: only that one can tell."""
        worktrees = self.machine(machine).worktrees
        try:
            async with asyncio.timeout(PATIENCE):
                return await asked(worktrees)
        except TimeoutError as fault:
            raise NoMachine(
                f"Machine {machine!r} did not answer within {PATIENCE:g} s.", "Check it with `clew doctor`."
            ) from fault

    async def close(self) -> None:
        """Stop the hints. The owner of the database closes it."""
        await self.hints.close()
