"""What the real program runs in the background: until it has ended, its session works on."""

import asyncio
from pathlib import Path

import pytest

from clew.ports.events import Ending
from clew.ports.provider import LiveSession, OpenSpec, Provider
from clew.providers.claude.session import ClaudeSession
from tests.providers.claude.kit import ASK, FULL, Place, call, run, turn


def background(command: str) -> str:
    return call("Bash", command=command, description="in the background", run_in_background=True)


async def opened(provider: Provider, spec: OpenSpec) -> tuple[LiveSession, ClaudeSession]:
    session = await provider.open(spec)
    assert isinstance(session, ClaudeSession)
    return session, session


def works(live: ClaudeSession) -> bool:
    return live.works_on


async def ends(live: ClaudeSession) -> None:
    async with asyncio.timeout(20.0):
        while live.works_on:
            await asyncio.sleep(0.05)


@pytest.mark.case("P17")
def test_a_session_works_on_until_its_background_has_ended(place: Place) -> None:
    stop = Path(place.root) / "stop"
    waiting = f"until [ -e {stop} ]; do sleep 0.1; done"

    async def scene() -> None:
        async with place.provider() as provider:
            session, live = await opened(provider, OpenSpec(place.work(), FULL))
            assert not works(live)
            await turn(session, background(waiting))
            assert works(live)
            # Turns that come between, also those that do not end well, change nothing.
            assert (await turn(session, "hello")).done.ending is Ending.COMPLETED
            going = asyncio.create_task(turn(session, "SLOW: 20"))
            await asyncio.sleep(0.5)
            await session.interrupt()
            assert (await going).done.ending is Ending.INTERRUPTED
            await turn(session, background("true"))
            assert works(live)
            await asyncio.sleep(1.0)
            assert works(live)
            stop.touch()
            await ends(live)
            await turn(session, "RUN: true")
            assert not works(live)

    run(scene())


@pytest.mark.case("P17")
def test_an_agent_in_the_background_is_work_and_ends_with_its_process(place: Place) -> None:
    side = call(
        "Agent", description="d", prompt="RUN: sleep 2", subagent_type="general-purpose", run_in_background=True
    )

    async def scene() -> None:
        async with place.provider() as provider:
            session, live = await opened(provider, OpenSpec(place.work(), FULL))
            await turn(session, side)
            assert works(live)
            await ends(live)
            await turn(session, background("sleep 300"))
            assert works(live)
            # Another process has nothing of it.
            assert await session.set_mode(ASK) is ASK
            assert not works(live)
            await session.close()
            assert not works(live)

    run(scene())
