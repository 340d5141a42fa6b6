"""Taking: what a claim writes. Its wakes are carried, its runs are taken, and what was decided is kept."""

from collections.abc import Mapping

from sqlalchemy import Connection, Update, case, func, literal_column, null, select
from sqlalchemy.sql import ClauseElement

from clew.kernel import Carried
from clew.store.claim_sql import PENDING, QUEUED
from clew.store.decisions import KEPT, keep_decision, keeping
from clew.store.grouping import Grouped, Sets
from clew.store.statement import SQLITE, Given, Statement, named
from clew.store.tables import runs, wakes

_CARRIED = {"run": runs.c.id, "wake": wakes.c.id, "scope": wakes.c.scope, "words": wakes.c.words}
_TAKEN = {
    "run": runs.c.id,
    "lease": runs.c.lease_until,
    "by": runs.c.claimed_by,
    "agent_at": runs.c.agent_place,
    "runtime_at": runs.c.runtime_place,
    "session": runs.c.session_id,
    "scope": runs.c.scope_run,
    "now": runs.c.started_at,
}


def _carrying(given: Given) -> Update:
    return (
        wakes.update()
        .where(wakes.c.id == given["wake"], wakes.c.state == PENDING)
        .values(
            state=literal_column("'claimed'"),
            run_id=given["run"],
            scope=given["scope"],
            code=literal_column(f"'{Carried.BY_RUN.code}'"),
            words=given["words"],
        )
    )


def _taking(given: Given) -> Update:
    return (
        runs.update()
        .where(runs.c.id == given["run"], runs.c.state == QUEUED)
        .values(
            state=literal_column("'claimed'"),
            attempt=runs.c.attempt + 1,
            lease_until=given["lease"],
            claimed_by=given["by"],
            agent_place=given["agent_at"],
            runtime_place=given["runtime_at"],
            session_id=given["session"],
            scope_run=given["scope"],
            started_at=func.coalesce(runs.c.started_at, given["now"]),
            prompt_sent=literal_column("0"),
            tool_ran=literal_column("0"),
            reopened=literal_column("0"),
            told=literal_column("0"),
            prompt=null(),
            evidence=literal_column("''"),
            evidence_words=null(),
            evidence_at=null(),
            evidence_asked=literal_column("0"),
            steer=null(),
            landing=null(),
            claim=null(),
            hold=literal_column("''"),
            hold_code=null(),
            words=null(),
        )
    )


_carry = Statement(lambda _: _carrying(named(_CARRIED)))
_take = Statement(lambda _: _taking(named(_TAKEN)))


def _at_once(dialect: str, handed: Mapping[str, Given]) -> ClauseElement:
    wake, run, decision = handed["wake"], handed["run"], handed["decision"]
    # A wake that was ended meanwhile is not there to be carried: the statement fails, and with it the claim, which is
    # made again. Whoever waited for the count before committing would wait for one trip more.
    carried = _carrying(wake).returning(wakes.c.id).cte("carried")
    wanted = select(func.count(wake["wake"])).scalar_subquery()
    all_of_them = case((func.count() == wanted, literal_column("1")), else_=literal_column("0"))
    return (
        select(literal_column("1") / all_of_them)
        .select_from(carried)
        .add_cte(_taking(run).cte("taken"), keeping(dialect, decision).cte("kept"))
    )


at_once = Grouped({"wake": _CARRIED, "run": _TAKEN, "decision": KEPT}, _at_once)
"""PostgreSQL only: all of it as one statement, with all of the claim's runs."""


def take(connection: Connection, carried: Sets, taken: Sets, decided: Sets) -> None:
    """Done with the commit."""
    if connection.dialect.name == SQLITE:
        # Nobody else writes between the read and this.
        _carry.many(connection, carried)
        _take.many(connection, taken)
        keep_decision.many(connection, decided)
        return
    statement, values = at_once.of(wake=carried, run=taken, decision=decided)
    statement.leave(connection, **values)
