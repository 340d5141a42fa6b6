"""Opening, prompting and closing in one go, for the tests of a single provider."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from clew.kernel import Answer, Cursor, Directory, PermissionMode
from clew.ports.events import ApprovalAsked, Event
from clew.ports.provider import Deadlines, LiveSession, OpenSpec, Provider
from tests.providers.contract.stage import Turned

T = TypeVar("T")
QUICK = Deadlines(start=10.0, answer=5.0, silence=20.0, close=3.0)


def run(scene: Coroutine[Any, Any, T], seconds: float = 60.0) -> T:
    async def within() -> T:
        async with asyncio.timeout(seconds):
            return await scene

    return asyncio.run(within())


def place(path: Path) -> Directory:
    path.mkdir(parents=True, exist_ok=True)
    return Directory(str(path), str(path.resolve()))


def spec(
    directory: Path, mode: PermissionMode = PermissionMode.FULL, cursor: Cursor | None = None, **more: Any
) -> OpenSpec:
    return replace(OpenSpec(place(directory), mode, cursor), **more)


@asynccontextmanager
async def opened(provider: Provider, how: OpenSpec) -> AsyncIterator[LiveSession]:
    """An open session; it and its provider are closed whatever happens."""
    try:
        yield await provider.open(how)
    finally:
        await provider.close()


async def turn(session: LiveSession, prompt: str, answer: Answer = Answer.DENY) -> Turned:
    events: list[Event] = []
    async for event in session.turn(prompt):
        events.append(event)
        if isinstance(event, ApprovalAsked):
            assert await session.answer(event.id, answer)
    return Turned(tuple(events))
