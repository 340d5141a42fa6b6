"""Why: every decision is shown with all that it was made from, and can be made again under another policy."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from clew.control import decisions as replaying
from clew.control.agents import change_agent
from clew.control.decisions import explain, replay_decisions
from clew.control.faults import BadRequest
from clew.control.issues import open_issue
from clew.control.threads import open_chat
from clew.control.wakes import poke, say
from clew.kernel import Outcome, Probe, ProbeKind, Session, WaitsFor, settle
from clew.protocol.reports import Landed, Returned
from clew.protocol.requests import AgentChange, NewChat, NewIssue, Poke, Replay, Words
from clew.store.engine.database import Database
from clew.store.faults import NoSuchRun
from clew.store.operations import decisions as decision_operations
from clew.store.schema.tables import decisions, runs
from tests.control.kit import USER, office


def test_a_session_elsewhere_is_named_by_its_home_and_not_by_an_id(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await say(at.services, USER, "chat-1", Words("one"))
            await at.serve("n-1")
            await change_agent(at.services, USER, "ada", AgentChange(home={"HOME": "/srv/other"}))
            await say(at.services, USER, "chat-1", Words("two"))
            runtime = at.laptop.offered[-1][0]
            (order,) = await at.claim(runtimes=(runtime,))
            told = await explain(at.services, USER, order.run)
            assert told.run is not None
            assert (told.run.runtime, told.run.place) == (runtime, "/srv/other (loom on the laptop)")
            words = [step.words for each in told.decisions[0].considered for step in each.steps]
            assert (
                "It is on /srv/home (loom on the laptop); this run is on /srv/other (loom on the laptop)." in words
            ), words
            assert "rt_" not in repr([told.headline, told.decisions])

    asyncio.run(story())


@pytest.mark.case("C26")
def test_a_run_shows_every_session_and_what_spoke_for_or_against_it(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            await at.serve("n-1")
            await say(at.services, USER, "issue-1", Words("start over", fresh=True))
            await at.serve("n-2")
            await say(at.services, USER, "issue-1", Words("go on"))
            order = await at.claim_one()
            await at.prompt(order, "n-2")
            told = await explain(at.services, USER, order.run[:-1])
            assert told.headline == "resume: Continuing the same conversation (session 2). [session:fits]"
            assert told.run is not None
            assert (told.run.decision, told.run.claim) == ("resume", "started")
            (decision,) = told.decisions
            assert (decision.outcome, decision.mode, decision.catch_up) == ("resume", "edit", "entry 5")
            assert decision.directory == str(tmp_path / "homes" / "ada")
            (chosen, other) = decision.considered
            assert (chosen.generation, chosen.route, chosen.words) == (2, "resume", "It can be resumed.")
            # Every rule that was asked, with its answer.
            assert {step.rule for step in chosen.steps} >= {"lane", "scope", "runtime", "directory", "account", "mode"}
            assert all(step.outcome == "fit" for step in chosen.steps)
            assert (other.generation, other.route) == (1, "not-weighed")
            assert told.landing == {"native_id": "n-2", "directory": "/srv"}
            assert [wake.reason for wake in told.wakes] == ["comment"]
            by_wake = await explain(at.services, USER, told.wakes[0].id)
            assert (by_wake.headline, by_wake.decisions) == (told.headline, told.decisions)

    asyncio.run(story())


@pytest.mark.case("C26")
def test_what_a_probe_and_a_refused_landing_led_to_is_shown(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            await at.serve("n-1")
            await say(at.services, USER, "issue-1", Words("go on"))
            order = await at.claim_one()
            unsure = settle(order.plan, Probe(ProbeKind.FOUND_HERE, detail="it is in its store"))
            landed = Landed('{"native_id": "n-9"}', "", "It opened n-9 and not n-1.")
            await at.report(order, opens=True, settled=(unsure,), landed=landed)
            told = await explain(at.services, USER, order.run)
            assert [(each.step, each.outcome) for each in told.decisions] == [(0, "resume"), (1, "resume")]
            (probe,) = told.decisions[1].probes
            assert (probe.outcome, probe.words) == ("found-here", "The agent was asked for it: it is in its store.")
            assert told.refused == ("It opened n-9 and not n-1.",)

    asyncio.run(story())


def test_a_hold_says_what_it_waits_for(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            woken = await poke(at.services, USER, Poke("ada", text="hello"))
            order = await at.claim_one()
            await at.finish(order, Returned("no login", "agent:no-login", WaitsFor.PERSON))
            told = await explain(at.services, USER, woken.id)
            assert told.headline.startswith("pending: Back in the queue: no login")
            assert told.run is not None
            assert (told.run.id, told.run.code) == (order.run, "agent:no-login")
            assert [each.outcome for each in told.decisions] == ["blank"]

    asyncio.run(story())


@pytest.mark.case("C24")
def test_sessions_that_cannot_be_looked_up_send_the_claim_back(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            first = await at.serve("n-1")
            await say(at.services, USER, "issue-1", Words("go on"))

            def broken(*_: object) -> Sequence[Session]:
                raise OSError("the disk is away")

            with monkeypatch.context() as patched:
                patched.setattr(decision_operations, "lane_sessions", broken)
                with pytest.raises(OSError, match="away"):
                    await at.claim()
            order = await at.claim_one()
            assert (order.plan.outcome, order.session) == (Outcome.RESUME, first.session)

    asyncio.run(story())


def test_a_decision_of_another_program_is_told_as_it_was_kept(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            order = await at.serve("n-1")
            whole = await explain(at.services, USER, order.run)
            row = await at.services.read(lambda connection: connection.execute(decisions.select()).one())
            for record in ('{"version": 99, "plan": {"words": "It was so."}}', "no json", "[]"):
                kept = update(decisions).where(decisions.c.run_id == order.run).values(record=record)
                await at.services.write(lambda connection, kept=kept: connection.execute(kept).rowcount)  # type: ignore[misc]
                told = await explain(at.services, USER, order.run)
                assert told.decisions[0].outcome == whole.decisions[0].outcome
            step = ["workspace", "place", "use", "place:its-own", "The lane has a place of its own."]
            plan = {"words": "It was so.", "trace": [step, ["a step of another shape"]]}
            kept = update(decisions).values(record=json.dumps({"version": 99, "plan": plan}))
            await at.services.write(lambda connection: connection.execute(kept).rowcount)
            (decision,) = (await explain(at.services, USER, order.run)).decisions
            assert (decision.words, decision.place_words) == ("It was so.", "The lane has a place of its own.")
            view = await replay_decisions(at.services, USER, Replay(0.0))
            assert (view.looked_at, view.unreadable) == (1, 1)
            mended = update(decisions).values(record=row.record)
            await at.services.write(lambda connection: connection.execute(mended).rowcount)

    asyncio.run(story())


def test_neither_a_run_nor_a_wake_is_said(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            for odd in ("rn_1", "nothing", "", "\0"):
                with pytest.raises(NoSuchRun, match="no run and no wake"):
                    await explain(at.services, USER, odd)

    asyncio.run(story())


@pytest.mark.case("C33")
def test_another_policy_is_tried_on_what_was_decided(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "PAGE", 2)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            orders = []
            for number in range(5):
                await say(at.services, USER, "chat-1", Words(f"word {number}"))
                orders.append(await at.serve("n-1"))
            same = await replay_decisions(at.services, USER, Replay(0.0, {}))
            assert (same.looked_at, same.unreadable, same.changed) == (5, 0, ())
            fresh = await replay_decisions(at.services, USER, Replay(0.0, {"reset": {"reasons": ["chat"]}}))
            assert [(each.run, each.was, each.now) for each in fresh.changed] == [
                (orders[0].run, "blank", "blank"),
                *((order.run, "resume", "blank") for order in orders[1:]),
            ]
            assert fresh.changed[1].words == "The policy starts a new conversation for each chat message."
            assert fresh.changed[1].thread == "chat-1"
            assert {(each.attempt, each.step) for each in fresh.changed} == {(1, 0)}
            limited = await replay_decisions(at.services, USER, Replay(0.0, {"limits": {"turns": 3}}))
            assert [each.run for each in limited.changed] == [orders[3].run, orders[4].run]
            later = (await at.services.read(lambda connection: connection.execute(runs.select()).first())).queued_at  # type: ignore[union-attr]
            assert (await replay_decisions(at.services, USER, Replay(later + 3600))).looked_at == 0
            for asked in (
                Replay(float("nan")),
                Replay(-1.0),
                Replay(0.0, {"reset": 3}),
                Replay(0.0, {"unknown": True}),
            ):
                with pytest.raises(BadRequest):
                    await replay_decisions(at.services, USER, asked)

    asyncio.run(story())


@pytest.mark.case("C33")
def test_a_kept_decision_is_made_again_the_same_way(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            order = await at.serve("n-1")
            told = (await explain(at.services, USER, order.run)).decisions[0]
            assert replace(told, at=0.0) == replace((await explain(at.services, USER, order.run)).decisions[0], at=0.0)
            row = await at.services.read(lambda connection: connection.execute(decisions.select()).one())
            assert json.loads(row.record)["plan"]["outcome"] == told.outcome

    asyncio.run(story())
