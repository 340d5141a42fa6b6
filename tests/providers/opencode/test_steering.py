"""Words within a turn of the real OpenCode: no answer is lost, and the turn is over when the last one is given."""

import asyncio

import pytest

from clew.ports.events import Done, Ending, Text, ToolStarted
from tests.providers.opencode.kit import FULL, Lab, rest, turn, upto


@pytest.mark.case("W13")
def test_both_answers_are_the_turns(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        events = session.turn("SLOW: 1\nSAY: the first answer")
        await upto(events, Text)
        assert await session.steer("SAY: the second answer")
        turned = await rest(events)
        assert (turned.done.ending, turned.reply) == (Ending.COMPLETED, "the first answer\n\nthe second answer")
        assert len(turned.of(Done)) == 1
        # The next turn has its own answer alone.
        assert (await turn(session, "SAY: another")).reply == "another"

    lab.play(scene())


@pytest.mark.case("W13")
def test_words_around_the_end_belong_to_this_turn_or_to_none(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        await turn(session, "SAY: warm")
        for number in range(8):
            telling = asyncio.create_task(_later(session.steer, f"SAY: second {number}", 0.02 * number))
            turned = await turn(session, "SAY: first")
            taken = await telling
            assert turned.reply == (f"first\n\nsecond {number}" if taken else "first")

    lab.play(scene())


@pytest.mark.case("W13", "L05")
def test_an_interrupt_does_not_wait_for_an_answer_that_will_not_come(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open(mode=FULL)
        events = session.turn("RUN: sleep 40")
        await upto(events, ToolStarted)
        assert await session.steer("SAY: never said")
        at = asyncio.get_running_loop().time()
        stopping = asyncio.create_task(session.interrupt())
        turned = await rest(events)
        await stopping
        assert turned.done.ending is Ending.INTERRUPTED
        assert asyncio.get_running_loop().time() - at < 3.0
        assert (await turn(session, "SAY: another")).reply == "another"

    lab.play(scene())


async def _later(steer: object, words: str, seconds: float) -> bool:
    await asyncio.sleep(seconds)
    assert callable(steer)
    taken: bool = await steer(words)
    return taken
