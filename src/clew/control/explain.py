"""Why a run went as it did, or a wake did not run: the outcome first, then all that it came from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import orjson
from sqlalchemy import Connection

from clew.control.services import Services
from clew.control.showing.decisions import show_decision
from clew.control.showing.runs import show_run
from clew.control.showing.steering import show_steer
from clew.control.showing.wakes import show_wake
from clew.kernel import Carried, Evidence, RunId, RunState, WakeState
from clew.protocol.views import DecisionView, EvidenceView, RunView, WakeView, WhyView
from clew.store.engine.statement import Row
from clew.store.faults import NoSuchRun, NoSuchWake
from clew.store.operations.decisions import decisions_of
from clew.store.queries.names import run_called, wake_called
from clew.store.queries.runs import live_runs_of, open_run_of, read_run, refused_landings
from clew.store.queries.steering import steers_of
from clew.store.queries.threads import thread_ref
from clew.store.queries.wakes import pending_wakes, read_wake, wakes_of_run


async def explain(services: Services, what: str) -> WhyView:
    """For a run or a wake, by its id or a beginning that no other has."""
    return await services.read(lambda connection: _explain(connection, what))


def _explain(connection: Connection, what: str) -> WhyView:
    try:
        return _of_run(connection, run_called(connection, what))
    except NoSuchRun:
        pass
    try:
        return _of_wake(connection, read_wake(connection, wake_called(connection, what)))
    except NoSuchWake as fault:
        raise NoSuchRun(
            f"There is neither a run nor a wake {what!r}.", "Name one by its id or its beginning; see `clew runs`."
        ) from fault


def _of_run(connection: Connection, run: str) -> WhyView:
    row = read_run(connection, run)
    view = show_run(connection, row)
    carried = wakes_of_run(connection, run) or pending_wakes(connection, row["lane_id"])
    decided = tuple(show_decision(each) for each in sorted(decisions_of(connection, RunId(run)), key=_order))
    return WhyView(
        subject=run,
        headline=_headline(connection, row, view, decided),
        run=view,
        wakes=tuple(map(show_wake, carried)),
        decisions=decided,
        landing=_landing(row["landing"]),
        refused=tuple(each["words"] for each in refused_landings(connection, run)),
        steered=tuple(map(show_steer, steers_of(connection, run))),
        evidence=_evidence(row),
    )


_EVIDENCE: Mapping[Evidence, str] = {
    Evidence.UNSENT: "The agent did not take the prompt",
    Evidence.TAKEN: "The agent took the prompt, and no answer to it is known",
    Evidence.CUT_OFF: "The agent took the prompt and its turn was cut off",
    Evidence.FINISHED: "The agent took the prompt and finished its turn",
    Evidence.UNKNOWN: "Nobody can tell whether the agent took the prompt",
}


def _evidence(row: Row) -> EvidenceView | None:
    if row["prompt"] is None:
        return None
    if not row["evidence"]:
        ended = row["ended_at"] is not None
        words = "Nobody knows yet whether the agent took the prompt; it is found out before anything else is sent here"
        return EvidenceView(Evidence.UNKNOWN.value, f"{words}.", None) if ended else None
    evidence = Evidence(row["evidence"])
    detail = (row["evidence_words"] or "").strip().removesuffix(".")
    words = f"{_EVIDENCE[evidence]}: {detail}." if detail else f"{_EVIDENCE[evidence]}."
    return EvidenceView(evidence.value, words, row["evidence_at"], row["evidence_asked"])


def _of_wake(connection: Connection, row: Row) -> WhyView:
    """A wake that a run took is explained by that run; any other by its receipt, and by what it waits for."""
    wake = show_wake(row)
    if row["run_id"] is not None:
        told = _of_run(connection, row["run_id"])
        return replace(told, subject=row["id"], headline=_how_it_came(wake, told), wakes=(wake,))
    run: RunView | None = None
    waits = ""
    decided: tuple[DecisionView, ...] = ()
    if row["state"] == WakeState.PENDING:
        waiting = open_run_of(connection, row["lane_id"])
        if waiting is not None:
            run = show_run(connection, waiting)
            decided = tuple(map(show_decision, decisions_of(connection, RunId(run.id))))
            waits = run.words or _turn(connection, waiting) if run.state == "queued" else ""
    return WhyView(row["id"], _why_not(wake, waits), run, (wake,), decided, {}, ())


def _how_it_came(wake: WakeView, told: WhyView) -> str:
    """The decision was made before it came where it was told within the turn."""
    if not any(wake.id in steer.wakes and steer.taken for steer in told.steered):
        return told.headline
    return f"steered: {Carried.STEERED.fill(run=wake.run)} [{Carried.STEERED.code}]"


def _headline(connection: Connection, row: Row, run: RunView, decided: Sequence[DecisionView]) -> str:
    if run.state == "queued" and row["hold"]:
        # What it was to be is not what it came to.
        return f"hold: {run.words} [{run.code}]"
    if not decided:
        waits = run.words or _turn(connection, row)
        return f"{run.state}: {waits}"
    last = decided[-1]
    return f"{last.outcome}: {last.words} [{last.code}]"


def _why_not(wake: WakeView, waits: str) -> str:
    return f"{wake.state}: {wake.words} [{wake.code}] {waits}".strip()


def _turn(connection: Connection, row: Row) -> str:
    """What a run that may start waits for: mostly for another of its agent's."""
    going = live_runs_of(connection, row["agent_id"])
    if not going:
        return f"Run {row['id']} waits for its turn and was not decided yet."
    busy = ", ".join(
        f"{thread_ref(each)} (which waits for your answer, see `clew approvals`)"
        if each["state"] == RunState.WAITING
        else thread_ref(each)
        for each in going
    )
    return f"Run {row['id']} waits for its turn: {row['agent_name']} is busy in {busy}."


def _order(row: Row) -> tuple[float, int, int]:
    """As they were made: one that held a run again is later than the one before it was claimed."""
    return row["at"], row["attempt"], row["step"]


def _landing(text: str | None) -> Mapping[str, str]:
    if text is None:
        return {}
    try:
        said = orjson.loads(text)
    except ValueError:
        said = text
    if not isinstance(said, dict):
        return {"said": str(said)}
    return {str(name): value if isinstance(value, str) else _plain(value) for name, value in said.items()}


def _plain(value: object) -> str:
    return orjson.dumps(value).decode()
