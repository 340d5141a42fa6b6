"""Issues: numbered, given to an agent, taken from it, closed and opened again."""

import asyncio
from pathlib import Path

import pytest

from clew.control.agents import change_agent
from clew.control.faults import BadRequest, NotNow
from clew.control.issues import assign_thread, open_issue
from clew.control.threads import close_thread, list_threads, open_chat, reopen_thread, show_thread
from clew.control.wakes import poke, say, show_wake
from clew.kernel import Outcome
from clew.protocol.requests import AgentChange, Assign, NewChat, NewIssue, Poke, Words
from clew.store.engine.database import Database
from clew.store.faults import NoSuchAgent, NoSuchProject, NoSuchThread, ThreadClosed
from tests.control.kit import USER, office
from tests.store.kit import bodies


def test_an_issue_is_called_by_its_number_and_wakes_its_agent(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            page = await open_issue(at.services, USER, NewIssue("Mend  the\nloom", "It is broken.", assignee="ada"))
            thread = page.thread
            assert (thread.ref, thread.title, thread.status, thread.assignee) == (
                "issue-1",
                "Mend the loom",
                "queued",
                "ada",
            )
            assert [(entry.seq, entry.author_kind, entry.text) for entry in page.entries] == [
                (1, "human", "It is broken.")
            ]
            order = await at.claim_one()
            assert (order.plan.outcome, bodies(order), order.thread.number) == (Outcome.BLANK, ["It is broken."], 1)
            assert order.wakes[0].reason == "assignment"
            assert (await show_thread(at.services, USER, "issue-1")).thread.status == "running"
            await at.prompt(order)
            await at.finish(order)
            page = await show_thread(at.services, USER, thread.id)
            assert (page.thread.status, page.thread.entries, page.entries[-1].author) == ("idle", 2, "ada")
            assert [run.state for run in page.runs] == ["succeeded"]
            assert (await open_issue(at.services, USER, NewIssue("Another"))).thread.ref == "issue-2"
            assert (await open_chat(at.services, USER, NewChat("ada"))).ref == "chat-1"

    asyncio.run(story())


def test_issues_that_are_opened_at_the_same_moment_get_a_number_each(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            opened = await asyncio.gather(*(open_issue(at.services, USER, NewIssue(f"Issue {n}")) for n in range(20)))
            assert sorted(page.thread.ref for page in opened) == sorted(f"issue-{n}" for n in range(1, 21))

    asyncio.run(story())


@pytest.mark.case("W06")
def test_an_issue_that_changes_hands_ends_what_the_former_agent_was_to_do(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            for name in ("ada", "bob"):
                await at.agent(name)
            await open_issue(at.services, USER, NewIssue("Mend it", "It is broken.", assignee="ada"))
            said = await say(at.services, USER, "issue-1", Words("Please hurry."))
            assert said.wake is not None
            thread = await assign_thread(at.services, USER, "issue-1", Assign("bob"))
            assert (thread.assignee, thread.status) == ("bob", "queued")
            ended = await show_wake(at.services, USER, said.wake.id)
            assert (ended.state, ended.code) == ("cancelled", "cancelled:reassigned")
            order = await at.claim_one()
            given = "Gave this issue to bob (it was ada's). Not answered yet: [1], [2]."
            assert (order.agent.name, bodies(order)) == ("bob", ["It is broken.", "Please hurry.", given])
            assert order.plan.act_on == (3,)
            # The same again changes nothing.
            await assign_thread(at.services, USER, "issue-1", Assign("bob"))
            assert await at.claim() == []

    asyncio.run(story())


def test_an_issue_can_be_nobodys(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            thread = await assign_thread(at.services, USER, "issue-1", Assign(None))
            assert (thread.assignee, thread.status) == (None, "idle")
            said = await say(at.services, USER, "issue-1", Words("Anybody?"))
            assert (said.entry, said.wake) == (2, None)
            assert await at.claim() == []
            with pytest.raises(BadRequest, match="A key names a wake"):
                await say(at.services, USER, "issue-1", Words("Anybody?", key="k"))

    asyncio.run(story())


@pytest.mark.case("W09")
def test_an_issue_is_not_given_to_an_agent_that_would_not_be_woken_for_it(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            before = await list_threads(at.services, USER)
            await change_agent(at.services, USER, "ada", AgentChange(paused=True))
            with pytest.raises(NotNow, match="ada would not be woken for it"):
                await open_issue(at.services, USER, NewIssue("A door", assignee="ada"))
            assert await list_threads(at.services, USER) == before
            issue = (await open_issue(at.services, USER, NewIssue("A door"))).thread
            with pytest.raises(NotNow, match="ada would not be woken for it"):
                await assign_thread(at.services, USER, issue.ref, Assign("ada"))
            assert (await show_thread(at.services, USER, issue.ref)).thread.assignee is None

    asyncio.run(story())


def test_a_closed_issue_wakes_nobody_until_it_is_reopened(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(most=2)
            await open_issue(at.services, USER, NewIssue("Going", assignee="ada"))
            going = await at.claim_one()
            await at.prompt(going)
            waits = await say(at.services, USER, "issue-1", Words("And this."))
            assert waits.wake is not None
            closed = await close_thread(at.services, USER, "issue-1")
            assert (closed.state, closed.status) == ("closed", "running")
            assert (await show_wake(at.services, USER, waits.wake.id)).code == "cancelled:closed"
            await at.finish(going)
            for woken in (
                say(at.services, USER, "issue-1", Words("Again.")),
                poke(at.services, USER, Poke("ada", "issue-1")),
            ):
                with pytest.raises(ThreadClosed, match="issue-1 is closed"):
                    await woken
            # What is only written down is.
            assert (await say(at.services, USER, "issue-1", Words("For the record.", wakes=False))).wake is None
            assert await at.claim() == []
            assert (await reopen_thread(at.services, USER, "issue-1")).state == "open"
            await say(at.services, USER, "issue-1", Words("Again."))
            assert bodies(await at.claim_one())[-1] == "Again."

    asyncio.run(story())


def test_what_is_not_there_is_named(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            with pytest.raises(NoSuchAgent, match="Did you mean ada"):
                await open_issue(at.services, USER, NewIssue("Mend it", assignee="adda"))
            with pytest.raises(NoSuchProject, match="no project 'maze'"):
                await open_issue(at.services, USER, NewIssue("Mend it", project="maze"))
            with pytest.raises(NoSuchThread, match="see them with"):
                await show_thread(at.services, USER, "issue-1")
            await open_issue(at.services, USER, NewIssue("Mend it"))
            with pytest.raises(NoSuchThread, match="The newest is issue-1"):
                await show_thread(at.services, USER, "issue-99")
            with pytest.raises(NoSuchAgent):
                await show_thread(at.services, USER, "own-bob")
            with pytest.raises(BadRequest, match="title"):
                await open_issue(at.services, USER, NewIssue(" \n "))
            with pytest.raises(BadRequest, match="cannot be closed"):
                await close_thread(at.services, USER, "own-ada")
            with pytest.raises(BadRequest, match="not an issue"):
                await assign_thread(at.services, USER, "own-ada", Assign("ada"))

    asyncio.run(story())


def test_threads_are_listed_newest_first_page_by_page(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            for name in ("ada", "bob"):
                await at.agent(name)
            # The clock of SQLite tells thousandths of a second.
            await asyncio.sleep(0.005)
            for number in range(5):
                await open_issue(at.services, USER, NewIssue(f"Issue {number}", assignee="ada" if number % 2 else None))
            await open_chat(at.services, USER, NewChat("bob"))
            await close_thread(at.services, USER, "issue-1")
            refs = [thread.ref for thread in await list_threads(at.services, USER)]
            assert refs == ["chat-1", "issue-5", "issue-4", "issue-3", "issue-2", "issue-1", "own-bob", "own-ada"]
            first = await list_threads(at.services, USER, kind="issue", limit=2)
            assert [thread.ref for thread in first] == ["issue-5", "issue-4"]
            after = await list_threads(at.services, USER, kind="issue", limit=2, before="issue-4")
            assert [thread.ref for thread in after] == ["issue-3", "issue-2"]
            assert [thread.ref for thread in await list_threads(at.services, USER, state="closed")] == ["issue-1"]
            mine = await list_threads(at.services, USER, agent="ada", state="open")
            assert [thread.ref for thread in mine] == ["issue-4", "issue-2", "own-ada"]
            for asked in ({"kind": "novel"}, {"state": "odd"}, {"limit": 0}, {"limit": 501}):
                with pytest.raises(BadRequest):
                    await list_threads(at.services, USER, **asked)

    asyncio.run(story())


def test_a_long_thread_is_read_page_by_page(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await open_issue(at.services, USER, NewIssue("Mend it"))
            for number in range(2, 8):
                await say(at.services, USER, "issue-1", Words(f"word {number}"))
            page = await show_thread(at.services, USER, "issue-1", limit=3)
            assert ([entry.seq for entry in page.entries], page.earlier) == ([5, 6, 7], True)
            page = await show_thread(at.services, USER, "issue-1", before=5, limit=10)
            assert ([entry.seq for entry in page.entries], page.earlier) == ([1, 2, 3, 4], False)

    asyncio.run(story())
