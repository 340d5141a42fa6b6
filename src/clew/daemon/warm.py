"""Warm sessions: kept open after a turn for the next one, and ended when they stay idle."""

import asyncio
import logging
import time
from dataclasses import dataclass, field, replace

from clew.daemon.limits import Limits
from clew.kernel import (
    Directory,
    Fate,
    Landing,
    Moment,
    NativeId,
    PermissionMode,
    Reaped,
    RuntimeId,
    WarmFacts,
    confirm,
    reap,
)
from clew.ports.provider import KnowsItsEnd, KnowsItsVisitors, KnowsItsWork, LiveSession

_log = logging.getLogger("clew.daemon")


def moment() -> Moment:
    return Moment(time.time(), time.monotonic())


@dataclass(frozen=True, slots=True)
class OpenedAs:
    """How a session was opened. The mode is not part of it: another mode can be set, the rest cannot be changed."""

    runtime: RuntimeId
    program: str
    directory: Directory
    model: str | None
    instructions: str | None


@dataclass(slots=True)
class WarmSession:
    """`turns`: completed since it was opened. `epoch`: how often it was used."""

    live: LiveSession
    native_id: NativeId
    opened_as: OpenedAs
    mode: PermissionMode
    turns: int = 0
    epoch: int = 0
    last_used: Moment = field(default_factory=moment)
    left_running: bool = False
    """Whether its last turn left a tool running, by the events of that turn."""
    open_question: bool = False

    @property
    def is_dead(self) -> bool:
        """Whether its process is gone, or the program's store has lost the session: a turn in it would be cut short.
        A session that cannot tell counts as alive."""
        return self.live.cursor is None or (isinstance(self.live, KnowsItsEnd) and self.live.has_ended)

    @property
    def background_work(self) -> bool:
        """From the session itself where it knows: work may end between turns, or outlast later ones."""
        return self.live.works_on if isinstance(self.live, KnowsItsWork) else self.left_running

    @property
    def landing(self) -> Landing:
        """What the agent said when it opened the session, with the changes since."""
        said = self.live.landing
        turns = None if said.turns is None else said.turns + self.turns
        return replace(said, native_id=said.native_id or self.native_id, mode=self.mode, turns=turns)


Key = tuple[RuntimeId, NativeId]
"""Without the program: after an agent was edited, the session that its old program holds open must still be found."""


class WarmSessions:
    """The idle sessions. One that is in use is not here: its run has it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._idle: dict[Key, WarmSession] = {}
        self._closed = False
        self._ending: dict[asyncio.Task[None], Key] = {}

    def __len__(self) -> int:
        return len(self._idle)

    def pop(self, runtime: RuntimeId, native_id: NativeId) -> WarmSession | None:
        session = self._idle.pop((runtime, native_id), None)
        if session is not None:
            # Before anything is awaited: a sweep that has judged it sees that it was used since.
            session.epoch += 1
        return session

    def park(self, session: WarmSession) -> None:
        """Keep it for the next turn. Where there is no room, the least recently used is ended."""
        session.last_used = moment()
        session.epoch += 1
        key = _key(session)
        if self._closed or self._limits.warm <= 0 or key in self._idle:
            self._end_soon(session)
            return
        self._idle[key] = session
        while len(self._idle) > self._limits.warm:
            idle = [each for each in self._idle.values() if not (each.background_work or each.open_question)]
            if not idle:
                return
            oldest = min(idle, key=lambda each: each.last_used.active)
            del self._idle[_key(oldest)]
            self._end_soon(oldest)

    async def release(self, runtime: RuntimeId, native_id: NativeId) -> bool:
        """End it now if it is idle, so that a person can open it; whether it was there. One in use is left alone."""
        session = self.pop(runtime, native_id)
        if session is None:
            await self.wait_ended(runtime, native_id)
            return False
        await asyncio.shield(self._end_soon(session))
        return True

    async def sweep(self) -> list[Reaped]:
        """End the sessions that were idle for too long. One that fails to close keeps no other open."""
        seen = [(session, self._judge(session)) for session in list(self._idle.values())]
        judged = []
        for session, reaped in seen:
            # A turn may have begun since it was judged; the turn has precedence.
            fate = confirm(reaped, session.epoch)
            judged.append(fate)
            if fate.fate is Fate.END and self._idle.pop(_key(session), None) is not None:
                await asyncio.shield(self._end_soon(session))
        return judged

    async def yield_to_people(self) -> None:
        """End the idle sessions that a person has opened at a terminal."""
        for session in list(self._idle.values()):
            live, epoch = session.live, session.epoch
            if not isinstance(live, KnowsItsVisitors) or not await asyncio.to_thread(_has_visitor, live):
                continue
            if session.epoch == epoch and self._idle.pop(_key(session), None) is not None:
                _log.info("session %s is let go: a person has opened it", session.native_id)
                await asyncio.shield(self._end_soon(session))

    async def yield_forever(self) -> None:
        while True:
            await asyncio.sleep(self._limits.visitors)
            await self.yield_to_people()

    async def sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(self._limits.sweep)
            await self.sweep()

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            self._end_soon(self._idle.popitem()[1])
        await asyncio.gather(*self._ending)

    async def wait_ended(self, runtime: RuntimeId, native_id: NativeId) -> None:
        """Wait for a session that is being ended: while its process lives, the session would be found in use."""
        ending = [task for task, key in self._ending.items() if key == (runtime, native_id)]
        if ending:
            await asyncio.wait(ending, timeout=self._limits.close)

    async def end(self, session: WarmSession) -> None:
        """End its process. The session stays in its program's store."""
        try:
            async with asyncio.timeout(self._limits.close):
                await session.live.close()
        except Exception as fault:  # noqa: BLE001 - whatever a provider raises, the others are closed too
            _log.warning("session %s could not be closed: %r", session.native_id, fault)

    def _end_soon(self, session: WarmSession) -> asyncio.Task[None]:
        ending = asyncio.create_task(self.end(session), name=f"end of session {session.native_id}")
        self._ending[ending] = _key(session)
        ending.add_done_callback(self._ending.pop)
        return ending

    def _judge(self, session: WarmSession) -> Reaped:
        facts = WarmFacts(
            epoch=session.epoch,
            last_used=session.last_used,
            now=moment(),
            open_question=session.open_question,
            background_work=session.background_work,
        )
        return reap(facts, self._limits.idle)


def _has_visitor(live: KnowsItsVisitors) -> bool:
    try:
        return live.has_visitor()
    except OSError as fault:
        _log.warning("it cannot be told whether a person has opened a session: %s", fault)
        return False


def _key(session: WarmSession) -> Key:
    return session.opened_as.runtime, session.native_id
