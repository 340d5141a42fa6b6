"""The decisions of runs in short: which session each one continues."""

from collections.abc import Sequence

from sqlalchemy import Connection

from clew.kernel import Outcome
from clew.protocol.lineage import TurnDecision
from clew.store.engine.statement import Row
from clew.store.operations.rows import read_object
from clew.store.queries.runs import decisions_of_runs
from clew.store.queries.spoken import spoken


def turn_decisions(connection: Connection, runs: Sequence[str]) -> tuple[TurnDecision, ...]:
    """In the order of time, without those that held a run."""
    rows = decisions_of_runs.rows(connection, runs=list(runs)) if runs else ()
    found = [_decision(row) for row in rows if row["outcome"] != Outcome.HOLD]
    return spoken(connection, tuple(sorted(found, key=lambda each: each.at)))


def _decision(row: Row) -> TurnDecision:
    """A record that cannot be read leaves its code, and no session."""
    plan = (read_object(row["record"]) or {}).get("plan")
    read = plan if isinstance(plan, dict) else {}
    session = read.get("session")
    return TurnDecision(
        run=row["run_id"],
        at=row["at"],
        outcome=row["outcome"],
        words=str(read.get("words") or row["code"]),
        session=session if isinstance(session, str) else None,
    )
