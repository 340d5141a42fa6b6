"""Runs as they are shown."""

from collections.abc import Sequence

import orjson
from sqlalchemy import Connection

from clew.kernel import EvidenceReason, RunState, WaitsFor
from clew.protocol.views import EventView, RunView
from clew.store.engine.statement import Row
from clew.store.queries.runs import newest_decisions
from clew.store.queries.threads import thread_ref


def show_runs(connection: Connection, rows: Sequence[Row]) -> tuple[RunView, ...]:
    decided = newest_decisions(connection, [row["id"] for row in rows])
    return tuple(_show(row, decided.get(row["id"])) for row in rows)


def show_run(connection: Connection, row: Row) -> RunView:
    return show_runs(connection, [row])[0]


def _show(row: Row, decision: Row | None) -> RunView:
    state = RunState(row["state"])
    return RunView(
        id=row["id"],
        thread=thread_ref(row),
        agent=row["agent_name"],
        state=state.value,
        attempt=row["attempt"],
        queued_at=row["queued_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        runtime=row["runtime_id"],
        session=row["session_id"],
        decision=None if decision is None else decision["outcome"],
        decision_words=None if decision is None else _words(decision),
        claim=row["claim"],
        code=row["outcome"] or row["stop_code"] or row["hold_code"],
        words=_waits(row) if state is RunState.QUEUED else row["words"],
        not_before=row["not_before"],
        stopping=state is RunState.STOPPING,
        held=row["hold"] or None if state is RunState.QUEUED else None,
        on_its_word='"on_its_word"' in (row["landing"] or ""),
    )


def _waits(row: Row) -> str | None:
    if row["hold"] == WaitsFor.PERSON:
        return until_retried(row["words"] or "", row["id"], row["hold_code"])
    if row["words"] is None and row["runtime_id"] is None:
        return "No machine has its agent's program; it waits for one."
    return row["words"] or None


def until_retried(words: str, run: str, code: str | None) -> str:
    """What a run is held for, and what lets it go on: Clew does not look again by itself whether it was mended."""
    words = words.strip()
    if code == EvidenceReason.UNKNOWN.code:
        # It says itself what a person can decide.
        return f"{words} Or `clew cancel {run}`."
    # Whoever held it need not have said it in a whole sentence.
    stop = "" if not words or words.endswith((".", "!", "?")) else "."
    return f"{words}{stop} Once that is mended, `clew retry {run}`; or `clew cancel {run}`.".strip()


def _words(decision: Row) -> str:
    try:
        return str(orjson.loads(decision["record"])["plan"]["words"])
    except (ValueError, KeyError, TypeError):
        return str(decision["code"])


def show_event(row: Row) -> EventView:
    """A line of a log; what is no JSON object is shown as the text it is."""
    try:
        body = orjson.loads(row["body"])
    except ValueError:
        body = None
    return EventView(row["seq"], row["kind"], row["at"], body if isinstance(body, dict) else {"text": row["body"]})
