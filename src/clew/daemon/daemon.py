"""The daemon of one machine: it claims runs, serves each in a task of its own, and stops cleanly."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from clew.daemon.claimer import Claimer
from clew.daemon.limits import Limits
from clew.daemon.machine import LocalMachine
from clew.daemon.outbox import Outbox
from clew.daemon.place import PlaceQueue
from clew.daemon.run import RunDependencies, ServedRun
from clew.daemon.run_end import DAEMON_STOPPED
from clew.daemon.stop_signal import StopCause
from clew.daemon.uplink import Backlog, Carrier, until_answered
from clew.daemon.warm import WarmSessions
from clew.kernel import RunId
from clew.ports.context import ContextEngine
from clew.protocol.control import ControlPlane, Held, RenewRequest
from clew.protocol.machine import AgentProgram, Looked
from clew.protocol.orders import Order

_log = logging.getLogger("clew.daemon")


class Daemon:
    """`outbox` is the file that keeps reports until the server has them. `name` is the same at each start."""

    def __init__(
        self,
        plane: ControlPlane,
        machine: LocalMachine,
        context: ContextEngine,
        outbox: Path,
        limits: Limits | None = None,
    ) -> None:
        self._plane, self._machine = plane, machine
        self._limits = limits or Limits()
        self.name = f"daemon-{machine.id}"
        self._outbox = Outbox(outbox)
        self._warm = WarmSessions(self._limits)
        self._backlog = Backlog(self._outbox, Carrier(plane, self._limits))
        self._runs: dict[RunId, ServedRun] = {}
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._claimer = Claimer(
            self.name, plane, self._backlog, self._limits, self._holding, self._start, self._on_news
        )
        self._with = RunDependencies(
            plane, machine, context, self._outbox, self._warm, self._limits, self._claimer.claim_now, PlaceQueue(plane)
        )
        self._background: list[asyncio.Task[None]] = []

    @property
    def live(self) -> int:
        """How many runs it serves."""
        return len(self._runs)

    async def start(self, programs: Iterable[AgentProgram] = ()) -> None:
        """End what an earlier daemon left and deliver its reports; then claim work for every runtime that is offered,
        now or later."""
        await self._machine.end_leftovers()
        self._backlog.start()
        self._machine.tell_unread(self._backlog.unread)
        for program in programs:
            await self.register(program)
        self._machine.release_with(self._warm.release)
        self._machine.listen(lambda runtime: self._claimer.offer([runtime]))
        if self._machine.offered:
            self._claimer.offer(self._machine.offered)
        self._background = [
            asyncio.create_task(self._renew_leases(), name="lease renewal"),
            asyncio.create_task(self._warm.sweep_forever(), name="warm sessions"),
            asyncio.create_task(self._warm.yield_forever(), name="people in warm sessions"),
        ]

    async def register(self, program: AgentProgram) -> Looked:
        """Look for a program; where it is installed, register and offer it."""
        looked = await self._machine.discover(program)
        registration = looked.registration
        if registration is not None:
            runtime = await until_answered("registering", lambda: self._plane.register(registration), self._limits)
            await self._machine.offer(runtime, program)
        return looked

    async def stop(self, finish: bool = False) -> None:
        """Let running turns finish, or interrupt them.

        Runs that do not end in time are ended at the next start, and reports that cannot be delivered now stay in the
        outbox. It may be cancelled, and called again.
        """
        await self._claimer.stop()
        if finish:
            await self._wait_runs(self._limits.finish_turns)
        for run in list(self._runs.values()):
            run.stop(StopCause.SHUTDOWN, DAEMON_STOPPED)
        limits = self._limits
        await self._wait_runs(limits.interrupt * 2 + limits.close + limits.last_delivery)
        await self._cancel(list(self._tasks.values()))
        await self._backlog.delivered(limits.last_delivery)
        await self._backlog.close()
        await self._cancel(self._background)
        await self._warm.close()
        await self._machine.close()
        self._outbox.close()

    # ---------------------------------------------------------------- runs

    def _start(self, order: Order) -> None:
        if order.run in self._runs:
            # The same run is claimed anew: the lease of the attempt that is served here was lost.
            self._runs[order.run].stop(StopCause.LOST, "it was claimed anew")
        run = ServedRun(order, self._with)
        task = asyncio.create_task(self._serve(run), name=f"run {order.run}")
        self._runs[order.run], self._tasks[order.run] = run, task
        task.add_done_callback(lambda done: self._on_done(order.run, done))

    async def _serve(self, run: ServedRun) -> None:
        try:
            await run.serve()
        except Exception:  # noqa: BLE001 - one run that cannot be served stops no other
            _log.exception("run %s could not be served to its end", run.held.run)

    def _on_done(self, run: RunId, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(run) is task:
            del self._tasks[run], self._runs[run]
        self._claimer.room_freed()

    def _holding(self) -> Sequence[Held]:
        return [run.held for run in self._runs.values()]

    def _on_news(self, run: RunId) -> None:
        served = self._runs.get(run)
        if served is not None:
            served.poll_server()

    # ---------------------------------------------------------------- leases

    async def _renew_leases(self) -> None:
        """All leases in one call, three times within the time that a lease lasts."""
        while True:
            await asyncio.sleep(self._limits.patience.lease / 3)
            runtimes, asked = tuple(self._claimer.runtimes), (*self._holding(), *self._backlog.held)
            if not (runtimes and asked):
                continue
            try:
                renewed = await self._plane.renew(RenewRequest(runtimes, asked, self._limits.patience))
            except Exception as fault:  # noqa: BLE001 - the next time comes soon
                _log.warning("leases could not be renewed: %s", fault)
                continue
            for held in asked:
                if held.run in renewed.stop or held.run not in renewed.held:
                    self._poll_server(held)

    def _poll_server(self, held: Held) -> None:
        """A run that has just ended is not held either: the answer to its own report says what became of it."""
        served = self._runs.get(held.run)
        if served is not None and served.held == held:
            served.poll_server()

    # ---------------------------------------------------------------- the end

    async def _wait_runs(self, seconds: float) -> None:
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def _cancel(self, tasks: Sequence["asyncio.Task[None]"]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait(tasks, timeout=self._limits.close)
