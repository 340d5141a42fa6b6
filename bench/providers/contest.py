"""One follow-up prompt in one session, three ways: the agent's own command line, a session opened anew, a warm one."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.providers.memory import resident
from clew.kernel import Cursor, Directory, PermissionMode
from clew.ports.events import Done, Ending, Event
from clew.ports.provider import LiveSession, OpenSpec, Provider
from tests.providers.agents import run
from tests.providers.rig import Rig

PROMPT = "SAY: done"

MODES: Mapping[str, PermissionMode] = {
    "claude": PermissionMode.ASK,
    "codex": PermissionMode.READ,
    "opencode": PermissionMode.FULL,
}
"""What each program is allowed by its own command line, when it is told nothing."""

Arguments = Callable[[str], tuple[str, ...]]

COMMAND_LINES: Mapping[str, Arguments] = {
    "claude": lambda session: ("-p", "--resume", session, "--output-format", "stream-json", "--verbose", PROMPT),
    "codex": lambda session: ("exec", "resume", "--json", "--skip-git-repo-check", session, PROMPT),
    "opencode": lambda session: ("run", "-s", session, "--format", "json", PROMPT),
}
"""How each program resumes a session for one prompt by itself."""


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds of each way, in the same round."""

    by_itself: float
    cold: float
    warm: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that the agent's processes hold: while its session is warm, and after its provider was closed."""

    warm: int
    reaped: int


class Contest:
    """One agent in one home and one directory."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._settings = rig.settings("a")
        self._directory: Directory = rig.directory("work")
        self._mode = MODES[rig.name]

    async def begin(self) -> tuple[Provider, LiveSession, Cursor]:
        """A session that has had its first turn, and stays open."""
        provider = self._rig.make(self._settings)
        session = await provider.open(OpenSpec(self._directory, self._mode))
        await _turn(session)
        cursor = session.cursor
        assert cursor is not None, "a session that was prompted can be found"
        return provider, session, cursor

    async def round(self, warm: LiveSession, other: Cursor) -> Round:
        """The warm session is one, `other` another: a program that holds a session may keep others out of it."""
        began = time.perf_counter()
        await _turn(warm)
        warmed = time.perf_counter() - began
        cold = await self._cold(other)
        return Round(self._by_itself(other), cold, warmed)

    async def _cold(self, cursor: Cursor) -> float:
        """From nothing: the program starts, opens the session, answers."""
        began = time.perf_counter()
        provider = self._rig.make(self._settings)
        try:
            session = await provider.open(OpenSpec(self._directory, self._mode, cursor))
            await _turn(session)
            return time.perf_counter() - began
        finally:
            await provider.close()

    def _by_itself(self, cursor: Cursor) -> float:
        arguments = COMMAND_LINES[self._rig.name](cursor.native_id)
        began = time.perf_counter()
        ended = run(self._settings, *arguments, cwd=Path(self._directory.path))
        taken = time.perf_counter() - began
        if ended.code != 0 or "done" not in ended.out:
            raise SystemExit(f"{self._rig.name} did not answer by its command line: {ended.out}{ended.err}")
        return taken

    async def memory(self) -> Memory:
        provider, session, _ = await self.begin()
        warm = resident(self._rig.processes("a"))
        await session.close()
        await provider.close()
        return Memory(warm, resident(self._rig.processes("a")))


async def _turn(session: LiveSession) -> None:
    last: Event | None = None
    async for event in session.turn(PROMPT):
        last = event
    if not (isinstance(last, Done) and last.ending is Ending.COMPLETED):
        raise SystemExit(f"The turn did not end well: {last}")
