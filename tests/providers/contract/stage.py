"""The stage of one test: warm providers, sessions that are closed afterwards, and turns followed to their end."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from clew.kernel import Answer, Cursor, Directory, LandingField, NativeId, PermissionMode
from clew.ports.events import ApprovalAsked, Done, Ending, Event, Failed, SessionNamed, Text, Used
from clew.ports.provider import LiveSession, OpenSpec, Provider, Settings
from clew.programs.faults import NotAble
from tests.providers.loopback.server import Model
from tests.providers.rig import SECRET, Rig, Seen

T = TypeVar("T")
E = TypeVar("E")
F = TypeVar("F", bound=Callable[..., Any])
UNABLE = "declared unable"
CORE = "contract_core"


def core(test: F) -> F:
    """A test that also brief rigs play."""
    setattr(test, CORE, True)
    return test


@dataclass(frozen=True)
class Turned:
    """A turn that has ended."""

    events: tuple[Event, ...]

    @property
    def done(self) -> Done:
        last = self.events[-1]
        assert isinstance(last, Done), f"a turn ends with Done, not with {last}"
        return last

    @property
    def reply(self) -> str:
        return self.done.reply

    @property
    def seen(self) -> Seen:
        return Seen.in_(self.reply)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.of(Text))

    @property
    def failed(self) -> Failed:
        (failed,) = self.of(Failed)
        return failed

    @property
    def used(self) -> Used | None:
        used = self.of(Used)
        return used[-1] if used else None

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


class Troupe:
    """What all tests of one rig share: its loop and its warm providers."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.runner = asyncio.Runner()
        self._providers: dict[str, Provider] = {}

    def at(self, home: str) -> Provider:
        if home not in self._providers:
            self._providers[home] = self.rig.make(self.settings(home, f"warm-{home}"))
        return self._providers[home]

    @property
    def hasty(self) -> Provider:
        """One more over home "a". Some programs try a dead model for ever; it waits for a few seconds."""
        if "hasty" not in self._providers:
            settings = self.settings("a", "hasty")
            hasty = replace(settings, deadlines=replace(settings.deadlines, silence=6.0))
            self._providers["hasty"] = self.rig.make(hasty)
        return self._providers["hasty"]

    def begin(self) -> None:
        """Meet the program, as Clew does before it reads what a provider declares."""
        self.runner.run(self.at("a").discover())

    def settings(self, home: str, state: str) -> Settings:
        settings = self.rig.settings(home)
        assert settings.environment.items() >= SECRET.items(), "a rig lays SECRET into its environment"
        return replace(settings, state=self.rig.root / "state" / state)

    def close(self) -> None:
        try:
            for provider in self._providers.values():
                self.runner.run(provider.close())
            left = [pid for home in ("a", "b") for pid in self.rig.processes(home)]
            assert not left, f"{self.rig.name} left processes behind: {left}"
        finally:
            self.runner.close()
            self.rig.close()


