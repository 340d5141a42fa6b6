"""Approvals: asked before anything is done, answered once, and never for a session that is gone."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from clew.kernel import Answer, ApprovalId, PermissionMode
from clew.ports.events import ApprovalAsked, Done, Ending, Event
from clew.ports.provider import LiveSession
from tests.providers.contract.stage import Stage, Turned, core

ASK = PermissionMode.ASK


async def asked(session: LiveSession, prompt: str) -> tuple[ApprovalAsked, AsyncIterator[Event]]:
    """Follow a turn up to its question."""
    events = session.turn(prompt)
    async for event in events:
        assert not isinstance(event, Done), "the turn ended and nothing was asked"
        if isinstance(event, ApprovalAsked):
            return event, events
    raise AssertionError("the turn has no end")


async def rest(events: AsyncIterator[Event]) -> Turned:
    return Turned(tuple([event async for event in events]))


def cannot_ask(stage: Stage) -> bool:
    if ASK in stage.provider.capabilities.modes:
        return False
    stage.unable("ask cannot be expressed")
    return True


@core
@pytest.mark.case("A03")
@pytest.mark.parametrize("given", Answer)
async def test_what_is_asked_is_done_only_when_approved(stage: Stage, given: Answer) -> None:
    if cannot_ask(stage):
        return
    session = await stage.open(mode=ASK)
    ran = stage.file("ran")
    question, events = await asked(session, stage.rig.asking(f"touch {ran}"))
    assert "touch" in (question.command or question.words)
    assert not ran.exists()
    assert await session.answer(question.id, given)
    assert (await rest(events)).done.ending in (Ending.COMPLETED, Ending.INTERRUPTED)
    assert ran.exists() is (given is Answer.APPROVE)
    assert (await stage.turn(session, "and on")).done.ending is Ending.COMPLETED


@pytest.mark.case("A03")
async def test_an_answer_counts_once(stage: Stage) -> None:
    if cannot_ask(stage):
        return
    session = await stage.open(mode=ASK)
    ran = stage.file("ran")
    question, events = await asked(session, stage.rig.asking(f"touch {ran}"))
    assert not await session.answer(ApprovalId("another"), Answer.APPROVE)
    assert await session.answer(question.id, Answer.DENY)
    assert not await session.answer(question.id, Answer.APPROVE)
    await rest(events)
    assert not await session.answer(question.id, Answer.APPROVE)
    assert not ran.exists()


@pytest.mark.case("A03")
@pytest.mark.parametrize("how", ["closed", "killed"])
async def test_an_answer_to_a_session_that_is_gone_approves_nothing(stage: Stage, how: str) -> None:
    if cannot_ask(stage):
        return
    session = await stage.open(mode=ASK)
    ran = stage.file("ran")
    question, events = await asked(session, stage.rig.asking(f"touch {ran}"))
    following = asyncio.create_task(rest(events))
    if how == "closed":
        await session.close()
    else:
        stage.rig.kill("a")
    turned = await following
    assert turned.done.ending is not Ending.COMPLETED
    assert not await session.answer(question.id, Answer.APPROVE)
    assert not ran.exists()


@pytest.mark.case("A03", "L05")
async def test_an_interrupt_takes_the_question_back(stage: Stage) -> None:
    if cannot_ask(stage):
        return
    session = await stage.open(mode=ASK)
    ran = stage.file("ran")
    question, events = await asked(session, stage.rig.asking(f"touch {ran}"))
    following = asyncio.create_task(rest(events))
    await session.interrupt()
    assert (await following).done.ending is Ending.INTERRUPTED
    assert not await session.answer(question.id, Answer.APPROVE)
    assert not ran.exists()
    assert (await stage.turn(session, "and on")).done.ending is Ending.COMPLETED
