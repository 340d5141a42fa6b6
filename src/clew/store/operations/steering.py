"""Steering: wakes that a live run takes, so that its agent gets their messages within the turn.

The run carries them before anything is sent. A message that the agent does not take waits for the next run; `seen` of
the session is raised only by what the agent took.
"""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, literal_column, null, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    STEER_TABLE,
    AdmissionReason,
    Carried,
    EntrySeq,
    LaneId,
    PromptId,
    RunId,
    RunState,
    SteerEvent,
    ThreadId,
    WakeId,
    WakeState,
    to_steer,
)
from clew.protocol.reports import (
    Steer,
    Steered,
    SteerSent,
    new_prompt_id,
    read_prompted,
    read_steer,
    write_prompted,
    write_steer,
)
from clew.store.engine.database import LostRace
from clew.store.engine.dialect import greater, now
from clew.store.engine.hints import hint_thread
from clew.store.engine.statement import Row, Statement
from clew.store.operations.claim_sql import WAKE_KEYS
from clew.store.operations.journal import entries_between
from clew.store.operations.rows import read_capabilities, read_wake
from clew.store.operations.runtimes import is_program, started
from clew.store.operations.wake_state import PENDING, state_literal
from clew.store.schema.tables import LIVE, NOT_ENDED, agents, programs, runs, runtimes, wakes

_GOING = frozenset({RunState.RUNNING, RunState.WAITING})
"""A turn is in progress. One that waits for an approval gets the message after the answer."""

_TELLS, _TELLING = STEER_TABLE[WakeState.PENDING, SteerEvent.TELL]

_steerable = Statement(
    lambda _: (
        select(
            runs.c.id,
            runs.c.scope_run,
            runs.c.stop_code,
            runs.c.runtime_id,
            started(programs, runtimes, "capabilities").label("capabilities"),
        )
        .select_from(
            runs.join(runtimes, runtimes.c.id == runs.c.runtime_id)
            .join(agents, agents.c.id == runs.c.agent_id)
            .outerjoin(programs, is_program(programs, runs.c.runtime_id, agents))
        )
        .where(runs.c.lane_id == bindparam("lane"), text(f"runs.{NOT_ENDED}"), text(f"runs.{LIVE}"))
    )
)

_keys = tuple(wakes.c[name] for name in WAKE_KEYS)

_waiting = Statement(
    lambda _: (
        select(*_keys, wakes.c.code)
        .where(
            wakes.c.lane_id == bindparam("lane"),
            text("wakes.state = 'pending'"),
            wakes.c.scope == literal_column("''"),
        )
        .order_by(wakes.c.accepted_at, wakes.c.id)
    )
)

_being_told = Statement(
    lambda _: (
        select(*_keys)
        .where(
            wakes.c.run_id == bindparam("run"),
            wakes.c.state == state_literal(_TELLS),
            wakes.c.code == literal_column(f"'{_TELLING.code}'"),
        )
        .order_by(wakes.c.accepted_at, wakes.c.id)
    )
)

_tell = Statement(
    lambda _: (
        wakes.update()
        .where(wakes.c.id == bindparam("wake"), wakes.c.state == PENDING, wakes.c.entry == bindparam("entry"))
        .values(
            state=state_literal(_TELLS),
            run_id=bindparam("run"),
            code=literal_column(f"'{_TELLING.code}'"),
            words=bindparam("words"),
            not_before=null(),
        )
    )
)


def _answer_steer(event: SteerEvent) -> ClauseElement:
    state, reason = STEER_TABLE[_TELLS, event]
    free: dict[str, Any] = {"run_id": null()} if state is WakeState.PENDING else {}
    if state is WakeState.CANCELLED:
        free = {"ended_at": now()}
    return (
        wakes.update()
        .where(
            wakes.c.run_id == bindparam("run"),
            wakes.c.state == state_literal(_TELLS),
            wakes.c.code == literal_column(f"'{_TELLING.code}'"),
        )
        .values(
            state=state_literal(state),
            code=literal_column(f"'{reason.code}'"),
            words=bindparam("words"),
            **free,
        )
    )


_answered = {
    event: Statement(lambda _, event=event: _answer_steer(event))  # type: ignore[misc]
    for event in (SteerEvent.TAKE, SteerEvent.END, SteerEvent.REFUSE)
}

_begin = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.id == bindparam("run"), runs.c.attempt == bindparam("attempt"))
        .values(steer=bindparam("steer"))
    )
)

_being_told_as = Statement(lambda _: select(runs.c.steer, runs.c.prompt).where(runs.c.id == bindparam("run")))

_took = Statement(
    lambda dialect: (
        runs.update()
        .where(runs.c.id == bindparam("run"), runs.c.attempt == bindparam("attempt"))
        .values(
            steer=null(),
            told=greater(dialect, runs.c.told, bindparam("told", type_=runs.c.told.type)),
            prompt=bindparam("prompt"),
        )
    )
)


