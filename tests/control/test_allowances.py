"""Commands that are allowed always: the same command, agent, thread and permissions, and nothing else."""

import asyncio
import json
from pathlib import Path

import pytest

from clew.control.agents import change_agent
from clew.control.approvals import answer_approval, list_approvals
from clew.control.faults import BadRequest
from clew.control.threads import forget_allowed, open_chat, show_thread
from clew.control.wakes import say
from clew.kernel import ApprovalId
from clew.protocol.orders import Order
from clew.protocol.reports import Asked
from clew.protocol.requests import AgentChange, AnswerTo, NewChat, Words
from clew.store.engine.database import Database
from tests.control.kit import USER, Office, office

COMMAND = "make test"


async def asks(at: Office, order: Order, name: str, command: str = COMMAND, tool: str = "Bash", **more: object) -> str:
    """What the report that asks is answered with: the state of the question."""
    question = {"kind": "approval", "words": "May I?", "tool": tool, "command": command, **more}
    told = await at.report(order, asks=(Asked(ApprovalId(name), json.dumps(question)),))
    return next((each.state for each in told.answers if each.approval == name), "pending")


async def turn(at: Office, thread: str) -> Order:
    await say(at.services, USER, thread, Words("go"))
    order = await at.claim_one()
    await at.prompt(order)
    return order


def test_what_is_allowed_always_is_asked_once(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent("ada", mode="ask", most=4)
            await open_chat(at.services, USER, NewChat("ada"))
            await open_chat(at.services, USER, NewChat("ada"))
            order = await turn(at, "chat-1")
            assert await asks(at, order, "ap_1") == "pending"
            view = await answer_approval(at.services, USER, "ap_1", AnswerTo(always=True))
            assert view.state == "approved"
            assert await asks(at, order, "ap_2") == "approved", "at once, with the report that asks"
            assert await asks(at, order, "ap_3", "make tests") == "pending", "another command"
            assert await asks(at, order, "ap_4", tool="Shell") == "pending", "another tool"
            assert await asks(at, order, "ap_5", kind="question") == "pending", "a question is not a permission"
            (again,) = [each for each in await list_approvals(at.services, USER, "approved") if each.id == "ap_2"]
            assert again.answered_by == "user (always)"
            assert (await show_thread(at.services, USER, "chat-1")).lanes[0].allowed == (COMMAND,)
            await at.finish(order)
            # It lasts for the thread, and for no other.
            order = await turn(at, "chat-1")
            assert await asks(at, order, "ap_6") == "approved"
            other = await turn(at, "chat-2")
            assert await asks(at, other, "ap_7") == "pending"
            # Whoever changes what the agent may do is asked again.
            await change_agent(at.services, USER, "ada", AgentChange(mode="read"))
            assert await asks(at, order, "ap_8") == "pending"
            await change_agent(at.services, USER, "ada", AgentChange(mode="ask"))
            assert await asks(at, order, "ap_9") == "approved"
            lane = await forget_allowed(at.services, USER, "chat-1", "ada")
            assert lane.allowed == ()
            assert await asks(at, order, "ap_10") == "pending"

    asyncio.run(story())


def test_only_a_command_that_is_allowed_can_be_allowed_always(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent("ada", mode="ask")
            await open_chat(at.services, USER, NewChat("ada"))
            order = await turn(at, "chat-1")
            await asks(at, order, "ap_1")
            with pytest.raises(BadRequest, match="A denial is for once"):
                await answer_approval(at.services, USER, "ap_1", AnswerTo(allow=False, always=True))
            question = {"kind": "approval", "words": "May I write?", "tool": "Write", "file": "a.txt"}
            await at.report(order, asks=(Asked(ApprovalId("ap_2"), json.dumps(question)),))
            with pytest.raises(BadRequest, match="ap_2 asks for something else"):
                await answer_approval(at.services, USER, "ap_2", AnswerTo(always=True))
            pending = {each.id for each in await list_approvals(at.services, USER)}
            assert pending == {"ap_1", "ap_2"}, "a refused answer changes nothing"

    asyncio.run(story())
