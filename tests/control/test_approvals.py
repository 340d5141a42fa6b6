"""Approvals: shown where they are asked, answered once, and never on behalf of a session that is gone."""

import asyncio
import json
from pathlib import Path

import pytest

from clew.control.approvals import answer_approval, approvals_of, list_approvals
from clew.control.chats import open_chat
from clew.control.faults import AnswerRefused, BadRequest
from clew.control.speaking import say
from clew.control.stopping import cancel_run
from clew.control.threads import show_thread
from clew.kernel import ApprovalId
from clew.store.database import Database
from clew.store.faults import NoSuchApproval
from clew.wire.asks import AnswerTo, NewChat, Words
from clew.wire.ends import Stopped
from clew.wire.orders import Order
from clew.wire.reports import Asked
from tests.control.kit import Office, office

QUESTION = {"kind": "approval", "words": "May I run it?", "tool": "shell", "command": "rm -r build"}


async def _asking(at: Office, *asks: Asked) -> Order:
    await at.agent()
    await open_chat(at.desk, NewChat("ada"))
    await say(at.desk, "chat-1", Words("hello"))
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
            )
            page = await show_thread(at.desk, "chat-1")
            assert page.thread.status == "waiting"
            assert {each.id for each in page.approvals} == {"ap-1", "ap-2", "ap-3"}
            by_id = {each.id: each for each in await list_approvals(at.desk)}
            first, second, third = by_id["ap-1"], by_id["ap-2"], by_id["ap-3"]
            assert (first.kind, first.tool, first.command, first.words) == (
                "approval",
                "shell",
                "rm -r build",
                "May I run it?",
            )
            assert (second.kind, second.choices, third.words) == ("question", ("red", "blue"), "plain words")
            assert (first.thread, first.agent, first.run) == ("chat-1", "ada", order.run)
            with pytest.raises(BadRequest, match="it is no question"):
                await answer_approval(at.desk, "ap-1", AnswerTo(text="No! Do not do this."))
            answered = await answer_approval(at.desk, "ap-1", AnswerTo(True))
            assert (answered.state, answered.answered_by) == ("approved", "user")
            # The same answer again is the same answer; another one comes too late.
            assert await answer_approval(at.desk, "ap-1", AnswerTo(True)) == answered
            with pytest.raises(AnswerRefused, match="settled before as approved"):
                await answer_approval(at.desk, "ap-1", AnswerTo(False))
            assert (await answer_approval(at.desk, "ap-2", AnswerTo(text="red"))).answer == "red"
            assert [each.id for each in await list_approvals(at.desk)] == ["ap-3"]
            assert len(await list_approvals(at.desk, state="all")) == 3
            assert [each.id for each in await list_approvals(at.desk, state="approved", limit=500)] != []
            assert len(await approvals_of(at.desk, order.run)) == 3
            given = {each.approval: (each.state, each.words) for each in (await at.report(order)).answers}
            assert given == {"ap-1": ("approved", ""), "ap-2": ("approved", "red")}

    asyncio.run(story())


@pytest.mark.case("A03")
def test_an_answer_to_a_dead_session_is_stale_and_never_approved(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await _asking(at, Asked(ApprovalId("ap-1"), json.dumps(QUESTION)))
            await cancel_run(at.desk, order.run)
            await at.finish(order, Stopped())
            with pytest.raises(AnswerRefused, match="settled before as stale"):
                await answer_approval(at.desk, "ap-1", AnswerTo(True))
            (shown,) = await list_approvals(at.desk, state="all")
            assert (shown.state, shown.answered_by) == ("stale", None)

    asyncio.run(story())


def test_what_nobody_asked_cannot_be_answered(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            for odd in ("ap-9", "", "\0"):
                with pytest.raises(NoSuchApproval):
                    await answer_approval(at.desk, odd, AnswerTo())
            with pytest.raises(BadRequest, match="No approval is ever"):
                await list_approvals(at.desk, state="maybe")

    asyncio.run(story())
