"""What the tests of Claude Code share: a home, its provider, and turns followed to their end."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from clew.kernel import Answer, Cursor, Directory, PermissionMode
from clew.ports.events import ApprovalAsked, Ending, Event
from clew.ports.provider import Deadlines, LiveSession, OpenSpec, Provider, Settings
from clew.programs.process_tag import VARIABLE
from clew.providers.claude import make
from tests.providers.agents import Agents, claude_home
from tests.providers.contract.stage import Turned
from tests.providers.loopback.server import Model

READ, ASK, EDIT, FULL = PermissionMode
T = TypeVar("T")


def run(scene: Coroutine[Any, Any, T], seconds: float = 120.0) -> T:
    async def within() -> T:
        async with asyncio.timeout(seconds):
            return await scene

    return asyncio.run(within())


@dataclass(frozen=True)
class Place:
    """One home of Claude Code below a directory, and where its sessions work."""

    root: Path
    settings: Settings

    @classmethod
    def at(cls, root: Path, model: Model, agents: Agents) -> "Place":
        root.mkdir(parents=True, exist_ok=True)
        return cls(root, replace(claude_home(root, model, agents), state=root / "state"))

    @property
    def config(self) -> Path:
        return Path(self.settings.home["CLAUDE_CONFIG_DIR"])

    def work(self, name: str = "work") -> Directory:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return Directory(str(path), str(path.resolve()))

    def transcript(self, cursor: Cursor) -> Path:
        (found,) = self.config.glob(f"projects/*/{cursor.native_id}.jsonl")
        return found

    @property
    def pid(self) -> int:
        """The one `claude` that has run in this home so far, by its own note."""
        (note,) = self.config.glob("sessions/*.json")
        return int(json.loads(note.read_text())["pid"])

    @asynccontextmanager
    async def provider(self, change: Callable[[Settings], Settings] = lambda same: same) -> AsyncIterator[Provider]:
        provider = make(change(self.settings))
        try:
            yield provider
        finally:
            await provider.close()
            assert not self.left(), "processes were left behind"

    def left(self) -> list[int]:
        """The processes that a provider started for this home."""
        mark, home = f"{VARIABLE}=".encode(), os.fsencode(self.settings.home["HOME"])
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                lines = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(line.startswith(mark) for line in lines) and b"HOME=" + home in lines:
                found.append(int(entry.name))
        return found


def hasty(settings: Settings) -> Settings:
    """No patience for the program and its model."""
    return replace(settings, deadlines=Deadlines(start=60.0, answer=1.0, silence=1.5, close=1.0))


async def turn(session: LiveSession, prompt: str, answer: Answer = Answer.DENY, words: str = "") -> Turned:
    events: list[Event] = []
    async for event in session.turn(prompt):
        events.append(event)
        if isinstance(event, ApprovalAsked):
            assert await session.answer(event.id, answer, words)
    return Turned(tuple(events))


async def begun(provider: Provider, directory: Directory, *prompts: str, mode: PermissionMode = EDIT) -> Cursor:
    """A session that has had these turns and is closed again."""
    session = await provider.open(OpenSpec(directory, mode))
    for prompt in prompts:
        assert (await turn(session, prompt)).done.ending is Ending.COMPLETED
    await session.close()
    assert session.cursor is not None
    return session.cursor


def call(tool: str, **arguments: Any) -> str:
    return f"CALL: {tool} {json.dumps(arguments)}"
