"""Delivering: what is to be said reaches the server, however long that takes."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from clew.daemon.letters import FINISH, read_letter
from clew.daemon.limits import Limits
from clew.daemon.outbox import Letter, Outbox
from clew.kernel import RunId
from clew.ports.fault import Fault
from clew.protocol.control import ControlPlane
from clew.protocol.reports import Finish, Finished, Report, Reported
from clew.protocol.runtimes import Held

SESSION_HELD = "store:session-held"
"""By this the server says that a session is another lane's. What was said with it comes again without it."""

_AWAY = frozenset({"store:disk-full", "store:unreachable", "store:busy", "store:closed", "server:away"})

T = TypeVar("T")

_log = logging.getLogger("clew.daemon")


async def until_answered(
    what: str, ask: Callable[[], Awaitable[T]], limits: Limits, passes: str = "", tries: int = 0
) -> T:
    """Ask until the server answers. A fault of the code `passes` is an answer, and goes through at once; with `tries`,
    any fault does after so many, unless it says that the server or its disk is away."""
    wait, asked = limits.again, 0
    while True:
        try:
            answer = await ask()
        except Exception as fault:
            asked += 1
            if isinstance(fault, Fault) and _is_answer(fault, passes, asked, tries):
                raise
            if asked == 1:
                known = isinstance(fault, Fault | OSError)
                _log.warning("%s: the server cannot be told yet: %s", what, fault, exc_info=None if known else fault)
        else:
            if asked:
                _log.warning("%s: the server was told after %s tries in vain", what, asked)
            return answer
        # Not all at once when it is back.
        await asyncio.sleep(wait * (1.0 - 0.5 * random.random()))
        wait = min(wait * 2, limits.again_most)


def _is_answer(fault: Fault, passes: str, asked: int, tries: int) -> bool:
    if fault.code in (passes, SESSION_HELD):
        return bool(passes or tries)
    return 0 < tries <= asked and fault.code not in _AWAY


class Carrier:
    """Takes letters to the server. `refused_pin` hears of a session that is another lane's."""

    def __init__(self, plane: ControlPlane, limits: Limits) -> None:
        self._plane, self._limits = plane, limits

    async def report(self, said: Report, refused_pin: Callable[[Fault], None] | None = None) -> Reported:
        try:
            return await self._until(said.run, lambda: self._plane.report(said))
        except Fault as fault:
            if refused_pin is not None:
                refused_pin(fault)
            return await self._until(said.run, lambda: self._plane.report(replace(said, pin=None)))

    async def finish(self, said: Finish) -> Finished:
        try:
            return await self._until(said.run, lambda: self._plane.finish(said))
        except Fault as fault:
            _log.warning("run %s: its session is not written down: %s", said.run, fault)
            return await self._until(said.run, lambda: self._plane.finish(replace(said, pin=None)))

    async def _until(self, run: RunId, ask: Callable[[], Awaitable[T]]) -> T:
        return await until_answered(f"run {run}", ask, self._limits, SESSION_HELD)


class Backlog:
    """What an earlier process left in the outbox. Runs do not wait for one another."""

    def __init__(self, outbox: Outbox, carrier: Carrier) -> None:
        self._outbox, self._carrier = outbox, carrier
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: dict[RunId, Held] = {}

    def start(self) -> None:
        by_run: dict[RunId, list[Letter]] = {}
        for letter in self._outbox.left():
            by_run.setdefault(letter.run, []).append(letter)
            if letter.kind == FINISH:
                self._ending[letter.run] = Held(letter.run, letter.attempt)
        for run, letters in by_run.items():
            self._tasks.append(asyncio.create_task(self._deliver(run, letters), name=f"backlog of {run}"))

    @property
    def held(self) -> tuple[Held, ...]:
        """Runs that have ended, and of which the server does not know it yet."""
        return tuple(self._ending.values())

    async def delivered(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _deliver(self, run: RunId, letters: list[Letter]) -> None:
        for letter in letters:
            try:
                said = read_letter(letter)
            except (ValueError, TypeError, KeyError, AttributeError) as fault:
                _log.warning("run %s: a letter of the outbox cannot be read, and is left out: %r", run, fault)
            else:
                await self._say(said)
            self._outbox.drop([letter.id])
        self._ending.pop(run, None)

    async def _say(self, said: Report | Finish) -> None:
        if isinstance(said, Finish):
            await self._carrier.finish(said)
        else:
            await self._carrier.report(said)
