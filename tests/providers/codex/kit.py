"""The real Codex in homes of the test's own, and a way to play a scene with it."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from clew.kernel import Answer, Cursor, Directory, PermissionMode, PromptId
from clew.ports.events import ApprovalAsked, Ending, Event
from clew.ports.provider import LiveSession, OpenSpec, Settings
from clew.programs.program import Program, start
from clew.programs.rpc import Peer
from clew.providers.codex.provider import CodexProvider
from tests.providers.contract.stage import Turned
from tests.providers.loopback.server import Model
from tests.providers.rigs.codex import CodexRig

T = TypeVar("T")
Scene = Coroutine[Any, Any, T]
PATIENCE = 60.0
READ, ASK, EDIT, FULL = PermissionMode


class Lab:
    def __init__(self, rig: CodexRig) -> None:
        self.rig = rig
        self._providers: list[CodexProvider] = []
        self._roots: dict[str, Path] = {}

    @property
    def model(self) -> Model:
        return self.rig.loopback

    def play(self, scene: Scene[T]) -> T:
        """Whatever the scene opened is closed after it, and then nothing runs on."""

        async def whole() -> T:
            try:
                async with asyncio.timeout(PATIENCE):
                    return await scene
            finally:
                for provider in self._providers:
                    await provider.close()

        result = asyncio.run(whole())
        left = [pid for home in ("a", "b") for pid in self.rig.processes(home)]
        assert not left, f"processes were left behind: {left}"
        return result

    def provider(self, home: str = "a", change: Callable[[Settings], Settings] = lambda same: same) -> CodexProvider:
        self._providers.append(CodexProvider(change(self.rig.settings(home))))
        return self._providers[-1]

    def root(self, home: str = "a") -> Path:
        """Where Codex keeps its files. A home is made when it is first asked for."""
        if home not in self._roots:
            self._roots[home] = Path(self.rig.settings(home).home["CODEX_HOME"])
        return self._roots[home]

    def configure(self, text: str, home: str = "a") -> None:
        """Add to the settings of a home."""
        self.rig.added[home] = text
        self.rig.settings(home)

    def directory(self, name: str = "here") -> Directory:
        return self.rig.directory(name)

    def file(self, name: str, directory: str = "here") -> Path:
        return Path(self.directory(directory).path) / name

    def rollouts(self, home: str = "a") -> list[Path]:
        return sorted((self.root(home) / "sessions").rglob("rollout-*.jsonl"))

    async def open(
        self, provider: CodexProvider, cursor: Cursor | None = None, directory: str = "here", **how: Any
    ) -> LiveSession:
        return await provider.open(OpenSpec(self.directory(directory), how.pop("mode", FULL), cursor, **how))

    async def begun(self, provider: CodexProvider, prompt: str = "first", **how: Any) -> Cursor:
        """A session that has had one turn and is closed again."""
        session = await self.open(provider, **how)
        assert (await turn(session, prompt)).done.ending is Ending.COMPLETED
        cursor = session.cursor
        assert cursor is not None
        await session.close()
        return cursor

    async def goes_on(self, provider: CodexProvider, cursor: Cursor, prompt: str = "next", **how: Any) -> Turned:
        session = await self.open(provider, cursor, **how)
        turned = await turn(session, prompt)
        await session.close()
        return turned

    async def raw(self, method: str, arguments: dict[str, Any], home: str = "a") -> dict[str, Any]:
        """One call to a program of the test's own, as another client would make it."""
        async with asyncio.timeout(PATIENCE):
            program, peer = await self.client(home)
            try:
                answer: dict[str, Any] = await peer.call(method, arguments, 30)
                return answer
            finally:
                await program.close_input()
                await program.wait(5)
                await program.end(5)
                await peer.close()

    async def holding(self, cursor: Cursor, home: str = "a") -> Callable[[], Coroutine[Any, Any, None]]:
        """Another client that has the thread loaded; call what comes back to end it."""
        program, peer = await self.client(home)
        await peer.call("thread/resume", {"threadId": cursor.native_id}, 30)

        async def end() -> None:
            await program.end(5)
            await peer.close()

        return end

    async def client(self, home: str) -> tuple[Program, Peer]:
        settings = self.rig.settings(home)
        environment = {"PATH": "/usr/bin:/bin", **settings.home, **settings.environment}
        program = await start((*settings.program, "app-server"), self.root(home), environment)
        peer = Peer(program, lambda *_: None, lambda *_: None, lambda _: None)
        about = {"name": "another", "title": "another", "version": "0"}
        await peer.call("initialize", {"clientInfo": about, "capabilities": {"experimentalApi": True}}, 30)
        await peer.notify("initialized")
        return program, peer


def quick(settings: Settings) -> Settings:
    return replace(settings, deadlines=replace(settings.deadlines, silence=3.0))


async def turn(session: LiveSession, prompt: str, answer: Answer | None = None, id_: PromptId | None = None) -> Turned:
    """Follow a turn to its end. What is asked gets that answer; without one, nothing may be asked."""
    events: list[Event] = []
    async for event in session.turn(prompt, id_):
        events.append(event)
        if isinstance(event, ApprovalAsked):
            assert answer is not None, f"it asks: {event}"
            assert await session.answer(event.id, answer)
    return Turned(tuple(events))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def told_to_the_model(model: Model) -> list[dict[str, Any]]:
    """The last request, without what is made anew for each."""
    return [{key: value for key, value in item.items() if key != "id"} for item in model.work[-1].body["input"]]
