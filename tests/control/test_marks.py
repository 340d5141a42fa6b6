"""Marks of threads as use cases: a person's own, refused where they would hide work, and listed by them."""

import asyncio
from pathlib import Path

import pytest

from clew.control.actor import Outside, Person
from clew.control.agents import remove_agent
from clew.control.faults import BadRequest, NotNow
from clew.control.issues import open_issue
from clew.control.marks import archive_thread, mark_read, mark_unread, pin_thread, unarchive_thread, unpin_thread
from clew.control.overview import show_overview
from clew.control.threads import list_threads, open_chat, show_thread
from clew.control.wakes import say
from clew.kernel import ApprovalId
from clew.protocol.reports import Asked
from clew.protocol.requests import NewChat, NewIssue, ReadUpTo, Words
from clew.store.engine.database import Database
from tests.control.kit import USER, Office, office

OTHER = Person("other")


async def chat(at: Office, agent: str = "ada") -> str:
    await at.agent(agent)
    return (await open_chat(at.services, USER, NewChat(agent))).ref


async def refs(at: Office, only: str | None = None, by: Person = USER) -> list[str]:
    return [view.ref for view in await list_threads(at.services, by, "chat", only=only)]


def test_a_reply_is_unread_for_each_person_until_they_read_it(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            ref = await chat(at)
            await say(at.services, USER, ref, Words("go"))
            await at.serve("n-1")
            assert [view.ref for view in (await show_overview(at.services, USER)).unread] == [ref]
            shown = await show_thread(at.services, USER, ref)
            read = await mark_read(at.services, USER, ref, ReadUpTo(shown.entries[-1].seq))
            assert read.marks is not None
            assert (read.marks.unread, read.marks.seen) == (False, 2)
            assert (await refs(at, "unread"), await refs(at, "unread", OTHER)) == ([], [ref])
            assert (await show_overview(at.services, USER)).unread == ()
            again = await mark_unread(at.services, USER, ref)
            assert again.marks is not None
            assert again.marks.unread
            with pytest.raises(BadRequest, match="no entry -1"):
                await mark_read(at.services, USER, ref, ReadUpTo(-1))
            outside = Outside("github", "acme/app#12")
            assert (await show_thread(at.services, outside, ref)).thread.marks is None
            with pytest.raises(BadRequest, match="Only a person"):
                await pin_thread(at.services, outside, ref)
            with pytest.raises(BadRequest, match="Unknown mark 'red'"):
                await list_threads(at.services, USER, only="red")

    asyncio.run(story())


def test_pinned_threads_are_listed_as_the_other_filters_say(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            first, second = await chat(at), await chat(at, "bob")
            for ref in (first, second):
                await pin_thread(at.services, USER, ref)
            assert (await refs(at, "pinned"), await refs(at, "pinned", OTHER)) == ([second, first], [])
            found = await list_threads(at.services, USER, "chat", "open", "ada", only="pinned")
            assert [view.ref for view in found] == [first]
            await unpin_thread(at.services, USER, second)
            assert await refs(at, "pinned") == [first]

    asyncio.run(story())


def test_a_thread_with_work_is_not_archived(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            ref = await chat(at)
            await say(at.services, USER, ref, Words("go"))
            with pytest.raises(NotNow, match=r"was not archived: run-\d+ is still queued"):
                await archive_thread(at.services, USER, ref)
            order = await at.claim_one()
            await at.prompt(order, "n-1")
            with pytest.raises(NotNow, match=r"run-\d+ is live"):
                await archive_thread(at.services, USER, ref)
            await at.report(order, asks=(Asked(ApprovalId("ap_1"), '{"kind": "question", "words": "Which?"}'),))
            with pytest.raises(NotNow, match="waits for an answer") as refused:
                await archive_thread(at.services, USER, ref)
            assert "clew approvals" in refused.value.remedy

    asyncio.run(story())


def test_an_archived_thread_is_listed_apart_and_comes_back_with_a_message(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            ref = await chat(at)
            assert (await archive_thread(at.services, USER, ref)).archived
            assert (await refs(at), await refs(at, "archived", OTHER)) == ([], [ref])
            overview = await show_overview(at.services, USER)
            assert (overview.threads, overview.archived) == (0, True)
            await unarchive_thread(at.services, USER, ref)
            assert await refs(at) == [ref]
            await archive_thread(at.services, USER, ref)
            await say(at.services, USER, ref, Words("go", wakes=False))
            assert (await refs(at), await refs(at, "archived")) == ([ref], [])

    asyncio.run(story())


def test_an_agent_with_an_archived_issue_is_not_removed(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            issue = await open_issue(at.services, USER, NewIssue("A door", assignee="ada"))
            await at.serve("n-1")
            await archive_thread(at.services, USER, issue.thread.ref)
            with pytest.raises(NotNow, match="ada has open issues: issue-1"):
                await remove_agent(at.services, USER, "ada")

    asyncio.run(story())