class Stage:
    def __init__(self, troupe: Troupe, node: pytest.Item, number: int) -> None:
        self._troupe, self._node, self._number = troupe, node, number
        self._sessions: list[LiveSession] = []
        self._providers: list[Provider] = []

    # ---------------------------------------------------------------- who plays

    @property
    def rig(self) -> Rig:
        return self._troupe.rig

    @property
    def provider(self) -> Provider:
        """The warm provider of home "a"."""
        return self._troupe.at("a")

    @property
    def other(self) -> Provider:
        """The warm provider of home "b"."""
        return self._troupe.at("b")

    @property
    def hasty(self) -> Provider:
        return self._troupe.hasty

    def anew(self, home: str = "a", change: Callable[[Settings], Settings] = lambda settings: settings) -> Provider:
        """One more provider over that home, as after a restart of Clew; it is closed after the test."""
        state = f"{self._number}-{len(self._providers)}"
        self._providers.append(self.rig.make(change(self._troupe.settings(home, state))))
        return self._providers[-1]

    @property
    def widest(self) -> PermissionMode:
        return max(self.provider.capabilities.modes)

    def directory(self, name: str = "here") -> Directory:
        """A directory of this test's own. Where a program stays, one of all tests: it takes seconds to know another."""
        return self.rig.directory(name if self.rig.warm else f"{self._number}-{name}")

    def file(self, name: str, directory: str = "here") -> Path:
        """A path of this test's own in such a directory; the file is not there yet."""
        return Path(self.directory(directory).path) / f"{self._number}-{name}"

    def left(self, home: str = "a") -> set[int]:
        """The processes of a home, but for the programs that stay between sessions."""
        found = set(self.rig.processes(home))
        return found - self.rig.staying(home) if self.rig.warm else found

    async def ids(self, provider: Provider | None = None) -> set[str] | None:
        """The sessions there are; None where they cannot be listed."""
        try:
            return {found.cursor.native_id for found in await (provider or self.provider).sessions()}
        except NotAble:
            return None

    # ---------------------------------------------------------------- what is played

    async def open(
        self,
        cursor: Cursor | None = None,
        *,
        provider: Provider | None = None,
        directory: Directory | None = None,
        mode: PermissionMode | None = None,
        fork: bool = False,
        fresh_id: NativeId | None = None,
        model: str | None = None,
        instructions: str | None = None,
    ) -> LiveSession:
        spec = OpenSpec(
            directory=directory or self.directory(),
            mode=mode or self.widest,
            cursor=cursor,
            fork=fork,
            fresh_id=fresh_id,
            model=model,
            instructions=instructions,
        )
        session = await (provider or self.provider).open(spec)
        self._sessions.append(session)
        return session

    async def turn(self, session: LiveSession, prompt: str, answer: Answer = Answer.DENY) -> Turned:
        """Follow a turn to its end. Whatever the agent asks gets that answer."""
        events: list[Event] = []
        async for event in session.turn(prompt):
            assert not any(isinstance(before, Done) for before in events), f"{event} came after Done"
            events.append(event)
            if isinstance(event, ApprovalAsked):
                assert await session.answer(event.id, answer)
        return Turned(tuple(events))

    async def begun(self, prompt: str = "first", **how: Any) -> tuple[Cursor, Turned]:
        """A session that has had one turn and is closed again."""
        session = await self.open(**how)
        turned = await self.turn(session, prompt)
        assert turned.done.ending is Ending.COMPLETED, turned.events
        cursor = session.cursor
        await session.close()
        if cursor is None:
            assert not self.provider.capabilities.resume, "a session that has had a turn can be found again"
            cursor = Cursor(1, NativeId(str(uuid.uuid4())))
        return cursor, turned

    async def refused(self, attempt: Awaitable[object], what: str) -> None:
        """What a provider declares that it cannot do is refused as that."""
        with pytest.raises(NotAble):
            await attempt
        self.unable(what)

    def unable(self, what: str) -> None:
        """Count this test as declared unable."""
        self._node.user_properties.append((UNABLE, what))

    def landed(self, session: LiveSession, field: LandingField, expected: object) -> bool:
        """Whether the landing says this. Only a field that the provider does not declare to report may be missing."""
        said = getattr(session.landing, field.replace("-", "_"))
        return said == expected or (said is None and field not in self.provider.capabilities.reports)

    # ---------------------------------------------------------------- the end

    def run(self, scene: Coroutine[Any, Any, T]) -> T:
        async def within() -> T:
            async with asyncio.timeout(self.rig.patience):
                return await scene

        return self._troupe.runner.run(within())

    async def close_sessions(self) -> None:
        for session in self._sessions:
            await session.close()

    async def clear(self) -> None:
        await self.close_sessions()
        for provider in self._providers:
            await provider.close()
        left = self.left("a") | self.left("b")
        assert not left, f"processes were left behind: {left}"
        # What was killed in this test is known to be gone before the next begins.
        assert await eventually(lambda: not self.rig.dying())
        await asyncio.sleep(0.01)


def faults(model: Model) -> dict[str, Callable[[], None]]:
    """What may be wrong with a model, by name."""
    return {
        "500": lambda: model.fail(500),
        "401": lambda: model.fail(401),
        "429": lambda: model.fail(429),
        "hang": lambda: model.hang(mute=True),
        "cut": model.cut,
        "down": model.down,
    }


async def eventually(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether it comes to hold within that time."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not holds():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


def named(turned: Turned) -> list[SessionNamed]:
    return turned.of(SessionNamed)
