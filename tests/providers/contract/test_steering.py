"""Words within a turn that is going: part of it and of the session from then on, or not told at all."""

import asyncio

import pytest

from clew.kernel import Answer, Cursor, PermissionMode
from clew.ports.events import Ending, Text
from clew.ports.provider import LiveSession
from tests.providers.contract.stage import Stage, Turned, core, eventually
from tests.providers.contract.test_approvals import asked, cannot_ask, rest
from tests.providers.contract.test_interrupt import until

MARK = "meanwhile-we-say-this"
# The answer is not to repeat the mark, which is counted.
WORDS = f"{MARK}\nSAY: noted"


async def unable(stage: Stage) -> bool:
    if stage.provider.capabilities.steers:
        return False
    session = await stage.open()
    await stage.refused(session.steer(WORDS), "it takes no words within a turn")
    return True


async def at_work(stage: Stage, session: LiveSession, seconds: float) -> "asyncio.Task[Turned]":
    """A turn that runs a command for that long."""
    begun = stage.file("begun")
    turn = asyncio.create_task(stage.turn(session, stage.rig.run(f"touch {begun}; sleep {seconds:g}")))
    assert await eventually(begun.exists, 30.0)
    return turn


def heard(stage: Stage) -> int:
    """How often the words stand in all that the agent's model was handed last."""
    return stage.rig.heard().count(MARK)


async def afterwards(stage: Stage, session: LiveSession) -> tuple[int, int]:
    """How often they stand in the next turn, and in one of another process."""
    await stage.turn(session, "after")
    here, cursor = heard(stage), session.cursor
    assert cursor is not None
    return here, await _elsewhere(stage, session, cursor)


async def _elsewhere(stage: Stage, session: LiveSession, cursor: Cursor) -> int:
    await session.close()
    again = await stage.open(cursor)
    await stage.turn(again, "once more")
    return heard(stage)


@core
@pytest.mark.case("W13")
async def test_words_during_a_tool_become_part_of_the_turn_and_the_session(stage: Stage) -> None:
    if await unable(stage):
        return
    session = await stage.open()
    turn = await at_work(stage, session, 1.5)
    assert await session.steer(WORDS)
    assert (await turn).done.ending is Ending.COMPLETED
    assert heard(stage) == 1
    assert await afterwards(stage, session) == (1, 1)


@core
@pytest.mark.case("W13")
async def test_words_during_an_answer_are_told_once_or_not_at_all(stage: Stage) -> None:
    if await unable(stage):
        return
    session = await stage.open()
    turn = await until(session, stage.rig.slow(1.0), lambda event: isinstance(event, Text))
    taken = await session.steer(WORDS)
    assert (await turn).done.ending is Ending.COMPLETED
    assert heard(stage) == int(taken)
    assert await afterwards(stage, session) == (int(taken), int(taken))


@pytest.mark.case("W13")
async def test_words_without_a_turn_are_not_told(stage: Stage) -> None:
    if await unable(stage):
        return
    session = await stage.open()
    assert not await session.steer(WORDS)
    await stage.turn(session, "first")
    assert not await session.steer(WORDS)
    assert await afterwards(stage, session) == (0, 0)


@pytest.mark.case("W13", "L05")
async def test_an_interrupt_settles_what_was_to_be_told(stage: Stage) -> None:
    if await unable(stage):
        return
    session = await stage.open()
    turn = await at_work(stage, session, 30.0)
    telling = asyncio.create_task(session.steer(WORDS))
    await asyncio.sleep(0.3)
    await session.interrupt()
    assert (await turn).done.ending is Ending.INTERRUPTED
    async with asyncio.timeout(10):
        taken = await telling
    assert await afterwards(stage, session) == (int(taken), int(taken))


@pytest.mark.case("W13", "A03")
async def test_words_do_not_answer_what_the_agent_asks(stage: Stage) -> None:
    if await unable(stage) or cannot_ask(stage):
        return
    session = await stage.open(mode=PermissionMode.ASK)
    ran = stage.file("ran")
    question, events = await asked(session, stage.rig.asking(f"touch {ran}"))
    telling = asyncio.create_task(session.steer(WORDS))
    await asyncio.sleep(0.5)
    assert not ran.exists()
    assert await session.answer(question.id, Answer.APPROVE)
    assert (await rest(events)).done.ending is Ending.COMPLETED
    assert ran.exists()
    assert await telling
    assert heard(stage) == 1
