"""The uplink: calls and reports reach the server, however long that takes."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from clew.daemon.limits import Limits
from clew.daemon.outbox import Outbox, read_letter
from clew.kernel import RunId
from clew.ports.fault import Fault
from clew.protocol.control import ControlPlane, Held
from clew.protocol.machine import UnreadLetter
from clew.protocol.reports import Finish, Finished, Report, Reported

SESSION_HELD = "store:session-held"
"""The code with which the server refuses to record a session: another lane has it. The report is sent again without."""

_AWAY = frozenset({"store:disk-full", "store:unreachable", "store:busy", "store:closed", "server:away"})

T = TypeVar("T")

_log = logging.getLogger("clew.daemon")


async def until_answered(
    what: str, ask: Callable[[], Awaitable[T]], limits: Limits, passes: str = "", tries: int = 0
) -> T:
    """Call until the server answers. A fault of the code `passes` is an answer and is raised at once. With `tries`, any
    fault is raised after so many, unless it says that the server or its disk is away."""
    wait, asked = limits.retry, 0
    while True:
        try:
            answer = await ask()
        except Exception as fault:
            asked += 1
            if isinstance(fault, Fault) and _is_answer(fault, passes, asked, tries):
                raise
            if asked == 1:
                known = isinstance(fault, Fault | OSError)
                _log.warning(
                    "%s: the server does not answer; trying again: %s", what, fault, exc_info=None if known else fault
                )
        else:
            if asked:
                _log.warning("%s: the server answered after %s failed tries", what, asked)
            return answer
        # Jitter: not all runs call at once when the server is back.
        await asyncio.sleep(wait * (1.0 - 0.5 * random.random()))
        wait = min(wait * 2, limits.retry_most)


def _is_answer(fault: Fault, passes: str, asked: int, tries: int) -> bool:
    if fault.code in (passes, SESSION_HELD):
        return bool(passes or tries)
    return 0 < tries <= asked and fault.code not in _AWAY


class Carrier:
    """Sends reports and ends until the server has them. `on_pin_refused`: another lane has the reported session."""

    def __init__(self, plane: ControlPlane, limits: Limits) -> None:
        self._plane, self._limits = plane, limits

    async def report(self, said: Report, on_pin_refused: Callable[[Fault], None] | None = None) -> Reported:
        try:
            return await self._until(said.run, lambda: self._plane.report(said))
        except Fault as fault:
            if on_pin_refused is not None:
                on_pin_refused(fault)
            return await self._until(said.run, lambda: self._plane.report(replace(said, pin=None)))

    async def finish(self, said: Finish) -> Finished:
        try:
            return await self._until(said.run, lambda: self._plane.finish(said))
        except Fault as fault:
            _log.warning("run %s: its session is not recorded: %s", said.run, fault)
            return await self._until(said.run, lambda: self._plane.finish(replace(said, pin=None)))

    async def _until(self, run: RunId, ask: Callable[[], Awaitable[T]]) -> T:
        return await until_answered(f"run {run}", ask, self._limits, SESSION_HELD)


class Backlog:
    """The letters that an earlier process left in the outbox, delivered run by run. No run waits for another.

    A letter of another version of Clew may be unreadable here. It is kept and shown by `clew doctor`; its run counts as
    left behind, so the server ends it and the agent's own store tells what became of its prompt.
    """

    def __init__(self, outbox: Outbox, carrier: Carrier) -> None:
        self._outbox, self._carrier = outbox, carrier
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: dict[RunId, Held] = {}
        self.unread: list[UnreadLetter] = []

    def start(self) -> None:
        by_run: dict[RunId, list[tuple[int, Report | Finish]]] = {}
        known = self._outbox.unread()
        for letter in self._outbox.left():
            try:
                said = read_letter(letter)
            except ValueError as fault:
                self._outbox.set_aside(letter, str(fault))
                self.unread.append(UnreadLetter(letter.run, letter.attempt, letter.kind, str(fault)))
                if letter.id not in known:
                    _log.warning("run %s: a letter of the outbox cannot be read and is kept: %s", letter.run, fault)
                continue
            by_run.setdefault(letter.run, []).append((letter.id, said))
            if isinstance(said, Finish):
                self._ending[letter.run] = Held(letter.run, letter.attempt)
        for run, letters in by_run.items():
            self._tasks.append(asyncio.create_task(self._deliver(run, letters), name=f"backlog of {run}"))

    @property
    def held(self) -> tuple[Held, ...]:
        """Runs whose end the server does not have yet."""
        return tuple(self._ending.values())

    async def delivered(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _deliver(self, run: RunId, letters: Sequence[tuple[int, Report | Finish]]) -> None:
        for id_, said in letters:
            await self._say(said)
            self._outbox.drop([id_])
        self._ending.pop(run, None)

    async def _say(self, said: Report | Finish) -> None:
        if isinstance(said, Finish):
            await self._carrier.finish(said)
        else:
            await self._carrier.report(said)
