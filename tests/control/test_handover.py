"""An issue that changes hands: the next agent gets the thread as history, and one thing to act on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clew.context.prompt import prompt_for
from clew.control.agents import change_agent
from clew.control.decisions import explain, replay_decisions
from clew.control.faults import NotNow
from clew.control.issues import assign_thread, open_issue
from clew.control.runs import cancel_run, retry_run
from clew.control.threads import set_overlap, show_thread
from clew.control.wakes import say
from clew.kernel import Freshness, Outcome, PlanReason
from clew.protocol.orders import Order
from clew.protocol.reports import Completed, Stopped
from clew.protocol.requests import AgentChange, Assign, NewIssue, Replay, Words
from clew.store.engine.database import Database
from tests.context.kit import request_of
from tests.control.kit import USER, Office, office
from tests.store.kit import bodies

GIVEN = "Gave this issue to bob (it was ada's)."


@asynccontextmanager
async def two_of_them(database: Database, root: Path) -> AsyncIterator[Office]:
    async with office(database, root) as at:
        for name in ("ada", "bob"):
            await at.agent(name, most=2)
        yield at


async def prompt_of(order: Order) -> str:
    return prompt_for(request_of(order)).text


@pytest.mark.case("W19")
def test_the_next_agent_is_handed_what_was_said_and_done_and_acts_on_the_handover(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with two_of_them(database, tmp_path) as at:
            await open_issue(at.services, USER, NewIssue("Mend it", "RUN: mend the loom", assignee="ada"))
            await at.serve("n-1", Completed("I have mended it.", 1))
            await say(at.services, USER, "issue-1", Words("RUN: oil it"))
            await at.serve("n-1", Completed("It is oiled.", 1))
            await assign_thread(at.services, USER, "issue-1", Assign("bob"))
            entry = (await show_thread(at.services, USER, "issue-1")).entries[-1]
            assert (entry.seq, entry.author_kind, entry.text) == (5, "human", GIVEN)
            order = await at.claim_one()
            plan = order.plan
            assert (order.agent.name, plan.outcome, plan.reason) == ("bob", Outcome.RESEED, PlanReason.HANDED_OVER)
            assert bodies(order) == ["RUN: mend the loom", "I have mended it.", "RUN: oil it", "It is oiled.", GIVEN]
            assert plan.act_on == (5,)
            told = await prompt_of(order)
            assert "You take this issue over from ada." in told
            assert "Nothing of it is to be done again: look how far it came, then go on with what is left." in told
            assert told.count("(you are asked for this now)") == 1
            assert told.count("Another agent, ada, said (this is not the user):") == 2
            assert told.endswith("Act on [5] now; all else is there for you to know.")
            await at.prompt(order, "n-2")
            assert (await at.finish(order)).taken
            # Served, it is served: what bob hears next is what is new.
            await say(at.services, USER, "issue-1", Words("Thank you."))
            later = await at.claim_one()
            assert (later.plan.outcome, bodies(later)) == (Outcome.RESUME, ["Thank you."])
            shown = await explain(at.services, USER, order.run)
            assert shown.headline == (
                "reseed: New assignment: starting a new conversation with the thread's history. [policy:handed-over]"
            )
            assert (await replay_decisions(at.services, USER, Replay(0.0))).changed == ()

    asyncio.run(story())


@pytest.mark.case("W19")
def test_an_agent_that_is_given_it_back_begins_anew_and_knows_its_own_words(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with two_of_them(database, tmp_path) as at:
            await open_issue(at.services, USER, NewIssue("Mend it", "It is broken.", assignee="ada"))
            await at.serve("n-1", Completed("Half of it is done.", 1))
            await assign_thread(at.services, USER, "issue-1", Assign("bob"))
            await at.serve("n-2", Completed("So is the other half.", 1))
            await assign_thread(at.services, USER, "issue-1", Assign("ada"))
            order = await at.claim_one()
            back = "Gave this issue to ada (it was bob's)."
            assert (order.agent.name, order.plan.outcome, order.plan.session) == ("ada", Outcome.RESEED, None)
            assert bodies(order) == ["It is broken.", "Half of it is done.", GIVEN, "So is the other half.", back]
            told = await prompt_of(order)
            assert "You take this issue over from bob." in told
            assert "[2] You said earlier:" in told
            assert "[4] Another agent, bob, said (this is not the user):" in told
            assert "Act on [5] now" in told
            await at.prompt(order, "n-3")
            await at.finish(order)
            # In the new conversation, not in the first one.
            await say(at.services, USER, "issue-1", Words("And?"))
            later = await at.claim_one()
            assert later.plan.session is not None
            assert (later.plan.outcome, later.plan.session.generation) == (Outcome.RESUME, 2)

    asyncio.run(story())


@pytest.mark.case("W19")
def test_the_first_agent_of_an_issue_acts_on_what_people_said(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with two_of_them(database, tmp_path) as at:
            await open_issue(at.services, USER, NewIssue("Mend it", "It is broken."))
            await say(at.services, USER, "issue-1", Words("Please hurry."))
            await assign_thread(at.services, USER, "issue-1", Assign("ada"))
            order = await at.claim_one()
            assert (order.plan.outcome, order.plan.reason) == (Outcome.BLANK, PlanReason.POLICY_ASSIGNMENT)
            assert (bodies(order), order.plan.act_on) == (["It is broken.", "Please hurry."], (1, 2))
            assert "You take this issue over" not in await prompt_of(order)

    asyncio.run(story())


@pytest.mark.case("W19")
def test_an_issue_that_was_nobodys_for_a_while_is_handed_over_all_the_same(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with two_of_them(database, tmp_path) as at:
            await open_issue(at.services, USER, NewIssue("Mend it", "It is broken.", assignee="ada"))
            await at.serve("n-1", Completed("Mended.", 1))
            await assign_thread(at.services, USER, "issue-1", Assign(None))
            await say(at.services, USER, "issue-1", Words("Paint it, too."))
            await assign_thread(at.services, USER, "issue-1", Assign("bob"))
            order = await at.claim_one()
            given = "Gave this issue to bob. Not answered yet: [3]."
            assert bodies(order) == ["It is broken.", "Mended.", "Paint it, too.", given]
            assert order.plan.act_on == (4,)
            assert "You take this issue over. What is quoted below" in await prompt_of(order)

    asyncio.run(story())


@pytest.mark.case("W19")
def test_what_the_former_agent_was_still_to_do_and_does_is_named(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with two_of_them(database, tmp_path) as at:
            await open_issue(at.services, USER, NewIssue("Mend it", "It is broken.", assignee="ada"))
            going = await at.claim_one()
            await at.prompt(going, "n-1")
            await say(at.services, USER, "issue-1", Words("Paint it, too."))
            await assign_thread(at.services, USER, "issue-1", Assign("bob"))
            given = (await show_thread(at.services, USER, "issue-1")).entries[-1].text
            assert given == f"{GIVEN} Not answered yet: [1], [2]. ada was still at work on it."
            await at.finish(going, Completed("Mended.", 1))
            # Said before the answer, and no part of it: it waited for the next turn.
            await assign_thread(at.services, USER, "issue-1", Assign("ada"))
            await say(at.services, USER, "issue-1", Words("Anybody?"))
            again = await at.claim_one()
            await at.prompt(again, "n-2")
            await say(at.services, USER, "issue-1", Words("And varnish it."))
            await at.finish(again, Completed("Yes.", 1))
            await assign_thread(at.services, USER, "issue-1", Assign("bob"))
            entries = (await show_thread(at.services, USER, "issue-1")).entries
            assert [entry.text for entry in entries[-3:]] == [
                "And varnish it.",
                "Yes.",
                f"{GIVEN} Not answered yet: [{entries[-3].seq}].",
            ]

    asyncio.run(story())


@pytest.mark.case("W19", "W09")
def test_an_agent_that_would_not_be_woken_is_not_written_down(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with two_of_them(database, tmp_path) as at:
            await open_issue(at.services, USER, NewIssue("Mend it", "It is broken.", assignee="ada"))
            await at.serve("n-1")
            before = await show_thread(at.services, USER, "issue-1")
            await change_agent(at.services, USER, "bob", AgentChange(paused=True))
            with pytest.raises(NotNow, match="bob would not be woken for it"):
                await assign_thread(at.services, USER, "issue-1", Assign("bob"))
            after = await show_thread(at.services, USER, "issue-1")
            assert (after.entries, after.thread.assignee) == (before.entries, "ada")

    asyncio.run(story())


@pytest.mark.case("W19", "W13")
def test_it_is_a_conversation_of_its_own_even_where_words_are_told_within_a_turn(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with two_of_them(database, tmp_path) as at:
            await open_issue(at.services, USER, NewIssue("Mend it", "It is broken.", assignee="bob"))
            await set_overlap(at.services, USER, "issue-1", "bob", "steer")
            going = await at.claim_one()
            await at.prompt(going, "n-1")
            await assign_thread(at.services, USER, "issue-1", Assign("ada"))
            await assign_thread(at.services, USER, "issue-1", Assign("bob"))
            told = await at.report(going, steers=True)
            assert told.steer is None
            await at.finish(going, Completed("Mended.", 1))
            order = await at.claim_one()
            assert (order.agent.name, order.plan.reason) == ("bob", PlanReason.HANDED_OVER)

    asyncio.run(story())


@pytest.mark.case("W19")
def test_a_handover_that_was_cancelled_is_a_handover_when_it_is_retried(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with two_of_them(database, tmp_path) as at:
            await open_issue(at.services, USER, NewIssue("Mend it", "It is broken.", assignee="ada"))
            await at.serve("n-1")
            await assign_thread(at.services, USER, "issue-1", Assign("bob"))
            (run,) = [run for run in (await show_thread(at.services, USER, "issue-1")).runs if run.agent == "bob"]
            order = await at.claim_one()
            assert order.wakes[0].freshness is Freshness.HANDOVER
            await cancel_run(at.services, USER, run.id)
            await at.finish(order, Stopped("A person stopped it."))
            await retry_run(at.services, USER, run.id)
            again = await at.claim_one()
            assert (again.agent.name, again.plan.reason) == ("bob", PlanReason.HANDED_OVER)

    asyncio.run(story())
