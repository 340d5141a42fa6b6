"""Wakes of people: what is said while an agent works, twice, to a paused one, to nobody; each has a receipt."""

import asyncio
from pathlib import Path

import pytest

from clew.context.prompt import prompt_for
from clew.control import validation as bounds
from clew.control.agents import change_agent
from clew.control.decisions import explain
from clew.control.faults import BadRequest, NotNow
from clew.control.issues import open_issue
from clew.control.runs import show_run
from clew.control.threads import list_threads, open_chat, set_overlap, show_thread
from clew.control.wakes import cancel_wake, poke, say, show_wake
from clew.kernel import FailureKind, Origin, OriginKind, Outcome, ThreadId, WakeId, WakeReason
from clew.protocol.orders import ClaimRequest
from clew.protocol.reports import Failed, Stopped
from clew.protocol.requests import AgentChange, NewChat, NewIssue, Poke, Words
from clew.protocol.wakes import Accepted, WakeRequest
from clew.store.engine.database import Database
from clew.store.faults import KeyConflict, MessageTaken, NoSuchWake
from clew.store.operations.wakes import accept_wake
from tests.context.kit import request_of
from tests.control.kit import LOOM, USER, Office, held, office
from tests.store.kit import bodies


async def _by_others(at: Office, agent: str, thread: str, origin: Origin, name: str) -> Accepted:
    """A wake that no person asked for, by the door that everybody's go through."""
    request = WakeRequest(WakeId(name), agent, WakeReason.MENTION, origin, ThreadId(thread))  # type: ignore[arg-type]
    return await at.services.write(lambda connection: accept_wake(connection, request))


