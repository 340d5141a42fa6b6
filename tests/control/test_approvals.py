"""Approvals: shown where they are asked, answered once, and never on behalf of a session that is gone."""

import asyncio
import json
from pathlib import Path

import pytest

from clew.control.approvals import answer_approval, approvals_of, list_approvals
from clew.control.faults import AnswerRefused, BadRequest
from clew.control.runs import cancel_run
from clew.control.threads import open_chat, show_thread
from clew.control.timers import run_due
from clew.control.wakes import say
from clew.kernel import ApprovalId
from clew.protocol.orders import Order
from clew.protocol.reports import Asked, Stopped
from clew.protocol.requests import AnswerTo, NewChat, Words
from clew.store.engine.database import Database
from clew.store.engine.dialect import read_clock
from clew.store.faults import Ambiguous, NoSuchApproval
from tests.control.kit import USER, Office, office

QUESTION = {"kind": "approval", "words": "May I run it?", "tool": "shell", "command": "rm -r build"}


async def _asking(at: Office, *asks: Asked) -> Order:
    await at.agent()
    await open_chat(at.services, USER, NewChat("ada"))
    await say(at.services, USER, "chat-1", Words("hello"))
    order = await at.claim_one()
    await at.prompt(order, "n-1")
    await at.report(order, asks=asks)
    return order


@pytest.mark.case("A03")
def test_what_an_agent_asks_is_shown_and_answered_once(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            choose = {"kind": "question", "words": "Which?", "choices": ["red", "blue"]}
            order = await _asking(
                at,
                Asked(ApprovalId("ap-1"), json.dumps(QUESTION)),
                Asked(ApprovalId("ap-2"), json.dumps(choose)),
                Asked(ApprovalId("ap-3"), "plain words"),
                Asked(ApprovalId("ap_01a1f0"), "and this"),
            )
            await answer_approval(at.services, USER, "ap_01a1f0", AnswerTo(True))
            page = await show_thread(at.services, USER, "chat-1")
            assert page.thread.status == "waiting"
            assert {each.id for each in page.approvals} == {"ap-1", "ap-2", "ap-3"}
            by_id = {each.id: each for each in await list_approvals(at.services, USER)}
            first, second, third = by_id["ap-1"], by_id["ap-2"], by_id["ap-3"]
            assert (first.kind, first.tool, first.command, first.words) == (
                "approval",
                "shell",
                "rm -r build",
                "May I run it?",
            )
            assert (second.kind, second.choices, third.words) == ("question", ("red", "blue"), "plain words")
            assert (first.thread, first.agent, first.run) == ("chat-1", "ada", order.run)
            with pytest.raises(BadRequest, match="it is not a question"):
                await answer_approval(at.services, USER, "ap-1", AnswerTo(text="No! Do not do this."))
            answered = await answer_approval(at.services, USER, "ap-1", AnswerTo(True))
            assert (answered.state, answered.answered_by) == ("approved", "user")
            # The same answer again is the same answer; another one comes too late.
            assert await answer_approval(at.services, USER, "ap-1", AnswerTo(True)) == answered
            # Nor by a beginning of its name: it is not missing, it is settled.
            for name in ("ap-1", "ap_01a1", "01a1"):
                with pytest.raises(AnswerRefused, match=r"ended as approved by user at \d{4}-\d\d-\d\d \d\d:"):
                    await answer_approval(at.services, USER, name, AnswerTo(False))
            with pytest.raises(Ambiguous, match="Several approvals begin with 'ap'"):
                await answer_approval(at.services, USER, "ap", AnswerTo(True))
            assert (await answer_approval(at.services, USER, "ap-2", AnswerTo(text="red"))).answer == "red"
            assert [each.id for each in await list_approvals(at.services, USER)] == ["ap-3"]
            assert len(await list_approvals(at.services, USER, state="all", run=order.run)) == 4
            assert [each.id for each in await list_approvals(at.services, USER, state="approved", limit=500)] != []
            assert len(await approvals_of(at.services, USER, order.run)) == 4
            given = {each.approval: (each.state, each.words) for each in (await at.report(order)).answers}
            assert given == {"ap-1": ("approved", ""), "ap-2": ("approved", "red"), "ap_01a1f0": ("approved", "")}

    asyncio.run(story())


@pytest.mark.case("A03")
def test_an_answer_to_a_dead_session_is_stale_and_never_approved(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await _asking(at, Asked(ApprovalId("ap-1"), json.dumps(QUESTION)))
            await cancel_run(at.services, USER, order.run)
            await at.finish(order, Stopped())
            with pytest.raises(AnswerRefused, match="ended as stale at "):
                await answer_approval(at.services, USER, "ap-1", AnswerTo(True))
            (shown,) = await list_approvals(at.services, USER, state="all")
            assert (shown.state, shown.answered_by) == ("stale", None)

    asyncio.run(story())


def test_what_nobody_asked_cannot_be_answered(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            for odd in ("ap-9", "", "\0"):
                with pytest.raises(NoSuchApproval):
                    await answer_approval(at.services, USER, odd, AnswerTo())
            with pytest.raises(BadRequest, match="Unknown approval state"):
                await list_approvals(at.services, USER, state="maybe")

    asyncio.run(story())


@pytest.mark.case("A03")
def test_what_nobody_answers_in_time_is_denied_and_whoever_asked_is_told(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            now = database.read(read_clock)
            order = await _asking(
                at,
                Asked(ApprovalId("ap-1"), json.dumps(QUESTION), now - 1),
                Asked(ApprovalId("ap-2"), json.dumps(QUESTION), now + 3_600),
                Asked(ApprovalId("ap-3"), json.dumps(QUESTION)),
            )
            assert await run_due(at.services, USER, 0.0) == 1
            assert await run_due(at.services, USER, 0.0) == 0
            words = "Nobody answered in time, so it is denied."
            by_id = {each.id: each for each in await list_approvals(at.services, USER, state="all")}
            over = by_id["ap-1"]
            assert (over.state, over.answered_by, over.answer) == ("expired", None, words)
            assert over.ended_at is not None
            assert (by_id["ap-2"].state, by_id["ap-3"].state) == ("pending", "pending")
            given = [(each.approval, each.state, each.words) for each in (await at.report(order)).answers]
            assert given == [("ap-1", "expired", words)]
            with pytest.raises(AnswerRefused, match="ap-1 ended as expired at "):
                await answer_approval(at.services, USER, "ap-1", AnswerTo(True))

    asyncio.run(story())
