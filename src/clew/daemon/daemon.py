"""The daemon of one machine: it claims, serves each run as a task of its own, and stops cleanly."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from clew.daemon.calls import Call
from clew.daemon.claiming import Claimer
from clew.daemon.delivering import Backlog, Carrier, until_answered
from clew.daemon.ending import DAEMON_STOPPED
from clew.daemon.limits import Limits
from clew.daemon.machine import LocalMachine
from clew.daemon.means import Means
from clew.daemon.outbox import Outbox
from clew.daemon.serving import Serving
from clew.daemon.warm import Warm
from clew.kernel import RunId
from clew.protocol.control import ControlPlane
from clew.protocol.machine import AgentProgram, Looked
from clew.protocol.orders import Order
from clew.protocol.prompts import PromptMaker
from clew.protocol.runtimes import Held

_log = logging.getLogger("clew.daemon")


class Daemon:
    """`outbox` is the file in which it keeps what it has to say. Its name is the same from start to start."""

    def __init__(
        self,
        plane: ControlPlane,
        machine: LocalMachine,
        prompts: PromptMaker,
        outbox: Path,
        limits: Limits | None = None,
    ) -> None:
        self._plane, self._machine = plane, machine
        self._limits = limits or Limits()
        self.name = f"daemon-{machine.id}"
        self._outbox = Outbox(outbox)
        self._warm = Warm(self._limits)
        self._means = Means(plane, machine, prompts, self._outbox, self._warm, self._limits, self._freed)
        self._backlog = Backlog(self._outbox, Carrier(plane, self._limits))
        self._runs: dict[RunId, Serving] = {}
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._claimer = Claimer(
            self.name, plane, self._backlog, self._limits, self._holding, self._start, self._hear_of
        )
        self._keeping: list[asyncio.Task[None]] = []
        self._stopping = False

    @property
    def live(self) -> int:
        """How many runs it serves."""
        return len(self._runs)

    async def start(self, programs: Iterable[AgentProgram] = ()) -> None:
        """What an earlier one left is ended and said; then work is claimed for all that is offered, now and later."""
        await self._machine.settle()
        self._backlog.start()
        for program in programs:
            await self.register(program)
        self._machine.listen(lambda runtime: self._claimer.offer([runtime]))
        if self._machine.offered:
            self._claimer.offer(self._machine.offered)
        self._keeping = [
            asyncio.create_task(self._renewing(), name="renewing"),
            asyncio.create_task(self._warm.sweeping(), name="warm sessions"),
        ]

    async def register(self, program: AgentProgram) -> Looked:
        """Look for a program and offer it, where it is there."""
        looked = await self._machine.look(program)
        registration = looked.registration
        if registration is not None:
            runtime = await until_answered("registering", lambda: self._plane.register(registration), self._limits)
            await self._machine.offer(runtime, program)
        return looked

    async def stop(self, finish: bool = False) -> None:
        """Running turns finish, or they are interrupted. What does not end in time is left to be settled by the next
        start; what is to be said and cannot be said now stays in the outbox. It may be called off, and called again."""
        self._stopping = True
        await self._claimer.stop()
        if finish:
            await self._ended(self._limits.finishing)
        for serving in list(self._runs.values()):
            serving.call(Call.CLOSE, DAEMON_STOPPED)
        limits = self._limits
        await self._ended(limits.interrupt * 2 + limits.close + limits.parting)
        await self._end_tasks(list(self._tasks.values()))
        await self._backlog.delivered(limits.parting)
        await self._backlog.close()
        await self._end_tasks(self._keeping)
        await self._warm.close()
        await self._machine.close()
        self._outbox.close()

    # ---------------------------------------------------------------- runs

    def _start(self, order: Order) -> None:
        if order.run in self._runs:
            # The same run anew: its lease was lost, and with it the one that is going here.
            self._runs[order.run].call(Call.LOST, "it was claimed anew")
        serving = Serving(order, self._means)
        task = asyncio.create_task(self._serve(serving), name=f"run {order.run}")
        self._runs[order.run], self._tasks[order.run] = serving, task
        task.add_done_callback(lambda done: self._over(order.run, done))

    async def _serve(self, serving: Serving) -> None:
        try:
            await serving.serve()
        except Exception:  # noqa: BLE001 - one run that cannot be served stops no other
            _log.exception("run %s could not be served to its end", serving.held.run)

    def _over(self, run: RunId, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(run) is task:
            del self._tasks[run], self._runs[run]
        self._claimer.has_room()

    def _freed(self) -> None:
        self._claimer.look()

    def _holding(self) -> Sequence[Held]:
        return [serving.held for serving in self._runs.values()]

    def _hear_of(self, run: RunId) -> None:
        serving = self._runs.get(run)
        if serving is not None:
            serving.look()

    # ---------------------------------------------------------------- leases

    async def _renewing(self) -> None:
        """All runs in one call."""
        while True:
            await asyncio.sleep(self._limits.patience.lease / 3)
            runtimes, asked = tuple(self._claimer.runtimes), (*self._holding(), *self._backlog.held)
            if not (runtimes and asked):
                continue
            try:
                renewed = await self._plane.renew(runtimes, asked)
            except Exception as fault:  # noqa: BLE001 - the next time comes soon
                _log.warning("leases could not be renewed: %s", fault)
                continue
            for held in asked:
                self._renewed(held, held.run in renewed.held, held.run in renewed.stop)

    def _renewed(self, held: Held, still: bool, stop: bool) -> None:
        """A run that has just ended is not held either; its own report hears what has become of it."""
        serving = self._runs.get(held.run)
        if serving is not None and serving.held == held and (stop or not still):
            serving.look()

    # ---------------------------------------------------------------- the end

    async def _ended(self, seconds: float) -> None:
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def _end_tasks(self, tasks: Sequence["asyncio.Task[None]"]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait(tasks, timeout=self._limits.close)
