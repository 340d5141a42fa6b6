"""Words within a turn of the real Codex: only what it tells back is part of the turn."""

import asyncio
import json

import pytest

from clew.ports.events import Ending, Event, ToolStarted
from tests.providers.codex.kit import Lab, turn
from tests.providers.contract.stage import Turned


@pytest.mark.case("W13")
def test_the_same_words_as_the_prompts_are_told_apart_from_it(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open(lab.provider())
        prompt = "RUN: sleep 1"
        going = asyncio.Event()

        async def follow() -> Turned:
            events: list[Event] = []
            async for event in session.turn(prompt):
                events.append(event)
                if isinstance(event, ToolStarted):
                    going.set()
            return Turned(tuple(events))

        following = asyncio.create_task(follow())
        await going.wait()
        before = len(lab.model.work)
        assert await session.steer(prompt)
        turned = await following
        assert turned.done.ending is Ending.COMPLETED
        assert lab.model.work[before].prompts == (prompt, prompt)
        # It is done twice, as it was said twice.
        assert len(turned.of(ToolStarted)) == 2

    lab.play(scene())


@pytest.mark.case("W13")
def test_what_it_noted_and_did_not_come_to_is_dropped_with_the_turn(lab: Lab) -> None:
    async def scene() -> None:
        provider = lab.provider()
        session = await lab.open(provider)
        events = session.turn("RUN: sleep 30")
        async for event in events:
            if isinstance(event, ToolStarted):
                break
        telling = asyncio.create_task(session.steer("noted-words"))
        await asyncio.sleep(0.5)
        assert not telling.done(), "that Codex has noted it is not that its model heard it"
        await session.interrupt()
        assert not await telling
        async for _ in events:
            pass
        await turn(session, "after")
        assert "noted-words" not in json.dumps(lab.model.work[-1].body)

    lab.play(scene())
