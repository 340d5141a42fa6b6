"""Leases: renewed while a daemon reports its runs; a run whose lease and grace are over is ended or queued again."""

import random
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select, text

from clew.kernel import (
    Failure,
    FailureKind,
    Heard,
    Instant,
    Patience,
    RetryPolicy,
    RunEvent,
    RunId,
    RunOutcome,
    RunState,
    RuntimeId,
    WaitsFor,
    WakeEvent,
    retry,
    standing,
)
from clew.protocol.control import Expired, Held, Renewed
from clew.protocol.reports import Usage
from clew.store.engine.dialect import among, now
from clew.store.engine.statement import Row, Statement
from clew.store.operations import claim_sql
from clew.store.operations.carried_wakes import WakeEnding, end_carried
from clew.store.operations.finish import failure_of, retry_or_give_up
from clew.store.operations.run_state import advance
from clew.store.operations.runtimes import assign_strays
from clew.store.operations.sessions import update_session
from clew.store.schema.tables import LIVE, runs, runtimes

MOST_AT_ONCE = 100
_MOST_LOOKED_AT = 10_000
"""More than are ended at once: runs that are still within their grace must not hide the others."""


_mark_seen = Statement(
    lambda dialect: runtimes.update().where(among(dialect, runtimes.c.id, "runtimes")).values(seen_at=now())
)


due_leases = Statement(
    lambda _: (
        select(
            runs.c.id,
            runs.c.attempt,
            runs.c.state,
            runs.c.lease_until,
            runtimes.c.seen_at,
            now().label("now"),
        )
        .join(runtimes, runtimes.c.id == runs.c.runtime_id)
        .where(text(f"runs.{LIVE}"), runs.c.lease_until <= now())
        .order_by(runs.c.lease_until)
        .limit(bindparam("most"))
        .with_for_update(of=runs, skip_locked=True)
    )
)

# FOR UPDATE: a report that the daemon sent before it was restarted may be committing.
_of_daemon = Statement(
    lambda dialect: (
        select(runs.c.id, runs.c.attempt)
        .where(
            text(f"runs.{LIVE}"), runs.c.claimed_by == bindparam("by"), among(dialect, runs.c.runtime_id, "runtimes")
        )
        .with_for_update()
    )
)


def mark_seen(connection: Connection, of: Sequence[RuntimeId]) -> None:
    """The runtimes are online; they get the runs that wait for any runtime of their provider."""
    _mark_seen.count(connection, runtimes=list(of))
    assign_strays(connection, of)


def renew(connection: Connection, of: Sequence[RuntimeId], held: Sequence[Held], patience: Patience) -> Renewed:
    """One transaction for all runs of a daemon. The answer leaves out runs that it no longer has."""
    mark_seen(connection, of)
    kept, stop = set(), set()
    for each in held:
        row = advance(connection, each.run, each.attempt, (RunEvent.RENEW,), patience.lease)
        if row is not None:
            kept.add(each.run)
            if row["stop_code"] is not None:
                stop.add(each.run)
    return Renewed(frozenset(kept), frozenset(stop))


def expire(
    connection: Connection,
    listening_since: Instant,
    patience: Patience | None = None,
    policy: RetryPolicy | None = None,
    most: int = MOST_AT_ONCE,
) -> tuple[Expired, ...]:
    """End or requeue the runs whose lease and grace are both over. `listening_since` is when this server started: while
    it was down it could not hear any daemon."""
    patience = patience or Patience()
    ended: list[Expired | None] = []
    for row in due_leases.rows(connection, most=_MOST_LOOKED_AT):
        if len(ended) == most:
            break
        heard = Heard(row["seen_at"] or 0.0, listening_since)
        opened = RunState(row["state"]) is not RunState.CLAIMED
        found = standing(row["lease_until"], opened, heard, row["now"], patience)
        if not found.kept:
            ended.append(
                _end(connection, row, RunEvent.LAPSE, RunOutcome.LEASE_LOST, found.words, policy or RetryPolicy())
            )
    return tuple(each for each in ended if each is not None)


def end_orphans(
    connection: Connection,
    by: str,
    of: Sequence[RuntimeId],
    held: Sequence[Held] = (),
    policy: RetryPolicy | None = None,
) -> tuple[Expired, ...]:
    """A daemon was restarted: end or requeue its live runs at once, except those that it says it still has."""
    mine = {(each.run, each.attempt) for each in held}
    ended = []
    # Lock order: the runtimes before their runs, as a renewal does.
    mark_seen(connection, of)
    for row in _of_daemon.rows(connection, by=by, runtimes=list(of)):
        if (row["id"], row["attempt"]) not in mine:
            why = RunOutcome.RESTARTED
            ended.append(_end(connection, row, RunEvent.RESTART, why, why.fill(), policy or RetryPolicy()))
    return tuple(each for each in ended if each is not None)


def _wait_longer(connection: Connection, row: Row, words: str, policy: RetryPolicy) -> None:
    """A run that is lost repeatedly before its prompt waits longer each time, and in the end for a person."""
    choice = retry(Failure(FailureKind.TRANSIENT, words), row["attempt"], policy, row["now"], random.random())
    if choice.redo is None:
        waits, until = WaitsFor.PERSON, None
    else:
        # The first loss is a restart, not a fault of the run.
        waits, until = WaitsFor.ANOTHER_TRY, choice.at if row["attempt"] > 1 else None
    if until is not None or waits is WaitsFor.PERSON:
        claim_sql.hold.count(
            connection, run=row["id"], hold=waits.value, code=choice.reason.code, words=choice.words, until=until
        )


def _end(
    connection: Connection, due: Row, event: RunEvent, why: RunOutcome, words: str, policy: RetryPolicy
) -> Expired | None:
    row = advance(connection, due["id"], due["attempt"], (event,), outcome=why.code, words=words)
    if row is None:
        return None
    state = RunState(row["state"])
    if state is not RunState.QUEUED:
        row = update_session(connection, row, Usage())
    if state is RunState.LOST:
        words = retry_or_give_up(connection, row, failure_of(row, FailureKind.INTERRUPTED, words), why, policy).words
    else:
        # Before the prompt nothing was done that could be done twice, so the run itself returns to the queue.
        end_carried(connection, row, WakeEnding(WakeEvent.RELEASE, why.code, words))
        if state is RunState.QUEUED:
            _wait_longer(connection, row, words, policy)
    return Expired(RunId(row["id"]), state, words)