def steerable_run(connection: Connection, lane: LaneId) -> RunId | None:
    """The lane's live run, if its agent can be steered."""
    row = _steerable.first(connection, lane=lane)
    if row is None or row["stop_code"] is not None or row["scope_run"]:
        return None
    able = read_capabilities(row["runtime_id"], row["capabilities"]).steers
    return RunId(row["id"]) if able else None


def next_steer(connection: Connection, row: Row) -> Steer | None:
    """The message to steer the run's agent with now; the run carries its wakes from here on. Until it is reported, the
    same message is returned again. `row` is the run, locked by this transaction."""
    if RunState(row["state"]) not in _GOING or row["stop_code"] is not None or row["scope_run"]:
        return None
    run, told = RunId(row["id"]), EntrySeq(row["told"])
    taken = tuple(map(read_wake, _being_told.rows(connection, run=run)))
    if not taken:
        waiting = _waiting.rows(connection, lane=row["lane_id"])
        asked = {each["id"] for each in waiting if each["code"] == AdmissionReason.STEERED.code}
        taken = to_steer(map(read_wake, waiting), asked, told, row["now"])
        words, asks = Carried.STEERING.fill(run=run), {each["id"]: each["entry"] for each in waiting}
        tells = [{"wake": wake.id, "entry": asks[wake.id], "run": run, "words": words} for wake in taken]
        if _tell.many(connection, tells) != len(taken):
            raise LostRace("a wake was cancelled or changed while the run was taking it")
    if not taken:
        return None
    thread, through = ThreadId(row["thread_id"]), max(wake.entries[-1] for wake in taken)
    hint_thread(connection, thread)
    as_prompt = _named(connection, row, tuple(wake.id for wake in taken), through)
    return Steer(taken, entries_between(connection, thread, told, through), told, through, as_prompt)


def _named(connection: Connection, row: Row, of: tuple[WakeId, ...], through: EntrySeq) -> PromptId:
    """The id by which the agent's store is asked about the message. It is stored before the message is sent, and stays
    the same until it is reported."""
    kept = _being_told_as.first(connection, run=row["id"])
    if kept is not None and kept["steer"] is not None:
        known = read_steer(kept["steer"])
        if (known.wakes, known.through) == (of, through):
            return known.id
    steer = SteerSent(new_prompt_id(), of, through)
    _begin.count(connection, run=row["id"], attempt=row["attempt"], steer=write_steer(steer))
    return steer.id


def _with_wakes(prompt: str | None, steer: SteerSent) -> str | None:
    """The prompt's record with the wakes of the message added: a reply that is read back later serves them too."""
    if prompt is None:
        return None
    told = read_prompted(prompt)
    return write_prompted(replace(told, wakes=(*told.wakes, *steer.wakes)))


def record_steer(connection: Connection, row: Row, said: Steered) -> Row:
    """Record whether the agent took the message. Returns the run with `told` as it is now. A report that is repeated
    because its answer was lost changes nothing: the message that its first answer brought is only being sent now."""
    run = RunId(row["id"])
    kept = _being_told_as.first(connection, run=run)
    if kept is None or kept["steer"] is None or read_steer(kept["steer"]).through != said.through:
        return row
    took = SteerEvent.END if row["stop_code"] is not None else SteerEvent.TAKE
    event = took if said.taken else SteerEvent.REFUSE
    _, reason = STEER_TABLE[_TELLS, event]
    _answered[event].count(connection, run=run, words=reason.fill(run=run))
    hint_thread(connection, ThreadId(row["thread_id"]))
    if not said.taken:
        _begin.count(connection, run=run, attempt=row["attempt"], steer=None)
        return row
    prompt = _with_wakes(kept["prompt"], read_steer(kept["steer"]))
    _took.count(connection, run=run, attempt=row["attempt"], told=said.through, prompt=prompt)
    return {**row, "told": max(row["told"], said.through)}


_live = Statement(
    lambda _: select(runs.c.id).where(
        runs.c.lane_id == bindparam("lane"), text(f"runs.{NOT_ENDED}"), text(f"runs.{LIVE}")
    )
)

_call = Statement(
    lambda _: (
        wakes.update()
        .where(wakes.c.id == bindparam("wake"), wakes.c.state == PENDING)
        .values(code=bindparam("code"), words=bindparam("words"))
    )
)


def live_run(connection: Connection, lane: LaneId) -> RunId | None:
    row = _live.first(connection, lane=lane)
    return None if row is None else RunId(row["id"])


def set_pending_reason(connection: Connection, wake: WakeId, code: str, words: str) -> None:
    """Change the reason why the wake is pending."""
    _call.count(connection, wake=wake, code=code, words=words)
