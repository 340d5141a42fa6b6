"""Words within a turn of the real program: what becomes of those that come too late for it."""

import asyncio
import json

import pytest

from clew.ports.events import Ending, Event, Text, ToolStarted
from clew.ports.provider import LiveSession, OpenSpec
from tests.providers.claude.kit import FULL, Place, call, run, turn
from tests.providers.contract.stage import Turned
from tests.providers.loopback.server import Model


async def up_to(session: LiveSession, prompt: str, kind: type[Event]) -> "asyncio.Task[Turned]":
    """A turn that goes on, once it has come to such an event."""
    there = asyncio.Event()

    async def follow() -> Turned:
        events: list[Event] = []
        async for event in session.turn(prompt):
            events.append(event)
            if isinstance(event, kind):
                there.set()
        return Turned(tuple(events))

    task = asyncio.create_task(follow())
    await there.wait()
    return task


@pytest.mark.case("W13")
def test_what_was_too_late_can_be_said_again_in_the_next_turn_in_the_same_words(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            for number in range(3):
                going = await up_to(session, "SLOW: 0.3\nSAY: a long answer", Text)
                before = len(model.work)
                assert not await session.steer("again and again")
                # It did not take a turn of its own for it, and the turn's answer is the turn's.
                turned = await going
                assert (turned.done.ending, turned.reply) == (Ending.COMPLETED, "a long answer")
                after = await turn(session, "again and again")
                assert (after.seen.last, after.seen.users) == ("again and again", 2 * (number + 1))
                assert len(model.work) == before + 1

    run(scene())


@pytest.mark.case("W13", "S13")
def test_what_the_agent_begins_by_itself_is_kept_apart_from_what_was_too_late(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            background = call("Bash", command="sleep 0.1; echo over", description="wait", run_in_background=True)
            going = await up_to(session, f"{background}\nSLOW: 1.5\nSAY: a long answer", Text)
            assert not await session.steer("too-late-words")
            assert (await going).reply == "a long answer"
            await asyncio.sleep(0.5)
            assert (await turn(session, "what now?")).seen.last == "what now?"
            assert (await turn(session, "and now?")).seen.last == "and now?"
            assert not any("too-late-words" in json.dumps(request.body) for request in model.work)

    run(scene())


@pytest.mark.case("W13", "P19")
def test_words_left_in_the_queue_of_a_turn_that_was_left_are_withdrawn(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            going = await up_to(session, "SLOW: 5\nSAY: a long answer", Text)
            steering = asyncio.create_task(session.steer("words-in-the-queue"))
            await asyncio.sleep(0.2)
            going.cancel()
            await asyncio.wait([going])
            assert not await steering
            assert (await turn(session, "what now?")).seen.last == "what now?"
            assert (await turn(session, "and now?")).seen.last == "and now?"
            assert not any("words-in-the-queue" in json.dumps(request.body) for request in model.work)

    run(scene())


@pytest.mark.case("W13")
def test_one_after_the_other_and_a_slash_is_no_command(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            going = await up_to(session, "RUN: sleep 1\nRUN: sleep 1\nSAY: done", ToolStarted)
            assert all(await asyncio.gather(session.steer("/first of all"), session.steer("second-words")))
            assert (await going).reply == "done"
            last = json.dumps(model.work[-1].body)
            assert (last.count("/first of all"), last.count("second-words")) == (1, 1)
            assert not await session.steer("nobody is there")

    run(scene())


@pytest.mark.case("W13", "L13")
def test_a_program_that_dies_has_taken_nothing(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            going = await up_to(session, "RUN: sleep 30", ToolStarted)
            telling = asyncio.create_task(session.steer("dying-words"))
            await asyncio.sleep(0.3)
            await session.close()
            assert not await telling
            assert (await going).done.ending is Ending.INTERRUPTED
            again = await provider.open(OpenSpec(place.work(), FULL, session.cursor))
            await turn(again, "after")
            assert "dying-words" not in json.dumps(model.work[-1].body)

    run(scene())