@pytest.mark.case("W01", "C31")
def test_what_is_said_while_an_agent_works_is_served_by_one_run_after_it(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            going = await at.claim_one()
            await at.prompt(going, "n-1")
            for text in ("one", "two", "three"):
                said = await say(at.services, USER, "issue-1", Words(text))
                assert said.wake is not None
                assert (said.wake.code, said.wake.reason) == ("accepted:queued", "comment")
            assert await at.claim() == []
            await at.finish(going)
            after = await at.claim_one()
            assert [body for body in bodies(after) if body != "done"] == ["one", "two", "three"]
            assert (after.plan.outcome, after.session) == (Outcome.RESUME, going.session)
            assert await at.claim() == []

    asyncio.run(story())


@pytest.mark.case("W02")
def test_one_that_asks_for_a_fresh_start_makes_the_run_fresh(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await say(at.services, USER, "chat-1", Words("hello"))
            await at.serve("n-1")
            await say(at.services, USER, "chat-1", Words("one"))
            await say(at.services, USER, "chat-1", Words("two", fresh=True))
            await say(at.services, USER, "chat-1", Words("three"))
            order = await at.claim_one()
            assert (order.plan.outcome, order.plan.reason.code) == (Outcome.BLANK, "reset:demanded")
            assert bodies(order) == ["one", "two", "three"]

    asyncio.run(story())


@pytest.mark.case("W03")
def test_the_same_key_is_the_same_request(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            for _ in range(2):
                await open_chat(at.services, USER, NewChat("ada"))
            first = await say(at.services, USER, "chat-1", Words("hello", key="k-1"))
            second = await say(at.services, USER, "chat-1", Words("hello", key="k-1"))
            assert first.wake is not None
            assert second.wake is not None
            assert (second.wake.id, second.entry, second.wake.repeated) == (first.wake.id, first.entry, True)
            assert (await show_thread(at.services, USER, "chat-1")).thread.entries == 1
            with pytest.raises(KeyConflict):
                await say(at.services, USER, "chat-2", Words("hello", key="k-1"))
            with pytest.raises(KeyConflict):
                await poke(at.services, USER, Poke("ada", key="k-1"))

    asyncio.run(story())


@pytest.mark.case("W05", "W08")
def test_a_persons_word_does_not_wait_for_a_parked_retry(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            first = await say(at.services, USER, "chat-1", Words("one"))
            order = await at.claim_one()
            await at.finish(order, Failed(FailureKind.TRANSIENT, "overloaded"))
            assert first.wake is not None
            parked = await show_wake(at.services, USER, first.wake.id)
            assert (parked.state, parked.code) == ("pending", "run:retrying")
            assert parked.not_before is not None
            assert await at.claim() == []
            await say(at.services, USER, "chat-1", Words("two"))
            assert bodies(await at.claim_one()) == ["one", "two"]

    asyncio.run(story())


@pytest.mark.case("W09", "W15")
def test_a_paused_agent_is_not_woken_and_the_caller_is_told(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await change_agent(at.services, USER, "ada", AgentChange(paused=True))
            refused = await poke(at.services, USER, Poke("ada", text="hello"))
            assert (refused.state, refused.code) == ("skipped", "refused:agent-paused")
            before = await list_threads(at.services, USER)
            with pytest.raises(NotNow, match="ada is paused, so it would not answer") as said:
                await open_chat(at.services, USER, NewChat("ada"))
            assert "`clew agent resume ada`" in said.value.remedy
            assert await list_threads(at.services, USER) == before
            told = await explain(at.services, USER, refused.id)
            assert told.headline.startswith("skipped: ada is paused. Resume it with `clew agent resume ada`")
            assert (told.run, told.decisions) == (None, ())
            await change_agent(at.services, USER, "ada", AgentChange(paused=False))
            assert await at.claim() == []

    asyncio.run(story())


@pytest.mark.case("W10")
def test_a_flood_of_others_is_put_off_and_a_person_is_not(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            ada = await at.agent()
            thread = (await open_issue(at.services, USER, NewIssue("Mend it"))).thread
            for _ in range(5):
                await poke(at.services, USER, Poke("ada"))
                await at.serve()
            outside = await _by_others(at, ada.id, thread.id, Origin(OriginKind.OUTSIDE), "wk_outside")
            deferred = await show_wake(at.services, USER, outside.wake)
            assert (deferred.state, deferred.code) == ("pending", "deferred:flood")
            assert deferred.not_before is not None
            assert (await poke(at.services, USER, Poke("ada"))).code == "accepted:lane-free"
            assert "The agent started 5 runs" in (await explain(at.services, USER, outside.wake)).headline

    asyncio.run(story())


@pytest.mark.case("W11", "W15")
def test_agents_words_do_not_go_in_circles(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            ada = await at.agent()
            thread = (await open_issue(at.services, USER, NewIssue("Mend it"))).thread
            itself = Origin(OriginKind.AGENT, ada.id, 1)  # type: ignore[arg-type]
            other = Origin(OriginKind.AGENT, "bob", 7)  # type: ignore[arg-type]
            own = await _by_others(at, ada.id, thread.id, itself, "wk_own")
            deep = await _by_others(at, ada.id, thread.id, other, "wk_deep")
            assert (await show_wake(at.services, USER, own.wake)).code == "skipped:self"
            assert (await explain(at.services, USER, deep.wake)).headline.startswith(
                "skipped: Agents have woken one another 7"
            )
            assert await at.claim() == []

    asyncio.run(story())


@pytest.mark.case("W12")
def test_a_poke_lands_in_no_conversation_but_the_agents_own(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            await at.serve("n-1")
            woken = await poke(at.services, USER, Poke("ada", text="What now?"))
            assert (woken.thread, woken.reason) == ("own-ada", "manual")
            order = await at.claim_one()
            assert (order.plan.outcome, order.plan.session, bodies(order)) == (Outcome.BLANK, None, ["What now?"])
            assert (await show_thread(at.services, USER, "issue-1")).thread.entries == 2

    asyncio.run(story())


@pytest.mark.case("W13")
def test_a_lane_that_is_to_be_interrupted_is(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await set_overlap(at.services, USER, "chat-1", "ada", "interrupt")
            await say(at.services, USER, "chat-1", Words("one"))
            going = await at.claim_one()
            await at.prompt(going, "n-1")
            said = await say(at.services, USER, "chat-1", Words("two"))
            assert said.wake is not None
            assert said.wake.code == "accepted:interrupts"
            run = await show_run(at.services, USER, going.run)
            assert (run.stopping, run.code) == (True, "run:interrupted")
            # Its daemon hears of it at once.
            asked = await at.plane.claim(ClaimRequest("daemon-1", (LOOM,), 0, holding=held(going), wait=5.0))
            assert asked.news == {going.run}
            assert (await at.report(going)).stop == "run:interrupted"
            await at.finish(going, Stopped())
            after = await at.claim_one()
            # What the first was for is not lost, and its session goes on.
            assert (len(after.wakes), after.plan.outcome) == (2, Outcome.RESUME)
            assert after.plan.act_on == (1, 2)

    asyncio.run(story())


@pytest.mark.case("W13")
@pytest.mark.parametrize(
    ("policy", "code"), [("queue", "accepted:queued"), ("steer", "accepted:queued"), ("reject", "skipped:overlap")]
)
def test_a_busy_lane_says_what_became_of_the_wake(database: Database, tmp_path: Path, policy: str, code: str) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await set_overlap(at.services, USER, "chat-1", "ada", policy)
            await say(at.services, USER, "chat-1", Words("one"))
            going = await at.claim_one()
            await at.prompt(going, "n-1")
            said = await say(at.services, USER, "chat-1", Words("two"))
            assert said.wake is not None
            assert (await show_wake(at.services, USER, said.wake.id)).code == code
            await at.finish(going)
            assert [bodies(order) for order in await at.claim()] == ([] if policy == "reject" else [["two", "done"]])
            with pytest.raises(BadRequest, match="Unknown overlap policy"):
                await set_overlap(at.services, USER, "chat-1", "ada", "whatever")

    asyncio.run(story())


@pytest.mark.case("W07", "W15")
def test_a_wake_is_cancelled_once(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            woken = await poke(at.services, USER, Poke("ada", text="hello"))
            told = await explain(at.services, USER, woken.id)
            assert told.headline.startswith("pending: The next run of the lane takes it")
            assert "It is next, and starts within seconds." in told.headline
            done = await cancel_wake(at.services, USER, woken.id[:-3])
            assert (done.taken, done.state) == (True, "cancelled")
            again = await cancel_wake(at.services, USER, woken.id)
            assert (again.taken, again.words) == (False, "The message was taken back (by user).")
            assert await at.claim() == []
            served = await poke(at.services, USER, Poke("ada", text="hello"))
            order = await at.serve()
            with pytest.raises(MessageTaken, match="ada has it: run-"):
                await cancel_wake(at.services, USER, served.id)
            assert (await show_wake(at.services, USER, served.id)).run == order.run
            with pytest.raises(NoSuchWake):
                await show_wake(at.services, USER, "wk_nothing")

    asyncio.run(story())


def test_what_cannot_be_said_is_refused(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            for words in (
                Words(""),
                Words(" \n"),
                Words("x" * 1_000_001),
                Words("x", key=""),
                Words("x", key="k" * 201),
            ):
                with pytest.raises(BadRequest):
                    await say(at.services, USER, "chat-1", words)
            for asked in (Poke("ada", priority=1001), Poke("ada", fresh=True, resume_run="rn_1")):
                with pytest.raises(BadRequest):
                    await poke(at.services, USER, asked)
            said = await say(at.services, USER, "chat-1", Words("odd \0 and \ud800 half"))
            assert said.entry == 1
            page = await show_thread(at.services, USER, "chat-1")
            assert page.entries[0].text == "odd \N{SYMBOL FOR NULL} and ? half"

    asyncio.run(story())


def test_what_no_prompt_has_room_for_is_refused_when_it_is_said(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            with pytest.raises(BadRequest, match="the limit is 160,000"):
                await say(at.services, USER, "chat-1", Words("é" * 80_001))
            longest = "x" * bounds.LONGEST
            await say(at.services, USER, "chat-1", Words(longest))
            order = await at.claim_one()
            prompt = prompt_for(request_of(order))
            assert longest in prompt.text

    asyncio.run(story())
