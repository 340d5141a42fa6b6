"""What became of a prompt: asked before anything is sent, whatever door one comes by, decided by a person at last, and
shown in a sentence."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from clew.control.decisions import explain
from clew.control.faults import NotNow
from clew.control.runs import rerun, retry_run, show_run
from clew.control.threads import open_chat, show_thread
from clew.control.wakes import say, show_wake
from clew.kernel import Evidence, FailureKind, Outcome
from clew.protocol.orders import Order
from clew.protocol.reports import Failed, Finish, Landed
from clew.protocol.requests import NewChat, Retry, Words
from clew.store.engine.database import Database
from clew.store.operations.leases import end_orphans
from tests.control.kit import LOOM, USER, Office, office
from tests.store.kit import bodies, prompted_of

Story = Callable[[Office, Order], Awaitable[None]]


async def lost(at: Office, hears: bool = True) -> Order:
    """A turn of which nobody knows whether the agent took the prompt: its daemon was started anew."""
    order = await prompted(at, hears)
    await at.services.write(lambda connection: end_orphans(connection, "daemon-1", [LOOM]))
    return order


async def prompted(at: Office, hears: bool = True) -> Order:
    await at.agent()
    await open_chat(at.services, USER, NewChat("ada"))
    await say(at.services, USER, "chat-1", Words("hello"))
    order = await at.claim_one()
    told = await at.report(
        order,
        opens=True,
        landed=Landed("{}", "started"),
        told=order.plan.situation.head,
        prompted=prompted_of(order, "n-1", hears=hears),
    )
    assert told.may_prompt
    return order


def told(database: Database, tmp_path: Path, story: Story, hears: bool = True) -> None:
    async def tell() -> None:
        async with office(database, tmp_path) as at:
            await story(at, await lost(at, hears))

    asyncio.run(tell())


@pytest.mark.case("P20")
@pytest.mark.parametrize("taken", [True, False])
def test_a_person_decides_what_nobody_else_can_tell(database: Database, tmp_path: Path, taken: bool) -> None:
    async def story(at: Office, order: Order) -> None:
        shown = (await explain(at.services, USER, order.run)).evidence
        assert shown is not None
        assert "; a person decides, because this agent keeps no record" in shown.words
        assert await at.claim() == []
        (wake,) = await retry_run(at.services, USER, order.run)
        assert await at.claim() == [], "to try again is not to know"
        waiting = await show_wake(at.services, USER, wake.id)
        assert waiting.run is None
        held = await explain(at.services, USER, wake.id)
        named = (await show_run(at.services, USER, order.run)).ref
        assert f"`clew retry {named} --not-taken` sends it again in full" in held.headline
        shown_as = (await show_thread(at.services, USER, "chat-1")).thread.words
        assert (f"`clew retry {named} --taken`" in shown_as, "rn_" in shown_as + held.headline) == (True, False)
        (again,) = await retry_run(at.services, USER, order.run, Retry(taken=taken))
        assert (again.id, again.state) == (wake.id, "pending")
        after = await at.claim_one()
        assert (after.plan.already_told, bodies(after)) == (((1,), []) if taken else ((), ["hello"]))
        with pytest.raises(NotNow, match="there is nothing left to decide"):
            await retry_run(at.services, USER, order.run, Retry(taken=not taken))

    told(database, tmp_path, story, hears=False)


@pytest.mark.case("P19", "P20")
def test_a_retry_and_a_rerun_ask_before_they_send(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await prompted(at)
            gave_up = Failed(FailureKind.PERMANENT, "no such model")
            await at.plane.finish(Finish(order.run, order.attempt, gave_up))
            assert await at.claim() == []
            (again,) = await retry_run(at.services, USER, order.run)
            asks = await at.claim_one()
            assert ([each.run for each in asks.questions], bodies(asks)) == ([order.run], [])
            await at.answer(asks, Evidence.CUT_OFF)
            after = await at.claim_one()
            assert ([wake.id for wake in after.wakes], bodies(after)) == ([again.id], [])
            await at.prompt(after)
            await at.finish(after)
            # Once more, on purpose: by now it is known which session that was.
            (once_more,) = await rerun(at.services, USER, order.run)
            third = await at.claim_one()
            assert ([wake.id for wake in third.wakes], third.plan.outcome) == ([once_more.id], Outcome.RESUME)

    asyncio.run(story())


@pytest.mark.case("C35", "P19")
@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (Evidence.UNSENT, "The agent did not take the prompt: it was looked for."),
        (
            Evidence.TAKEN,
            "The agent took the prompt, and no answer to it is known: it was looked for.",
        ),
        (
            Evidence.CUT_OFF,
            "The agent took the prompt and its turn was cut off: it was looked for.",
        ),
        (Evidence.FINISHED, "The agent took the prompt and finished its turn: it was looked for."),
        (Evidence.UNKNOWN, "It is not known whether the agent took the prompt: it was looked for."),
    ],
    ids=lambda each: each.value if isinstance(each, Evidence) else "",
)
def test_why_says_what_became_of_the_prompt(database: Database, tmp_path: Path, evidence: Evidence, words: str) -> None:
    async def story(at: Office, order: Order) -> None:
        before = (await explain(at.services, USER, order.run)).evidence
        assert before is not None
        assert before.words.startswith("Not known yet whether the agent took the prompt; Clew finds out")
        asks = await at.claim_one()
        await at.answer(asks, evidence, "the answer")
        shown = (await explain(at.services, USER, order.run)).evidence
        assert shown is not None
        assert (shown.state, shown.words) == (evidence.value, words)
        assert (shown.at is None, shown.asked) == (False, int(evidence is Evidence.UNKNOWN))
        if evidence is Evidence.FINISHED:
            wake = await show_wake(at.services, USER, order.wakes[0].id)
            assert (wake.state, wake.code, wake.run) == ("served", "served:read-back", order.run)
            assert (await show_run(at.services, USER, asks.run)).code == "run:read-back"

    told(database, tmp_path, story)


@pytest.mark.case("P19")
def test_why_of_a_turn_that_ended_well_has_nothing_to_ask(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await prompted(at)
            assert (await explain(at.services, USER, order.run)).evidence is None, "while it goes nobody asks"
            await at.finish(order)
            shown = (await explain(at.services, USER, order.run)).evidence
            assert shown is not None
            assert (shown.state, shown.words) == ("finished", "The agent took the prompt and finished its turn.")

    asyncio.run(story())
