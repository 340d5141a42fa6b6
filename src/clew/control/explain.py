"""Explanations: why a run went as it did, or why a wake has not run. The outcome comes first."""

from collections.abc import Sequence
from dataclasses import replace

from clew.control.actor import Actor
from clew.control.services import Services
from clew.kernel import Carried, RunState, WakeState
from clew.protocol.views import DecisionView, RunView, WakeView, WhyView
from clew.store.engine.database import Transaction
from clew.store.faults import NoSuchRun, NoSuchWake
from clew.store.queries.decisions import decisions_of_run
from clew.store.queries.names import run_called, wake_called
from clew.store.queries.runs import RunRecord, live_runs_of, open_run_of, run_details, show_run
from clew.store.queries.wakes import lane_of_wake, pending_wakes, show_wake, wakes_of_run


async def explain(services: Services, actor: Actor, what: str) -> WhyView:
    """For a run or a wake, by its id or a prefix that no other has."""
    return await services.read(lambda tx: _explain(tx, what))


def _explain(tx: Transaction, what: str) -> WhyView:
    try:
        return _of_run(tx, run_called(tx, what))
    except NoSuchRun:
        pass
    try:
        return _of_wake(tx, show_wake(tx, wake_called(tx, what)))
    except NoSuchWake as fault:
        raise NoSuchRun(
            f"There is no run and no wake {what!r}.", "Give an id or the beginning of one; `clew runs` shows them."
        ) from fault


def _of_run(tx: Transaction, run: str) -> WhyView:
    found = run_details(tx, run)
    decisions = decisions_of_run(tx, found.record.id)
    return WhyView(
        subject=run,
        headline=_headline(tx, found.record, found.view, decisions),
        run=found.view,
        wakes=wakes_of_run(tx, run) or pending_wakes(tx, found.record.lane),
        decisions=decisions,
        landing=found.landing,
        refused=found.refused,
        steered=found.steered,
        evidence=found.evidence,
    )


def _of_wake(tx: Transaction, wake: WakeView) -> WhyView:
    """A wake that a run carries is explained by that run; any other by its receipt, and by what it waits for."""
    if wake.run is not None:
        why = _of_run(tx, wake.run)
        return replace(why, subject=wake.id, headline=_carried_headline(wake, why), wakes=(wake,))
    run: RunView | None = None
    waits = ""
    decisions: tuple[DecisionView, ...] = ()
    waiting = open_run_of(tx, lane_of_wake(tx, wake.id)) if wake.state == WakeState.PENDING else None
    if waiting is not None:
        run = show_run(tx, waiting.id)
        decisions = decisions_of_run(tx, waiting.id)
        waits = run.words or _queue_words(tx, waiting) if run.state == "queued" else ""
    headline = f"{wake.state}: {wake.words} [{wake.code}] {waits}".strip()
    return WhyView(wake.id, headline, run, (wake,), decisions, {}, ())


def _carried_headline(wake: WakeView, why: WhyView) -> str:
    """A steered wake came after its run's decision, so the decision does not explain it."""
    if not any(wake.id in steer.wakes and steer.taken for steer in why.steered):
        return why.headline
    return f"steered: {Carried.STEERED.fill(run=wake.run)} [{Carried.STEERED.code}]"


def _headline(tx: Transaction, record: RunRecord, run: RunView, decisions: Sequence[DecisionView]) -> str:
    if run.state == "queued" and record.held:
        # The last decision was made before the run was held.
        return f"hold: {run.words} [{run.code}]"
    if not decisions:
        waits = run.words or _queue_words(tx, record)
        return f"{run.state}: {waits}"
    last = decisions[-1]
    return f"{last.outcome}: {last.words} [{last.code}]"


def _queue_words(tx: Transaction, run: RunRecord) -> str:
    """Why a run that may start has not: mostly because its agent is busy elsewhere."""
    live = live_runs_of(tx, run.agent)
    if not live:
        return f"Run {run.id} is queued and was not claimed yet."
    busy = ", ".join(
        f"{each.ref} (which waits for your answer, see `clew approvals`)"
        if each.state is RunState.WAITING
        else each.ref
        for each in live
    )
    return f"Run {run.id} is queued: {run.agent_name} is busy in {busy}."
