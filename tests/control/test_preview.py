"""A preview says what a message would do, as it is then decided; where it came out differently, the record says so."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from clew.control.agents import change_agent
from clew.control.decisions import explain
from clew.control.faults import BadRequest
from clew.control.issues import open_issue
from clew.control.preview import preview_message
from clew.control.projects import add_project
from clew.control.runs import show_run
from clew.control.threads import close_thread, open_chat, set_overlap
from clew.control.wakes import poke, say
from clew.kernel import WaitsFor
from clew.protocol.preview import PreviewView
from clew.protocol.reports import Returned, RunEventRecord, Steered
from clew.protocol.requests import AgentChange, NewChat, NewIssue, NewProject, Poke, Words
from clew.protocol.views import WakeView
from clew.store.engine.database import Database
from clew.store.faults import NoSuchAgent
from clew.store.schema.tables import metadata
from tests.control.kit import USER, Office, office
from tests.control.test_steering import at_work


def everything(connection: Connection) -> dict[str, list[Any]]:
    return {table.name: list(connection.execute(select(table))) for table in metadata.sorted_tables}


async def preview(at: Office, ref: str = "chat-1", **how: Any) -> PreviewView:
    """Whatever it says, nothing is written."""
    before = at.database.read(everything)
    found = await preview_message(at.services, USER, ref, Words("", **how))
    assert at.database.read(everything) == before
    assert "preview" in found.note
    return found


async def said(at: Office, text: str, ref: str = "chat-1", **how: Any) -> WakeView:
    spoken = await say(at.services, USER, ref, Words(text, **how))
    assert spoken.wake is not None
    return spoken.wake


async def a_chat(at: Office) -> None:
    await at.agent()
    await open_chat(at.services, USER, NewChat("ada"))


async def a_conversation(at: Office) -> None:
    await a_chat(at)
    await said(at, "one")
    await at.serve("n-1")


async def a_conversation_with_news(at: Office) -> None:
    await a_conversation(at)
    for note in ("a note", "another"):
        await say(at.services, USER, "chat-1", Words(note, wakes=False))


async def something_waits(at: Office) -> None:
    await a_conversation(at)
    await said(at, "two")


async def it_was_held(at: Office) -> None:
    await something_waits(at)
    await at.finish(await at.claim_one(), Returned("the branch is gone", "workspace:gone", WaitsFor.PERSON))


async def a_heartbeat_waits(at: Office) -> None:
    await a_conversation(at)
    await poke(at.services, USER, Poke("ada", "chat-1"))


Scene = Callable[[Office], Awaitable[None]]
SCENES: list[Scene] = [
    a_chat,
    a_conversation,
    a_conversation_with_news,
    something_waits,
    it_was_held,
    a_heartbeat_waits,
]


@pytest.mark.case("W16", "C33")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: str(scene.__name__))
@pytest.mark.parametrize("how", [{}, {"fresh": True}, {"agent": "bob"}], ids=str)
def test_what_a_preview_says_is_what_the_claim_decides(
    database: Database, tmp_path: Path, scene: Scene, how: dict[str, Any]
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent("bob")
            await scene(at)
            found = await preview(at, **how)
            spoken = await say(at.services, USER, "chat-1", Words("now", preview=found.token, **how))
            assert spoken.wake is not None
            assert spoken.entry == found.entry
            orders = [order for order in await at.claim(4) if spoken.wake.id in {wake.id for wake in order.wakes}]
            (order,) = orders
            plan = order.plan
            session = plan.session
            assert plan.workspace is not None
            assert plan.mode is not None
            assert (found.outcome, found.code) == (plan.outcome, plan.reason.code)
            assert (found.session, found.generation) == (
                (None, None) if session is None else (session.id, session.generation)
            )
            assert (found.machine, found.directory) == ("the laptop", plan.workspace.directory.path)
            assert (found.branch, found.mode) == (plan.workspace.branch, plan.mode.value)
            earlier = [entry.seq for entry in order.entries if entry.seq != found.entry]
            assert (found.first, found.last) == ((earlier[0], earlier[-1]) if earlier else (None, None))
            why = await explain(at.services, USER, spoken.wake.id)
            assert why.notices == ()

    asyncio.run(story())


@pytest.mark.case("W16")
def test_the_sentence_names_session_machine_place_and_entries(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await a_chat(at)
            home = f"on the laptop in {tmp_path}/homes/ada"
            found = await preview(at)
            assert found.words == f"Starts a new conversation {home}, told this message."
            await said(at, "one")
            await at.serve("n-1")
            assert (await preview(at)).words == f"Continues session 1 {home}, told this message."
            await say(at.services, USER, "chat-1", Words("a note", wakes=False))
            assert (await preview(at)).words == f"Continues session 1 {home}, told entry 3 and this message."
            await said(at, "two")
            assert (await preview(at)).words == f"Continues session 1 {home}, told entries 3 to 4 and this message."
            fresh = (await preview(at, fresh=True)).words
            assert fresh.startswith(
                f"Starts a new conversation {home}, told entry 4 and this message. New conversation"
            )

    asyncio.run(story())


@pytest.mark.case("W16")
def test_a_branch_is_named_where_the_agent_gets_one(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            (tmp_path / "web" / ".git").mkdir(parents=True)
            await add_project(at.services, USER, NewProject("web", str(tmp_path / "web")))
            await open_issue(at.services, USER, NewIssue("Login page", project="web"))
            found = await preview(at, "issue-1", agent="ada")
            assert (found.branch, found.outcome) == ("clew/issue-1-login-page", "reseed")
            assert "on the laptop in clew/issue-1-login-page, told entry 1 and this message." in found.words

    asyncio.run(story())


@pytest.mark.case("W16", "W13")
def test_a_busy_agent_is_named_with_its_run(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            run = (await show_run(at.services, USER, (await at_work(at)).run)).ref
            found = await preview(at)
            assert (found.outcome, found.words, found.run) == (
                "queued",
                f"Queued behind {run}: ada is told when that one ends.",
                run,
            )
            steered = await preview(at, overlap="steer")
            assert (steered.outcome, steered.words) == (
                "steered",
                f"ada is busy ({run}): it is told during this turn, or at the start of the next.",
            )
            interrupts = await preview(at, overlap="interrupt")
            assert (interrupts.outcome, interrupts.words) == (
                "interrupts",
                f"ada is busy ({run}): {run} is interrupted, and ada is told next.",
            )
            await set_overlap(at.services, USER, "chat-1", "ada", "reject")
            rejected = await preview(at)
            assert (rejected.outcome, rejected.code) == ("refused", "skipped:overlap")
            with pytest.raises(BadRequest, match="cannot start fresh"):
                await preview(at, overlap="steer", fresh=True)

    asyncio.run(story())


@pytest.mark.case("W16", "W13")
def test_an_agent_that_cannot_be_told_within_a_turn(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            run = (await show_run(at.services, USER, (await at_work(at, steers=False)).run)).ref
            found = await preview(at, overlap="steer")
            assert (found.outcome, found.words) == (
                "queued",
                f"ada is busy ({run}) and cannot be told within this turn: queued behind {run}.",
            )

    asyncio.run(story())


@pytest.mark.case("W16", "W09", "R13")
def test_what_wakes_nobody_or_cannot_start_says_why(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("A door"))
            found = await preview(at, "issue-1")
            assert (found.outcome, found.agent) == ("nobody", None)
            assert found.words == "Wakes no agent: issue-1 is not assigned. Name an agent, or assign it."
            assert (await preview(at, "issue-1", wakes=False)).words.startswith("Wakes no agent: it is only written")
            await open_chat(at.services, USER, NewChat("ada"))
            await change_agent(at.services, USER, "ada", AgentChange(paused=True))
            paused = await preview(at)
            assert (paused.outcome, paused.code) == ("refused", "refused:agent-paused")
            assert paused.words.startswith("It would not wake ada: The agent is paused")
            await change_agent(at.services, USER, "ada", AgentChange(paused=False))
            await open_chat(at.services, USER, NewChat("ada"))
            await said(at, "go", "chat-2")
            await at.claim_one()
            full = await preview(at)
            assert full.outcome == "blank"
            assert full.words.endswith("It does not start at once: ada is busy in chat-2; it may have 1 run at once.")
            await close_thread(at.services, USER, "chat-1")
            closed = await preview(at)
            assert (closed.outcome, closed.code) == ("refused", "store:thread-closed")
            with pytest.raises(NoSuchAgent):
                await preview(at, "chat-2", agent="nobody")

    asyncio.run(story())


@pytest.mark.case("W16")
def test_a_message_that_did_something_else_than_was_foretold_says_so(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await a_conversation(at)
            foretold = await preview(at)
            # Meanwhile another tab starts afresh.
            await said(at, "afresh", fresh=True)
            wake = await said(at, "now", preview=foretold.token)
            order = await at.serve("n-2")
            for subject in (wake.id, order.run):
                why = await explain(at.services, USER, subject)
                (notice,) = why.notices
                assert notice.startswith(
                    "When it was sent, it was to continue session 1; meanwhile that changed. New conversation"
                )
            # What was foretold of one message is said of that one alone.
            assert [each.preview for each in why.wakes] == [None, foretold.token]
            again = await said(at, "more", preview=(await preview(at)).token)
            await at.serve()
            assert (await explain(at.services, USER, again.id)).notices == ()

    asyncio.run(story())


@pytest.mark.case("W16", "W13")
@pytest.mark.parametrize("taken", [True, False])
def test_a_message_that_was_to_be_told_within_a_turn(database: Database, tmp_path: Path, taken: bool) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await at_work(at)
            foretold = await preview(at, overlap="steer")
            wake = await said(at, "two", overlap="steer", preview=foretold.token)
            reported = await at.report(order, steers=True)
            assert reported.steer is not None
            line = json.dumps({"wakes": [wake.id], "text": "two", "taken": taken})
            log = (RunEventRecord(1, "steer", line),)
            await at.report(order, steered=Steered(taken, reported.steer.through), events=log)
            await at.finish(order)
            if not taken:
                await at.serve()
            notices = (await explain(at.services, USER, wake.id)).notices
            assert bool(notices) is not taken
            if not taken:
                assert notices[0].startswith("When it was sent, it was to be told during the turn that was going;")

    asyncio.run(story())


@pytest.mark.case("W16")
def test_a_token_that_no_preview_has_is_refused(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await a_chat(at)
            for token in ("", "resume", "resume/ss_1", "resume/ss 1/x", "x" * 300):
                with pytest.raises(BadRequest, match="not the token of a preview"):
                    await say(at.services, USER, "chat-1", Words("hello", preview=token))
            with pytest.raises(BadRequest, match="wakes no agent, so preview"):
                await say(at.services, USER, "chat-1", Words("hello", preview="resume//x", wakes=False))

    asyncio.run(story())
