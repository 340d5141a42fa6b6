"""Why a report changed nothing: the run as it is, and the kernel's word on it."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from clew.kernel import Run, RunEvent, RunId, RunRefusal, apply
from clew.store.advancing import RUN_COLUMNS
from clew.store.faults import NoSuchRun
from clew.store.rows import read_run
from clew.store.statement import Row, Statement
from clew.store.tables import runs

_run = Statement(lambda _: select(*RUN_COLUMNS).where(runs.c.id == bindparam("run")))


@dataclass(frozen=True, slots=True)
class Refused:
    """The run as it stands, untouched; `reason` is None when what was reported had been taken before."""

    row: Row
    run: Run
    reason: RunRefusal | None
    words: str


def read_run_row(connection: Connection, run: RunId) -> Row:
    row = _run.first(connection, run=run)
    if row is None:
        raise NoSuchRun(f"There is no run {run}.", "Name one that exists.")
    return row


def why_refused(connection: Connection, run: RunId, attempt: int, event: RunEvent) -> Refused:
    row = read_run_row(connection, run)
    found = read_run(row)
    applied = apply(found, event, attempt, lease_until=0.0)
    return Refused(row, found, applied.refused, applied.words)
