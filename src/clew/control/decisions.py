"""Decisions: why a run went as it did or a wake has not run, and which decisions another policy would change."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from clew.control.actor import Actor
from clew.control.faults import BadRequest
from clew.control.foretold import notices_of
from clew.control.policies import read_given
from clew.control.services import Services
from clew.kernel import Carried, Policy, RecordedFor, RecordError, WakeState, policy_from_record, recorded_for
from clew.kernel import replay as decide_again
from clew.protocol.replay import Changed, ReplayView
from clew.protocol.requests import Replay
from clew.protocol.views import RunView, WakeView
from clew.protocol.why_views import DecisionView, WhyView
from clew.store.engine.database import Transaction
from clew.store.faults import NoSuchRun, NoSuchWake
from clew.store.operations.rows import read_object
from clew.store.queries.agents import agent_records
from clew.store.queries.decisions import RecordedDecision, decisions_after, decisions_of_run, first_since
from clew.store.queries.names import agent_named, project_named, run_called, wake_called
from clew.store.queries.projects import project_policies
from clew.store.queries.runs import open_run_of, run_details, show_run
from clew.store.queries.spoken import spoken
from clew.store.queries.wakes import lane_of_wake, pending_wakes, show_wake, wakes_of_run


async def explain(services: Services, actor: Actor, what: str) -> WhyView:
    """For a run by its number, or its thread for the latest one; or for a wake; each also by id or a unique prefix."""
    return await services.read(lambda tx: spoken(tx, _explain(tx, what)))


def _explain(tx: Transaction, what: str) -> WhyView:
    try:
        return _of_run(tx, run_called(tx, what))
    except NoSuchRun:
        pass
    try:
        return _of_wake(tx, show_wake(tx, wake_called(tx, what)))
    except NoSuchWake as fault:
        raise NoSuchRun(
            f"There is no run and no wake {what!r}.",
            "Give a run (run-17), a thread (issue-3) or an id; see them with `clew runs`.",
        ) from fault


def _of_run(tx: Transaction, run: str) -> WhyView:
    found = run_details(tx, run)
    decisions = decisions_of_run(tx, found.record.id)
    wakes = wakes_of_run(tx, run) or pending_wakes(tx, found.record.lane)
    return WhyView(
        subject=run,
        headline=_headline(found.view, decisions),
        run=found.view,
        wakes=wakes,
        decisions=decisions,
        landing=found.landing,
        refused=found.refused,
        steered=found.steered,
        evidence=found.evidence,
        notices=notices_of(tx, wakes, decisions, found.steered),
    )


def _of_wake(tx: Transaction, wake: WakeView) -> WhyView:
    """A wake that a run carries is explained by that run; any other by its receipt, and by what it waits for."""
    if wake.run is not None:
        why = _of_run(tx, wake.run)
        notices = notices_of(tx, (wake,), why.decisions, why.steered)
        return replace(why, subject=wake.id, headline=_carried_headline(wake, why), wakes=(wake,), notices=notices)
    run: RunView | None = None
    waits = ""
    decisions: tuple[DecisionView, ...] = ()
    waiting = open_run_of(tx, lane_of_wake(tx, wake.id)) if wake.state == WakeState.PENDING else None
    if waiting is not None:
        run = show_run(tx, waiting.id)
        decisions = decisions_of_run(tx, waiting.id)
        waits = run.words or "" if run.state == "queued" else ""
    headline = f"{wake.state}: {wake.words} [{wake.code}] {waits}".strip()
    return WhyView(wake.id, headline, run, (wake,), decisions, {}, ())


def _carried_headline(wake: WakeView, why: WhyView) -> str:
    """A steered wake came after its run's decision, so the decision does not explain it."""
    if not any(wake.id in steer.wakes and steer.taken for steer in why.steered):
        return why.headline
    return f"steered: {Carried.STEERED.fill(run=wake.run)} [{Carried.STEERED.code}]"


def _headline(run: RunView, decisions: Sequence[DecisionView]) -> str:
    if run.state == "queued":
        # The last decision was made before the run was queued again or held.
        return f"{'hold' if run.held else 'queued'}: {run.words} [{run.code}]"
    if not decisions:
        return f"{run.state}: {run.words or ''}".rstrip(": ")
    last = decisions[-1]
    return f"{last.outcome}: {last.words} [{last.code}]"


PAGE = 200
MOST = 200_000
"""How many decisions one request replays."""

MOST_CHANGED = 5000


async def replay_decisions(services: Services, actor: Actor, asked: Replay) -> ReplayView:
    """Replay the decisions of runs queued since then. It reads page by page, so that no other request waits for it."""
    choose = await services.read(lambda tx: _policies(tx, asked))
    place = first_since(asked.since)
    looked_at, unreadable, changed = 0, 0, list[Changed]()
    while looked_at < MOST and len(changed) < MOST_CHANGED:
        found = await services.read(partial(decisions_after, place=place, most=PAGE))
        if not found:
            break
        place = found[-1].place
        looked, failed, different = await asyncio.to_thread(_decide_again, found, choose)
        looked_at, unreadable = looked_at + looked, unreadable + failed
        changed += different
    return ReplayView(looked_at, unreadable, tuple(changed[:MOST_CHANGED]))


_Choose = Callable[[RecordedFor], Policy | None]
"""The policy to decide a recorded situation with; None for one that is not asked about."""


def _policies(tx: Transaction, asked: Replay) -> _Choose:
    """The policy that each run is decided with. A replaced agent policy is merged with the run's project policy, and a
    replaced project policy with the run's agent policy."""
    if not math.isfinite(asked.since) or not 0 <= asked.since < 2**40:
        raise BadRequest(f"{asked.since} is not a time.", "Give seconds since the epoch.")
    policy, given = read_given(asked.policy), dict(asked.policy)
    if asked.agent is not None and asked.project is not None:
        raise BadRequest("A policy is an agent's or a project's.", "Name one of them.")
    if asked.agent is not None:
        name, projects = agent_named(tx, asked.agent).name, project_policies(tx)
        return lambda about: _if(about.agent == name, {**projects.get(about.project or "", {}), **given})
    if asked.project is not None:
        project = project_named(tx, asked.project).id
        agents = {agent.name: read_object(agent.policy) or {} for agent in agent_records(tx)}
        return lambda about: _if(about.project == project, {**given, **agents.get(about.agent, {})})
    return lambda _: policy


def _if(asked_about: bool, policy: dict[str, Any]) -> Policy | None:
    return policy_from_record(policy) if asked_about else None


def _decide_again(recorded: Sequence[RecordedDecision], choose: _Choose) -> tuple[int, int, list[Changed]]:
    """How many decisions were replayed, how many of them could not be read, and which ones change."""
    looked, unreadable, changed = 0, 0, []
    for each in recorded:
        try:
            record = orjson.loads(each.record)
            policy = choose(recorded_for(record))
            if policy is None:
                continue
            again = decide_again(record, policy)
        except (RecordError, ValueError, TypeError, KeyError, AttributeError):
            looked, unreadable = looked + 1, unreadable + 1
            continue
        looked += 1
        if not again.same:
            fields = ", ".join(change.field for change in again.changes)
            outcome = again.plan.outcome.value
            words = again.plan.words if outcome != each.outcome else f"{again.plan.words} Different: {fields}."
            changed.append(
                Changed(each.run, each.ref, each.thread, each.at, each.outcome, outcome, words, each.attempt, each.step)
            )
    return looked, unreadable, changed
