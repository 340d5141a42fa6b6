"""Runs: listed, stopped, tried again, and gone on from."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from clew.control.agents import change_agent
from clew.control.decisions import explain
from clew.control.faults import BadRequest, NotNow
from clew.control.issues import open_issue
from clew.control.runs import cancel_run, interrupt_run, list_events, list_runs, rerun, retry_run, show_run
from clew.control.sessions import list_sessions
from clew.control.threads import open_chat, show_thread
from clew.control.wakes import poke, say, show_wake
from clew.kernel import FailureKind, Outcome, WaitsFor
from clew.protocol.reports import Completed, Failed, Returned, RunEventRecord, Stopped
from clew.protocol.requests import AgentChange, NewChat, NewIssue, Poke, Words
from clew.store.engine.database import Database
from clew.store.engine.dialect import read_clock
from clew.store.faults import Ambiguous, NoRunYet, NoSuchRun, NoSuchThread
from tests.control.kit import USER, office
from tests.store.kit import bodies

PERMANENT = Failed(FailureKind.PERMANENT, "the prompt is too long")


def test_runs_are_listed_newest_first_page_by_page(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            for name in ("ada", "bob"):
                await at.agent(name, most=3)
                await open_chat(at.services, USER, NewChat(name))
            made = []
            for number in range(6):
                await say(at.services, USER, f"chat-{number % 2 + 1}", Words(f"word {number}"))
                order = await at.serve(f"n-{number % 2}", PERMANENT if number == 3 else None)
                made.append(order.run)
            await say(at.services, USER, "chat-1", Words("and now"))
            going = await at.claim_one()
            await at.prompt(going)
            await poke(at.services, USER, Poke("bob"))
            newest = [run.id for run in await list_runs(at.services, USER)]
            waiting = newest[0]
            assert newest == [waiting, going.run, *reversed(made)]
            assert [run.id for run in await list_runs(at.services, USER, limit=2)] == newest[:2]
            assert [run.id for run in await list_runs(at.services, USER, limit=3, before=newest[1])] == newest[2:5]
            assert [run.id for run in await list_runs(at.services, USER, agent="ada")] == [
                going.run,
                made[4],
                made[2],
                made[0],
            ]
            of_thread = await list_runs(at.services, USER, thread="chat-2")
            assert [run.id for run in of_thread] == [made[5], made[3], made[1]]
            assert [run.id for run in await list_runs(at.services, USER, thread="chat-2", before=made[3])] == [made[1]]
            for asked, found in (
                ({"state": "failed"}, [made[3]]),
                ({"state": "failed", "agent": "ada"}, []),
                ({"state": "running"}, [going.run]),
                ({"state": "queued"}, [waiting]),
                ({"state": "succeeded", "agent": "bob"}, [made[5], made[1]]),
                ({"state": "succeeded", "thread": "chat-2", "limit": 1}, [made[5]]),
                ({"state": "queued", "before": waiting}, []),
            ):
                assert [run.id for run in await list_runs(at.services, USER, **asked)] == found
            with pytest.raises(BadRequest, match="Unknown run state"):
                await list_runs(at.services, USER, state="done")

    asyncio.run(story())


@pytest.mark.case("R13")
def test_tries_of_the_same_work_are_one_run_where_that_is_asked(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(most=3)
            for _ in range(2):
                await open_chat(at.services, USER, NewChat("ada"))
            await say(at.services, USER, "chat-1", Words("first"))
            first = await at.serve("n-1")
            await say(at.services, USER, "chat-1", Words("second"))
            tries = []
            for _ in range(3):
                order = await at.claim_one()
                await at.prompt(order)
                await at.finish(order, Failed(FailureKind.OUTAGE, "500"))
                tries.append(order.run)
                await retry_run(at.services, USER, "chat-1")
            await say(at.services, USER, "chat-2", Words("third"))
            database.write(lambda tx: tx.execute(text("UPDATE runs SET not_before = 9e9 WHERE tries > 0"))).result()
            plain, held = await list_runs(at.services, USER, limit=2)
            assert (plain.tries, held.tries) == (1, 4)
            assert [run.id for run in await list_runs(at.services, USER)][2:] == [*reversed(tries), first.run]
            for limit in (2, 3, 10):
                folded = await list_runs(at.services, USER, limit=limit, folded=True)
                assert [run.id for run in folded] == [plain.id, held.id, first.run][:limit]
            assert [run.id for run in await list_runs(at.services, USER, limit=1, state="held")] == [held.id]
            assert await list_runs(at.services, USER, state="failed", folded=True) == ()

    asyncio.run(story())


def test_runs_are_numbered_in_order_and_called_by_number_or_by_their_thread(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent("ada")
            await at.agent("bob")
            opened = await open_issue(at.services, USER, NewIssue("The page is blank"))
            assert opened.thread.ref == "issue-1"
            with pytest.raises(NoRunYet, match="issue-1 has no runs yet"):
                await show_run(at.services, USER, "1")
            with pytest.raises(NoRunYet):
                await explain(at.services, USER, "#1")
            await say(at.services, USER, "1", Words("look at it", agent="ada"))
            first = await at.serve("n-1")
            await say(at.services, USER, "#1", Words("and again", agent="ada"))
            await at.serve("n-1")
            await poke(at.services, USER, Poke("bob"))
            runs = {run.ref: run for run in await list_runs(at.services, USER)}
            assert [run.agent for run in runs.values()] == ["bob", "ada", "ada"]
            numbers = [int(name.removeprefix("run-")) for name in runs]
            assert numbers == sorted(numbers, reverse=True)
            oldest, newest = list(runs.values())[-1], list(runs.values())[1]
            assert oldest.id == first.run
            # By its number, its id, and its thread in each spelling.
            for asked in (newest.ref, newest.id, "issue-1", "1", "#1", newest.id[:-2]):
                assert (await show_run(at.services, USER, asked)).id == newest.id
                assert (await explain(at.services, USER, asked)).subject == newest.id
            assert (await show_run(at.services, USER, "own-bob")).agent == "bob"
            assert (await show_run(at.services, USER, opened.thread.id)).id == newest.id
            # Ada's run goes on while a newer one of another agent has ended.
            await say(at.services, USER, "1", Words("go on", agent="ada"))
            going = await at.claim(2)
            assert {order.plan.situation.lane for order in going}
            live = (await show_run(at.services, USER, "1")).id
            assert live in {order.run for order in going}
            assert (await cancel_run(at.services, USER, "1")).taken
            with pytest.raises(NoSuchRun, match="There is no run 'run-999'") as caught:
                await show_run(at.services, USER, "run-999")
            assert caught.value.remedy.startswith("The newest is run-")
            with pytest.raises(NoSuchThread):
                await interrupt_run(at.services, USER, "77")

    asyncio.run(story())


def test_a_run_is_called_by_a_beginning_that_no_other_has(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            with pytest.raises(NoSuchRun, match="no run 'rn_'"):
                await show_run(at.services, USER, "rn_")
            for _ in range(7):
                await poke(at.services, USER, Poke("ada"))
                order = await at.serve()
            assert (await show_run(at.services, USER, order.run[:-2])).id == order.run
            assert (await show_run(at.services, USER, order.run.removeprefix("rn_"))).id == order.run
            with pytest.raises(Ambiguous, match=r"Several runs begin with 'rn_'.*and others"):
                await show_run(at.services, USER, "rn_")
            for odd in ("", "nothing", "rn_zz", "%", "\0", "\ud800", "'; --"):
                with pytest.raises(NoSuchRun):
                    await show_run(at.services, USER, odd)

    asyncio.run(story())


@pytest.mark.case("L03")
def test_a_cancelled_run_keeps_its_session_for_the_next(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await say(at.services, USER, "chat-1", Words("hello"))
            order = await at.claim_one()
            await at.prompt(order, "n-1")
            # Cancel and end race: one outcome, whichever is first.
            cancelled, finished = await asyncio.gather(
                cancel_run(at.services, USER, order.run), at.finish(order, Completed("done", 1))
            )
            run = await show_run(at.services, USER, order.run)
            assert run.state == ("cancelled" if cancelled.taken else "succeeded")
            assert finished.taken
            late = await cancel_run(at.services, USER, order.run)
            assert (late.taken, late.words) == (False, f"{run.ref} has ended already: {run.state}.")
            await say(at.services, USER, "chat-1", Words("go on"))
            after = await at.claim_one()
            assert (after.plan.outcome, after.session) == (Outcome.RESUME, order.session)

    asyncio.run(story())


def test_an_interrupted_turn_is_gone_on_with_in_the_same_session(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await say(at.services, USER, "chat-1", Words("hello"))
            (queued,) = await list_runs(at.services, USER)
            idle = await interrupt_run(at.services, USER, queued.id)
            assert (idle.taken, idle.state) == (False, "queued")
            order = await at.claim_one()
            await at.prompt(order, "n-1")
            assert (await interrupt_run(at.services, USER, order.run)).state == "stopping"
            assert (await at.report(order)).stop == "run:stopped"
            await at.finish(order, Stopped())
            assert await at.claim() == []
            run = await show_run(at.services, USER, order.run)
            assert (run.state, run.code) == ("cancelled", "run:stopped")
            await say(at.services, USER, "chat-1", Words("go on"))
            after = await at.claim_one()
            assert (after.plan.outcome, after.session, bodies(after)) == (Outcome.RESUME, order.session, ["go on"])

    asyncio.run(story())


def test_a_held_run_goes_now_when_a_person_says_so(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            order = await at.claim_one()
            with pytest.raises(NotNow, match="is claimed already"):
                await retry_run(at.services, USER, order.run)
            await at.finish(order, Returned("the worktree is gone", "workspace:branch-gone", WaitsFor.PERSON))
            thread = (await show_thread(at.services, USER, "issue-1")).thread
            assert thread.status == "held"
            assert thread.words.startswith("the worktree is gone. Once that is fixed, run `clew retry run-")
            held = await show_run(at.services, USER, order.run)
            assert (held.state, held.code, held.words) == ("queued", "workspace:branch-gone", thread.words)
            assert held.held == "person"
            assert (await explain(at.services, USER, order.run)).headline.startswith("hold: the worktree is gone")
            assert await at.claim() == []
            (wake,) = await retry_run(at.services, USER, order.run)
            assert (wake.state, wake.code) == ("pending", "accepted:lane-free")
            assert (await at.claim_one()).attempt == 2
            assert (await show_run(at.services, USER, order.run)).held is None

    asyncio.run(story())


def test_a_held_run_that_is_cancelled_is_no_longer_to_be_retried(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            order = await at.claim_one()
            await at.finish(order, Returned("the worktree is gone", "workspace:branch-gone", WaitsFor.PERSON))
            await cancel_run(at.services, USER, order.run)
            run = await show_run(at.services, USER, order.run)
            assert (run.state, run.held, run.words) == ("cancelled", None, "It was cancelled (by user).")

    asyncio.run(story())


def test_what_a_person_changes_is_looked_at_again(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            await at.finish(await at.claim_one(), Returned("no login", "agent:no-login", WaitsFor.PERSON))
            assert await at.claim() == []
            await change_agent(at.services, USER, "ada", AgentChange(environment={"TOKEN": "x"}))
            assert (await at.claim_one()).attempt == 2

    asyncio.run(story())


def test_a_parked_retry_goes_now(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            failed = await at.serve("n-1", Failed(FailureKind.TRANSIENT, "overloaded"))
            assert await at.claim() == []
            (wake,) = await retry_run(at.services, USER, failed.run)
            assert wake.not_before is None
            assert (await at.claim_one()).session == failed.session

    asyncio.run(story())


@pytest.mark.case("L10")
def test_a_usage_limit_is_waited_for_and_a_person_may_go_earlier(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            reset = (await at.services.read(read_clock)) + 3600
            limited = Failed(FailureKind.USAGE_LIMIT, "the limit is reached", reset_at=reset)
            failed = await at.serve("n-1", limited)
            (waiting, _) = await list_runs(at.services, USER)
            assert (waiting.state, waiting.not_before is not None and waiting.not_before >= reset) == ("queued", True)
            assert await at.claim() == []
            await retry_run(at.services, USER, waiting.id)
            assert (await at.claim_one()).session == failed.session

    asyncio.run(story())


def test_what_was_given_up_is_asked_for_again_once(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", "It is broken.", assignee="ada"))
            failed = await at.serve("n-1", PERMANENT)
            thread = (await show_thread(at.services, USER, "issue-1")).thread
            assert (thread.status, "too long" in thread.words) == ("idle", True)
            (first,) = await retry_run(at.services, USER, failed.run)
            (second,) = await retry_run(at.services, USER, failed.run)
            assert (first.id, first.reason, second.repeated) == (second.id, "retry", True)
            order = await at.claim_one()
            # The session took the prompt already: it goes on, and is not told twice.
            assert (order.plan.outcome, order.session, order.plan.act_on) == (Outcome.RESUME, failed.session, (1,))
            assert bodies(order) == []
            await at.prompt(order)
            await at.finish(order)
            with pytest.raises(NotNow, match="has succeeded"):
                await retry_run(at.services, USER, order.run)

    asyncio.run(story())


def test_what_was_never_opened_is_tried_as_it_was_asked(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", "It is broken.", assignee="ada"))
            order = await at.claim_one()
            await at.finish(order, PERMANENT)
            (wake,) = await retry_run(at.services, USER, order.run)
            assert wake.reason == "assignment"
            assert bodies(await at.claim_one()) == ["It is broken."]

    asyncio.run(story())


@pytest.mark.case("C05", "C04")
def test_a_rerun_goes_on_in_the_session_of_the_run_it_names(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            first = await at.serve("n-1")
            await say(at.services, USER, "issue-1", Words("start over", fresh=True))
            second = await at.serve("n-2")
            assert second.session != first.session
            (wake,) = await rerun(at.services, USER, first.run)
            order = await at.claim_one()
            assert (order.plan.outcome, order.session) == (Outcome.RESUME, first.session)
            assert [wake.id for wake in order.wakes] == [wake.id]
            # The source that was asked for decides; the lane's own sessions are not even read.
            reads = {read.source.value: read.state.value for read in order.plan.situation.sources}
            assert reads == {"asked": "answered", "lane": "not-read"}
            told, named = (
                await explain(at.services, USER, order.run),
                (await show_run(at.services, USER, first.run)).ref,
            )
            assert told.decisions[0].notices == (f"The session of {named} is used because a person asked for it.",)
            await at.prompt(order)
            await at.finish(order)
            # The same by hand, although the policy would start afresh.
            said = await say(at.services, USER, "issue-1", Words("and again", resume_run=second.run))
            assert said.wake is not None
            assert (await at.claim_one()).session == second.session

    asyncio.run(story())


def test_only_what_has_a_session_is_gone_on_from(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await at.agent("bob")
            await open_chat(at.services, USER, NewChat("ada"))
            await say(at.services, USER, "chat-1", Words("hello"))
            order = await at.claim_one()
            await at.finish(order, PERMANENT)
            with pytest.raises(NotNow, match="No session"):
                await rerun(at.services, USER, order.run)
            with pytest.raises(BadRequest, match="ada's in chat-1"):
                await poke(at.services, USER, Poke("bob", resume_run=order.run))
            with pytest.raises(NoSuchRun):
                await poke(at.services, USER, Poke("bob", resume_run="rn_nothing"))

    asyncio.run(story())


def test_a_log_is_read_page_by_page(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await poke(at.services, USER, Poke("ada"))
            order = await at.claim_one()
            lines = [RunEventRecord(seq, "text", f'{{"text": "line {seq}"}}') for seq in (1, 2, 3)]
            await at.report(order, opens=True, events=(*lines, RunEventRecord(4, "odd", "no json")))
            log = await list_events(at.services, USER, order.run, after=1, limit=2)
            assert [(line.seq, line.body) for line in log] == [(2, {"text": "line 2"}), (3, {"text": "line 3"})]
            (last,) = await list_events(at.services, USER, order.run, after=3)
            assert (last.kind, last.body) == ("odd", {"text": "no json"})
            with pytest.raises(BadRequest):
                await list_events(at.services, USER, order.run, after=-1)

    asyncio.run(story())


def test_sessions_are_shown_with_what_may_be_said_of_them(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await at.agent("bob")
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            await at.serve("n-1")
            await say(at.services, USER, "issue-1", Words("start over", fresh=True))
            await at.serve("n-2")
            shown = await list_sessions(at.services, USER, thread="issue-1")
            assert [(each.generation, each.native_id, each.resumability, each.seen) for each in shown] == [
                (2, "n-2", "proven", 4),
                (1, "n-1", "proven", 2),
            ]
            assert (
                await list_sessions(at.services, USER) == shown == await list_sessions(at.services, USER, agent="ada")
            )
            assert await list_sessions(at.services, USER, agent="bob") == ()
            assert await list_sessions(at.services, USER, thread="issue-1", agent="bob") == ()
            assert (
                await show_wake(at.services, USER, (await poke(at.services, USER, Poke("bob"))).id)
            ).state == "pending"

    asyncio.run(story())
