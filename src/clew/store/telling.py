"""Telling: the common reports as one statement, for all that come at the same moment, where PostgreSQL can do all of it
by itself.

That a run opens its session, that its prompt goes out, that a tool ran, what its log says, and that it is still there.
Whatever else is reported, or finds the run otherwise than it should be, finds no row here, and is taken step by step.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import CTE, ColumnElement, Connection, func, literal_column, null, select
from sqlalchemy.sql import ClauseElement

from clew.kernel import PinReason, RunState
from clew.protocol.prompted import write_prompted
from clew.protocol.reports import Report, Reported
from clew.store.advancing import Events, changed
from clew.store.clock import now
from clew.store.dialect import insert_in
from clew.store.grouping import Grouped, Sets
from clew.store.hints import hint_run
from clew.store.pinning import session_facts
from clew.store.statement import Given, Row, whole
from clew.store.tables import events, runs, runtimes, sessions
from clew.store.texts import keepable

_GIVEN = {
    "run": runs.c.id,
    "attempt": runs.c.attempt,
    "lease": runs.c.lease_until,
    "landing": runs.c.landing,
    "claim": runs.c.claim,
    "told": runs.c.told,
    "prompt": runs.c.prompt,
}
_PINNED = {
    name: sessions.c[name]
    for name in (
        "native_id",
        "cursor",
        "directory",
        "real_directory",
        "account",
        "begins",
        "also",
        "model",
        "mode",
        "instructions",
        "tools",
        "seen",
        "inherited",
        "credential",
    )
}
_LINES = {name: events.c[name] for name in ("run_id", "seq", "kind", "body")}


def is_plain(said: Report) -> bool:
    """Whether there is nothing in it that only the program could follow up."""
    refused = said.landed is not None and said.landed.refused is not None
    cuts = said.pin is not None and said.pin.floor is not None
    more = said.settled or said.asks or said.answered or said.reopens or said.steers or said.steered is not None
    return not (refused or cuts or more)


def tell(connection: Connection, group: Sequence[tuple[Events, Report]]) -> list[Reported | None]:
    """What became of these reports, in the order of their runs; None for each that takes more, and was not touched."""
    kinds: dict[tuple[Events, bool, bool], list[Report]] = {}
    for happened, said in group:
        kinds.setdefault((happened, said.pin is not None, bool(said.events)), []).append(said)
    asked = [_statement(*kind).of(**_handed_in(those, kind[2])) for kind, those in kinds.items()]
    told = {row["id"]: row for done in whole(connection, *asked) for row in done.rows}
    for run in told:
        hint_run(connection, run)
    return [_reported(said, told[said.run]) if said.run in told else None for _, said in group]


@cache
def _statement(happened: Events, pins: bool, logs: bool) -> Grouped:
    tables = {"given": _GIVEN | (_PINNED if pins else {}), **({"line": _LINES} if logs else {})}
    return Grouped(tables, lambda dialect, handed: _tell(dialect, happened, pins, handed))


def _tell(dialect: str, happened: Events, pins: bool, handed: Mapping[str, Given]) -> ClauseElement:
    given = handed["given"]
    of_run = ("id", "attempt", "lane_id", "scope_run", "runtime_id", "session_id", "state", "prompt_sent", "told")
    # Whoever has asked for an approval wants to hear what was answered.
    changes = changed(dialect, happened, given).where(runs.c.asked == literal_column("0"))
    if pins:
        known = select(func.count()).where(sessions.c.id == runs.c.session_id).scalar_subquery()
        changes = changes.where(known == literal_column("0"))
    done = changes.returning(
        *(runs.c[name] for name in (*of_run, "words", "stop_code", "lease_until")),
        *(given[name].label(f"given_{name}") for name in _PINNED if pins),
    ).cte("done")
    generation: ColumnElement[Any] = null()
    if pins:
        pinned = _pin(done)
        generation = select(pinned.c.generation).where(pinned.c.run_id == done.c.id).scalar_subquery()
    answered = ("id", "state", "prompt_sent", "words", "stop_code", "lease_until")
    told = select(*(done.c[name] for name in answered), generation.label("generation"))
    return told.add_cte(_log(dialect, done, handed["line"])) if "line" in handed else told


def _pin(done: CTE) -> CTE:
    """A new generation of each lane. Where another record stands for the session, the key fails it, and with it all."""
    own = sessions.alias("own")
    newest = select(func.coalesce(func.max(own.c.generation), literal_column("0"))).where(
        own.c.lane_id == done.c.lane_id, own.c.scope_run == done.c.scope_run
    )
    values: dict[str, ColumnElement[Any]] = {
        "id": done.c.session_id,
        "lane_id": done.c.lane_id,
        "scope_run": done.c.scope_run,
        "provider": runtimes.c.provider,
        "runtime_id": done.c.runtime_id,
        "run_id": done.c.id,
        "generation": newest.scalar_subquery() + literal_column("1"),
        "born_at": now(),
        **{name: done.c[f"given_{name}"] for name in _PINNED},
    }
    new = select(*values.values()).join_from(done, runtimes, runtimes.c.id == done.c.runtime_id).order_by(done.c.id)
    return (
        sessions.insert().from_select([*values], new).returning(sessions.c.generation, sessions.c.run_id).cte("pinned")
    )


def _log(dialect: str, done: CTE, line: Given) -> CTE:
    values = {**line, "attempt": done.c.attempt, "at": now()}
    lines = select(*values.values()).where(line["run_id"] == done.c.id)
    logged = insert_in(dialect, events).from_select([*values], lines)
    return logged.on_conflict_do_nothing(index_elements=[events.c.run_id, events.c.seq]).cte("logged")


def _handed_in(those: Sequence[Report], logs: bool) -> dict[str, Sets]:
    given = {"given": [_given(each) for each in those]}
    return given | ({"line": [line for each in those for line in _lines(each)]} if logs else {})


def _given(said: Report) -> dict[str, Any]:
    landed = said.landed
    return {
        "run": said.run,
        "attempt": said.attempt,
        "lease": said.patience.lease,
        "landing": None if landed is None else landed.landing,
        "claim": None if landed is None else landed.claim,
        "told": said.told,
        "prompt": None if said.prompted is None else write_prompted(said.prompted),
        **({} if said.pin is None else session_facts(said.pin)),
    }


def _lines(said: Report) -> Iterator[dict[str, Any]]:
    for each in said.events:
        yield {"run_id": said.run, "seq": each.seq, "kind": each.kind, "body": keepable(each.body)}


def _reported(said: Report, row: Row) -> Reported:
    pinned = None
    if row["generation"] is not None:
        pinned = PinReason.FIRST if row["generation"] == 1 else PinReason.NEW_GENERATION
    return Reported(
        held=True,
        state=RunState(row["state"]),
        may_prompt=said.told is not None and bool(row["prompt_sent"]) and row["stop_code"] is None,
        words=row["words"] or "",
        stop=row["stop_code"],
        lease_until=row["lease_until"],
        pinned=pinned,
    )
