"""The real OpenCode in homes of the test's own, warm for all tests, and a way to play a scene with it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from clew.kernel import Answer, Cursor, Directory, PermissionMode
from clew.ports.events import ApprovalAsked, Ending, Event
from clew.ports.provider import LiveSession, OpenSpec, Settings
from clew.providers.opencode.api import Api
from clew.providers.opencode.launch import PROJECT_CONFIG
from clew.providers.opencode.messages import Json
from clew.providers.opencode.provider import OpenCodeProvider
from clew.providers.opencode.session import OpenCodeSession
from tests.providers.contract.stage import Turned
from tests.providers.loopback.server import Model
from tests.providers.rigs.opencode import OpenCodeRig

T = TypeVar("T")
PATIENCE = 120.0
SILENCE = 3.0
READ, ASK, EDIT, FULL = PermissionMode


class Lab:
    """One loop and one provider for each home, for all tests."""

    def __init__(self, rig: OpenCodeRig) -> None:
        self.rig = rig
        self._runner = asyncio.Runner()
        self._providers: dict[str, OpenCodeProvider] = {}
        self._sessions: list[LiveSession] = []

    @property
    def model(self) -> Model:
        return self.rig.loopback

    def play(self, scene: Coroutine[Any, Any, T]) -> T:
        async def whole() -> T:
            try:
                async with asyncio.timeout(PATIENCE):
                    return await scene
            finally:
                self.model.ok()
                self.model.up()
                for session in self._sessions:
                    await session.close()
                self._sessions.clear()

        return self._runner.run(whole())

    def close(self) -> None:
        try:
            for provider in self._providers.values():
                self._runner.run(provider.close())
            left = [pid for home in self._providers for pid in self.rig.processes(home)]
            assert not left, f"processes were left behind: {left}"
            files = [file for home in self._providers for file in self.state(home).glob("*/*")]
            assert not files, f"files were left behind: {files}"
        finally:
            self._runner.close()
            self.rig.close()

    # ---------------------------------------------------------------- who plays

    def at(self, home: str = "a", change: Callable[[Settings], Settings] = lambda same: same) -> OpenCodeProvider:
        if home not in self._providers:
            settings = replace(self.rig.settings(home), state=self.state(home))
            settings = replace(settings, deadlines=replace(settings.deadlines, silence=60.0))
            self._providers[home] = OpenCodeProvider(change(settings))
        return self._providers[home]

    def state(self, home: str) -> Path:
        return self.rig.root / "state" / home

    async def end(self, home: str) -> None:
        """Close its provider; who asks for the home again gets another."""
        await self._providers.pop(home).close()

    async def api(self, home: str = "a") -> Api:
        return Api(await self.at(home)._shared.running())  # noqa: SLF001 - to see what the server itself says

    async def stored(self, cursor: Cursor, home: str = "a") -> Json:
        return await (await self.api(home)).session(cursor.native_id)

    async def messages(self, cursor: Cursor, home: str = "a") -> list[Json]:
        return list(await (await self.api(home)).messages(cursor.native_id, 30))

    def directory(self, name: str = "here") -> Directory:
        return self.rig.directory(name)

    def new_directory(self) -> Directory:
        return self.rig.directory(os.urandom(4).hex())

    # ---------------------------------------------------------------- what is played

    async def open(self, cursor: Cursor | None = None, home: str = "a", **how: Any) -> LiveSession:
        directory, mode = how.pop("directory", self.directory()), how.pop("mode", FULL)
        session = await self.at(home).open(OpenSpec(directory, mode, cursor, **how))
        self._sessions.append(session)
        return session

    async def begun(self, *prompts: str, home: str = "a", **how: Any) -> Cursor:
        """A session that has had these turns and is closed again."""
        session = await self.open(home=home, **how)
        for prompt in prompts or ("first",):
            turned = await turn(session, prompt)
            assert turned.done.ending is Ending.COMPLETED, turned.events
        cursor = session.cursor
        assert cursor is not None
        await session.close()
        return cursor

    async def goes_on(self, cursor: Cursor, prompt: str = "next", home: str = "a", **how: Any) -> Turned:
        session = await self.open(cursor, home, **how)
        turned = await turn(session, prompt)
        await session.close()
        return turned


def trusting(settings: Settings) -> Settings:
    """One that reads the configuration of a project."""
    return replace(settings, options={**settings.options, PROJECT_CONFIG: "yes"})


def hurry(session: LiveSession) -> None:
    """From the next turn on, so long a silence ends it."""
    assert isinstance(session, OpenCodeSession)
    session._deadlines = replace(session._deadlines, silence=SILENCE)  # noqa: SLF001 - a server of its own takes longer


async def turn(session: LiveSession, prompt: str, answer: Answer | None = None) -> Turned:
    """Follow a turn to its end. What is asked gets that answer; without one, nothing may be asked."""
    events: list[Event] = []
    async for event in session.turn(prompt):
        events.append(event)
        if isinstance(event, ApprovalAsked):
            assert answer is not None, f"it asks: {event}"
            assert await session.answer(event.id, answer)
    return Turned(tuple(events))


async def upto(events: AsyncIterator[Event], kind: type[T]) -> T:
    async for event in events:
        if isinstance(event, kind):
            return event
    raise AssertionError(f"there was no {kind.__name__}")


async def rest(events: AsyncIterator[Event]) -> Turned:
    return Turned(tuple([event async for event in events]))


def call(tool: str, **arguments: Any) -> str:
    """A prompt by which the model calls that tool."""
    return f"CALL: {tool} {json.dumps(arguments)}"


def subagent(kind: str, prompt: str) -> str:
    return call("task", description="a part", prompt=prompt, subagent_type=kind)


def path(directory: Directory, name: str) -> Path:
    return Path(directory.path) / name
