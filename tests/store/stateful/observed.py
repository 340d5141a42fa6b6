"""What the database holds, in the model's terms, and whether the two are the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, func, select

from clew.kernel import RUN_ENDS, WAKE_ENDS, Evidence, RunState, WakeState
from clew.store.engine.dialect import now
from clew.store.schema.tables import approvals, journal, runs, sessions, wakes
from tests.store.stateful.model import ARun, Disallowed, Model, demand

EVIDENCE = {"evidence", "evidence_words", "evidence_at", "evidence_asked"}

Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Observed:
    wakes: Rows
    runs: Rows
    sessions: Rows
    approvals: Rows
    entries: Mapping[str, int]
    now: float


def observe(connection: Connection) -> Observed:
    counted = connection.execute(select(journal.c.thread_id, func.count()).group_by(journal.c.thread_id))
    return Observed(
        _by_id(connection, wakes),
        _by_id(connection, runs),
        _by_id(connection, sessions),
        _by_id(connection, approvals),
        {row[0]: row[1] for row in counted},
        connection.execute(select(now())).scalar_one(),
    )


def _by_id(connection: Connection, table: Table) -> Rows:
    return {row["id"]: dict(row) for row in connection.execute(select(table).order_by(table.c.id)).mappings()}


def in_future(seen: Observed, row: Mapping[str, Any]) -> bool:
    return row["not_before"] is not None and row["not_before"] > seen.now


# ---------------------------------------------------------------- the same


def bind(model: Model, seen: Observed) -> None:
    """Runs that the store has named since get their names in the model."""
    known = {run.id for run in model.runs}
    nameless = [run for run in model.runs if run.id is None]
    for row in sorted(seen.runs.values(), key=lambda row: (row["ended_at"] is None, row["queued_at"], row["id"])):
        if row["id"] not in known:
            found = next((run for run in nameless if run.lane == row["lane_id"]), None)
            demand(found is not None, "a run that nothing asked for", row)
            assert found is not None
            found.id = row["id"]
            nameless.remove(found)
    demand(not nameless, "a run is missing", nameless)


def compare(model: Model, seen: Observed) -> None:
    _same("wakes", {wake.id: _wake(model, wake.id) for wake in model.wakes.values()}, _wakes_seen(seen))
    _same("runs", {run.id or "": _run(run) for run in model.runs}, _runs_seen(seen))
    _same(
        "sessions",
        {
            f"{each.lane}/{each.scope}/{each.generation}": (
                each.runtime,
                each.native,
                each.state.value,
                each.superseded,
                each.seen,
                each.cut_off,
                None if each.run is None else each.run.id,
            )
            for each in model.sessions
        },
        {
            f"{row['lane_id']}/{row['scope_run']}/{row['generation']}": (
                row["runtime_id"],
                row["native_id"],
                row["state"],
                bool(row["superseded"]),
                row["seen"],
                bool(row["cut_off"]),
                row["run_id"],
            )
            for row in seen.sessions.values()
        },
    )
    _same("entries", model.entries, seen.entries)
    _same(
        "approvals",
        {each.id: (each.run.id, each.attempt, each.state.value) for each in model.approvals.values()},
        {row["id"]: (row["run_id"], row["attempt"], row["state"]) for row in seen.approvals.values()},
    )


def _same(what: str, expected: Mapping[Any, Any], found: Mapping[Any, Any]) -> None:
    if expected != found:
        names = [name for name in {*expected, *found} if expected.get(name) != found.get(name)]
        lines = [f"  {name}: expected {expected.get(name)}, found {found.get(name)}" for name in names]
        raise Disallowed("\n".join((f"{what} differ", *lines)))


def _wake(model: Model, name: Any) -> tuple[object, ...]:
    wake = model.wakes[name]
    kept = wake.state in (WakeState.CLAIMED, WakeState.SERVED)
    waits = wake.state is WakeState.PENDING
    return (
        wake.lane,
        wake.state.value,
        wake.run.id if kept and wake.run is not None else None,
        wake.began,
        wake.scope,
        waits and wake.parked,
    )


def _wakes_seen(seen: Observed) -> dict[str, tuple[object, ...]]:
    return {
        name: (
            row["lane_id"],
            row["state"],
            row["run_id"] if row["state"] in ("claimed", "served") else None,
            bool(row["began"]),
            row["scope"],
            row["state"] == "pending" and in_future(seen, row),
        )
        for name, row in seen.wakes.items()
    }


def _run(run: ARun) -> tuple[object, ...]:
    queued = run.state is RunState.QUEUED
    return (
        run.lane,
        run.runtime,
        run.state.value,
        run.attempt,
        run.prompt_sent,
        run.tool_ran,
        run.reopened,
        run.stop,
        run.outcome,
        run.tries,
        run.by,
        run.prompt is not None,
        run.evidence,
        run.in_vain,
        (run.hold, run.parked) if queued else None,
        None if queued or run.session is None else run.session.generation,
    )


def _runs_seen(seen: Observed) -> dict[str, tuple[object, ...]]:
    return {
        name: (
            row["lane_id"],
            row["runtime_id"],
            row["state"],
            row["attempt"],
            bool(row["prompt_sent"]),
            bool(row["tool_ran"]),
            bool(row["reopened"]),
            row["stop_code"],
            row["outcome"],
            row["tries"],
            row["claimed_by"],
            row["prompt"] is not None,
            row["evidence"],
            row["evidence_asked"],
            (row["hold"], in_future(seen, row)) if row["state"] == "queued" else None,
            None if row["state"] == "queued" else seen.sessions.get(row["session_id"], {}).get("generation"),
        )
        for name, row in seen.runs.items()
    }


# ---------------------------------------------------------------- since the last look


def still(before: Observed, after: Observed) -> None:
    """What has ended stays as it was, word for word; fences only rise."""
    for name, row in before.wakes.items():
        if WakeState(row["state"]) in WAKE_ENDS:
            assert after.wakes[name] == row, "a wake that had ended was changed"
    for name, row in before.runs.items():
        later = after.runs[name]
        assert later["attempt"] >= row["attempt"], "a fence fell"
        if RunState(row["state"]) in RUN_ENDS:
            # What became of its prompt may be found out later, and then stands.
            open_still = row["prompt"] is not None and row["evidence"] in ("", Evidence.UNKNOWN.value)
            later_known = EVIDENCE if open_still else set()
            for column in set(row) - {"session_id"} - later_known:
                assert later[column] == row[column], f"{column} of a run that had ended was changed"


def untouched(before: Observed, after: Observed) -> None:
    """Nothing but leases, and how often a run has asked."""
    assert after.wakes == before.wakes
    assert after.sessions == before.sessions
    assert after.approvals == before.approvals
    assert after.entries == before.entries
    for name, row in before.runs.items():
        for column in set(row) - {"lease_until", "asked"}:
            assert after.runs[name][column] == row[column], f"{column} of run {name} was changed"
