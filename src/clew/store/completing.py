"""Completing: the common end of runs as one statement, for all that end at the same moment, where PostgreSQL can do
all of it by itself.

A run that was answered, with no other wake in its lane and no question open, needs nothing that only the program knows.
Whatever else there is finds no row here, and is ended step by step.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Text,
    any_,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    null,
    select,
    text,
)
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    AuthorKind,
    EntrySeq,
    Evidence,
    RunEvent,
    RunId,
    RunOutcome,
    RunState,
    Served,
    ThreadId,
    WakeEvent,
)
from clew.protocol.prompted import TELLS_REMADE
from clew.protocol.reports import Completed, Finish, Finished
from clew.store.advancing import changed
from clew.store.clock import now
from clew.store.grouping import Grouped
from clew.store.hints import hint_run, hint_thread
from clew.store.programs import account_of_run
from clew.store.settling import Untold, ends, session_after, used
from clew.store.statement import Given, Row, Statement, whole
from clew.store.tables import agents, journal, lanes, runs, runtimes, sessions, wakes
from clew.store.texts import keepable

_GIVEN = {
    "run": runs.c.id,
    "attempt": runs.c.attempt,
    "body": journal.c.body,
    "length": journal.c.size,
    "words": wakes.c.words,
    "turns": sessions.c.turns,
    "tokens": sessions.c.tokens,
    "size": sessions.c.size,
    "model": sessions.c.model,
    "mode": sessions.c.mode,
}
_KEPT = ("id", "lane_id", "agent_id", "runtime_id", "session_id", "state", "words", "prompt_sent", "told")

# Counted for each run: where a table is young, to look whether there are any is planned by reading all of them.
_WAITING = (
    select(func.count()).where(wakes.c.lane_id == runs.c.lane_id, text("wakes.state = 'pending'")).scalar_subquery()
)


def _complete(dialect: str, handed: Mapping[str, Given]) -> ClauseElement:
    given = handed["given"]
    outcome = RunOutcome.ANSWERED
    said: dict[str, ColumnElement[Any]] = {
        **given,
        "lease": literal_column("0"),
        "outcome": literal_column(f"'{outcome.code}'"),
        "words": literal_column(f"'{outcome.fill(why='')}'"),
        "evidence": literal_column(f"'{Evidence.FINISHED}'"),
        "evidence_words": null(),
    }
    done = (
        changed(dialect, (RunEvent.SUCCEED,), said)
        .where(
            runs.c.asked == literal_column("0"),
            literal_column("0") == _WAITING,
            func.strpos(func.coalesce(runs.c.prompt, literal_column("''")), literal_column(f"'{TELLS_REMADE}'"))
            == literal_column("0"),
        )
        .returning(*(runs.c[name] for name in _KEPT), *(given[name].label(f"given_{name}") for name in _GIVEN))
        .cte("done")
    )
    who = (
        select(
            done,
            lanes.c.thread_id,
            agents.c.name,
            runtimes.c.provider,
            account_of_run(done.c.session_id, done.c.runtime_id, done.c.agent_id).label("account"),
        )
        .join(lanes, lanes.c.id == done.c.lane_id)
        .join(agents, agents.c.id == done.c.agent_id)
        .join(runtimes, runtimes.c.id == done.c.runtime_id)
        # Every run before any entry, and the entries in one order for all: so nobody waits in a circle.
        .order_by(lanes.c.thread_id)
        .cte("who")
    )
    head = (
        select(func.coalesce(func.max(journal.c.seq), literal_column("0")))
        .where(journal.c.thread_id == who.c.thread_id)
        .scalar_subquery()
    )
    values: dict[str, Any] = {
        "thread_id": who.c.thread_id,
        "seq": head + literal_column("1"),
        "author_kind": literal_column(f"'{AuthorKind.AGENT.value}'"),
        "author_name": who.c.name,
        "agent_id": who.c.agent_id,
        "provider": who.c.provider,
        "account": who.c.account,
        "body": who.c.given_body,
        "size": who.c.given_length,
        "run_id": who.c.id,
        "at": now(),
    }
    entry = (
        journal.insert()
        .from_select([*values], select(*values.values()).where(who.c.given_body.is_not(None)))
        .returning(journal.c.seq, journal.c.run_id)
        .cte("entry")
    )
    receipt = {"code": literal_column(f"'{Served.BY_RUN.code}'"), "words": done.c.given_words}
    served = (
        wakes.update()
        .where(wakes.c.run_id == done.c.id, wakes.c.state == literal_column("'claimed'"))
        .values(ends(WakeEvent.SERVE, Untold.WAITS_AGAIN, receipt))
        .cte("served")
    )
    reply = select(entry.c.seq).where(entry.c.run_id == done.c.id).scalar_subquery()
    usage = {name: done.c[f"given_{name}"] for name in ("turns", "tokens", "size", "model", "mode")}
    # Its own reply is seen too, unless somebody spoke in between: then it is told both, in order.
    seen = case((reply == done.c.told + literal_column("1"), reply), else_=done.c.told)
    turned = (
        sessions.update()
        .where(
            sessions.c.id == done.c.session_id,
            (done.c.prompt_sent == literal_column("1")) | (usage["turns"] > literal_column("0")),
        )
        .values(session_after(dialect, seen, usage, literal_column("0")))
        .cte("turned")
    )
    answered = select(entry.c.seq).where(entry.c.run_id == who.c.id).scalar_subquery()
    return select(who.c.id, who.c.state, who.c.words, who.c.thread_id, answered.label("reply")).add_cte(served, turned)


_all = Grouped({"given": _GIVEN}, _complete)


def _alone_still(_: str) -> ClauseElement:
    """It fails where a wake came into a lane before its run had ended, and with it all that was done for the ends."""
    others = exists(runs.c.id).where(
        runs.c.id == any_(bindparam("runs", type_=ARRAY(Text))),
        runs.c.ended_at.is_not(None),
        literal_column("0") < _WAITING,
    )
    return select(literal_column("1") / case((others, literal_column("0")), else_=literal_column("1")))


_alone = Statement(_alone_still)


def complete(connection: Connection, said: Sequence[Finish]) -> list[Finished | None]:
    """The ends of these runs, in the order of their ids; None for each that takes more, and was not touched."""
    sets = [_given(each, each.end) for each in said if isinstance(each.end, Completed)]
    asked = _all.of(given=sets), (_alone, {"runs": [each["run"] for each in sets]})
    done = {row["id"]: row for row in whole(connection, *asked)[0].rows}
    for row in done.values():
        hint_thread(connection, ThreadId(row["thread_id"]))
        hint_run(connection, RunId(row["id"]))
    return [_finished(done[each.run]) if each.run in done else None for each in said]


def _given(said: Finish, end: Completed) -> dict[str, Any]:
    return {
        "run": said.run,
        "attempt": said.attempt,
        "body": None if end.reply is None else keepable(end.reply),
        "length": end.size,
        "words": Served.BY_RUN.fill(run=said.run),
        **used(end.usage),
    }


def _finished(row: Row) -> Finished:
    reply = None if row["reply"] is None else EntrySeq(row["reply"])
    return Finished(True, RunState(row["state"]), row["words"] or "", reply)
