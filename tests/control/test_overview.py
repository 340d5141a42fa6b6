"""The overview: what waits for a person stands apart from what goes on by itself."""

import asyncio
from pathlib import Path

from clew.control.issues import open_issue
from clew.control.overview import show_overview
from clew.control.runs import retry_run
from clew.control.threads import close_thread, open_chat
from clew.control.wakes import say
from clew.kernel import ApprovalId, FailureKind, WaitsFor
from clew.protocol.reports import Asked, Failed, Returned
from clew.protocol.requests import NewChat, NewIssue, Words
from clew.store.engine.database import Database
from tests.control.kit import USER, office


def test_what_waits_for_a_person_stands_apart_from_what_goes_on(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            nothing = await show_overview(at.services, USER)
            assert (nothing.approvals, nothing.held, nothing.live, nothing.queued, nothing.threads) == (
                (),
                (),
                (),
                (),
                0,
            )
            for name in ("ada", "bob", "cy"):
                await at.agent(name)
                await open_chat(at.services, USER, NewChat(name))
            await say(at.services, USER, "chat-1", Words("go"))
            asking = await at.claim_one()
            await at.prompt(asking)
            await at.report(asking, asks=(Asked(ApprovalId("ap_1"), '{"kind": "approval", "words": "May I?"}'),))
            await say(at.services, USER, "chat-2", Words("go"))
            await at.finish(
                await at.claim_one(), Returned("the branch is gone", "workspace:branch-gone", WaitsFor.PERSON)
            )
            await say(at.services, USER, "chat-3", Words("go"))
            found = await show_overview(at.services, USER)
            assert [each.thread for each in found.approvals] == ["chat-1"]
            assert [(run.thread, run.held) for run in found.held] == [("chat-2", "person")]
            assert [run.thread for run in found.live] == ["chat-1"]
            assert [run.thread for run in found.queued] == ["chat-3"]
            assert (found.agents, found.threads, found.ready) == (("ada", "bob", "cy"), 3, ())

    asyncio.run(story())


def test_an_issue_whose_agent_is_done_is_ready_for_review_until_it_is_closed(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("A door", assignee="ada"))
            assert (await show_overview(at.services, USER)).ready == ()
            await at.serve("n-1")
            assert [issue.ref for issue in (await show_overview(at.services, USER)).ready] == ["issue-1"]
            await close_thread(at.services, USER, "issue-1")
            assert (await show_overview(at.services, USER)).ready == ()

    asyncio.run(story())


def test_a_failure_is_listed_until_it_is_followed_up_or_its_thread_is_closed(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:

            async def failed() -> list[str]:
                return [run.ref for run in (await show_overview(at.services, USER)).failed]

            await at.agent()
            await open_issue(at.services, USER, NewIssue("A door", assignee="ada"))
            await at.finish(await at.claim_one(), Failed(FailureKind.PERMANENT, "the key broke"))
            (first,) = await failed()
            await retry_run(at.services, USER, first)
            assert await failed() == []
            await at.finish(await at.claim_one(), Failed(FailureKind.PERMANENT, "the key broke"))
            (second,) = await failed()
            assert second != first
            await close_thread(at.services, USER, "issue-1")
            assert await failed() == []

    asyncio.run(story())
