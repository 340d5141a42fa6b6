"""Reports: what a daemon says about a live run. Each is one transaction, fenced by the run's attempt."""

from sqlalchemy import Connection, bindparam, select, text

from clew.kernel import (
    RUN_ENDS,
    STARTS_NEW_SESSION,
    ApprovalId,
    EntrySeq,
    LaneId,
    Outcome,
    PinReason,
    RunEvent,
    RunState,
    SessionId,
    ThreadId,
    holds,
)
from clew.protocol.orders import Entry
from clew.protocol.reports import AnswerGiven, Asked, NewSession, Report, Reported, Usage, write_prompted
from clew.store.engine.database import LostRace
from clew.store.engine.dialect import insert_in, now, storable
from clew.store.engine.hints import hint_run
from clew.store.engine.statement import Row, Statement
from clew.store.operations.allowances import allowed_by
from clew.store.operations.approvals import allow_at_once
from clew.store.operations.claim import unseen_entries
from clew.store.operations.decisions import keep_decisions
from clew.store.operations.ids import derived_id
from clew.store.operations.pins import pin_session, set_session
from clew.store.operations.run_state import Refused, advance, why_refused
from clew.store.operations.search_index import note_late_lines
from clew.store.operations.sessions import change_sessions, update_session_deferred
from clew.store.operations.steering import next_steer, record_steer
from clew.store.operations.workspaces import keep_remade, set_branch
from clew.store.schema.tables import approvals, events, landings

_log = Statement(
    lambda dialect: (
        insert_in(dialect, events)
        .values({**{name: bindparam(name) for name in ("run_id", "seq", "attempt", "kind", "body")}, "at": now()})
        .on_conflict_do_nothing(index_elements=[events.c.run_id, events.c.seq])
    )
)

_refused_landing = Statement(
    lambda dialect: (
        insert_in(dialect, landings)
        .values(
            run_id=bindparam("run"),
            attempt=bindparam("attempt"),
            step=bindparam("step"),
            landing=bindparam("landing"),
            words=bindparam("words"),
            at=now(),
        )
        .on_conflict_do_nothing(index_elements=[landings.c.run_id, landings.c.attempt, landings.c.step])
    )
)

_ask = Statement(
    lambda dialect: (
        insert_in(dialect, approvals)
        .values(
            id=bindparam("id"),
            run_id=bindparam("run"),
            attempt=bindparam("attempt"),
            question=bindparam("question"),
            expires_at=bindparam("expires"),
            asked_at=now(),
        )
        .on_conflict_do_nothing(index_elements=[approvals.c.id])
    )
)

_answers = Statement(
    lambda _: select(approvals.c.id, approvals.c.state, approvals.c.answer).where(
        approvals.c.run_id == bindparam("run"),
        approvals.c.attempt == bindparam("attempt"),
        text("approvals.state <> 'pending'"),
    )
)


def report(connection: Connection, said: Report) -> Reported:
    """One transaction. Safe to repeat: a report that was already applied is answered as if it were new."""
    row = _advance(connection, said, _events(said))
    asks = said.asks
    if row is None:
        # Its approvals are already stored, or the run has ended and cannot get answers.
        asks = ()
        refused = why_refused(connection, said.run, said.attempt, _events(said)[0])
        if not holds(refused.run, said.attempt):
            return Reported(False, refused.run.state, words=refused.words)
        if refused.run.state in RUN_ENDS:
            # Too late to change the run, but its log and its session are still recorded.
            return _ended(connection, said, refused)
        if not _was_taken(said, refused.row) and refused.run.state is not RunState.STOPPING:
            return Reported(True, refused.run.state, words=refused.words, lease_until=refused.run.lease_until)
        row = _advance(connection, said, (RunEvent.RENEW,))
        if row is None:
            raise LostRace("the run changed while its report was applied")
    pinned = _write(connection, said, row)
    _put_questions(connection, said, asks)
    if said.steered is not None:
        row = record_steer(connection, row, said.steered)
    hint_run(connection, said.run)
    return Reported(
        held=True,
        state=RunState(row["state"]),
        may_prompt=said.told is not None and bool(row["prompt_sent"]) and row["stop_code"] is None,
        words=row["words"] or "",
        stop=row["stop_code"],
        lease_until=row["lease_until"],
        pinned=pinned,
        answers=_given(connection, said) if row["asked"] else (),
        entries=_entries_to_tell(connection, said, row) if said.settled else (),
        steer=next_steer(connection, row) if said.steers else None,
    )


def _events(said: Report) -> tuple[RunEvent, ...]:
    """The report as the kernel's events; one without any renews the lease."""
    happened = {
        RunEvent.OPEN: said.opens,
        RunEvent.REOPEN: said.reopens,
        RunEvent.PROMPT: said.told is not None,
        RunEvent.TOOL: said.tool_ran,
        # ANSWER before ASK: the answers are to earlier approvals, and the new ones are open.
        RunEvent.ANSWER: said.answered,
        RunEvent.ASK: bool(said.asks),
    }
    return tuple(event for event, did in happened.items() if did) or (RunEvent.RENEW,)


def _advance(connection: Connection, said: Report, happened: tuple[RunEvent, ...]) -> Row | None:
    landed = said.landed
    return advance(
        connection,
        said.run,
        said.attempt,
        happened,
        said.patience.lease,
        landing=None if landed is None else landed.landing,
        claim=None if landed is None else landed.claim,
        told=said.told if RunEvent.PROMPT in happened else None,
        prompt=None if said.prompted is None else write_prompted(said.prompted),
    )


def _was_taken(said: Report, row: Row) -> bool:
    """Whether this report was already applied: its answer was lost, and the daemon repeats it."""
    state = RunState(row["state"])
    if said.reopens and (row["tool_ran"] or not row["reopened"] or (said.told is None and row["prompt_sent"])):
        return False
    if said.told is not None:
        return bool(row["prompt_sent"]) and row["told"] == said.told
    if said.asks:
        return state is RunState.WAITING
    return state is not RunState.CLAIMED


def _ended(connection: Connection, said: Report, refused: Refused) -> Reported:
    pinned = _write(connection, said, refused.row)
    if said.events:
        note_late_lines(connection, said.run, said.events[0].seq)
    hint_run(connection, said.run)
    return Reported(False, refused.run.state, words=refused.words, stop=refused.row["stop_code"], pinned=pinned)


def _write(connection: Connection, said: Report, row: Row) -> PinReason | None:
    if said.settled:
        row = _keep_settled(connection, said, row)
    if said.landed is not None and said.landed.refused is not None:
        _refused_landing.count(
            connection,
            run=said.run,
            attempt=said.attempt,
            step=row["reopened"],
            landing=said.landed.landing,
            words=said.landed.refused,
        )
    pinned = None if said.pin is None else _pin(connection, row, said.pin)
    _log.defer_all(
        connection,
        (
            {
                "run_id": said.run,
                "attempt": said.attempt,
                "seq": each.seq,
                "kind": each.kind,
                "body": storable(each.body),
            }
            for each in said.events
        ),
    )
    return pinned


def _pin(connection: Connection, row: Row, new: NewSession) -> PinReason:
    pinned = pin_session(connection, row, new)
    if row["ended_at"] is not None and pinned.reason in (PinReason.FIRST, PinReason.NEW_GENERATION):
        # The session is recorded late: it has seen what its run is known to have sent.
        update_session_deferred(connection, {**row, "session_id": pinned.session}, EntrySeq(row["told"]), Usage())
    return pinned.reason


def _put_questions(connection: Connection, said: Report, asks: tuple[Asked, ...]) -> None:
    _ask.defer_all(
        connection,
        (
            {
                "id": ask.id,
                "run": said.run,
                "attempt": said.attempt,
                "question": storable(ask.question),
                "expires": ask.expires_at,
            }
            for ask in asks
        ),
    )
    for ask in asks:
        by = allowed_by(connection, said.run, ask.question)
        if by is not None:
            allow_at_once(connection, ask.id, said.run, by)


def _keep_settled(connection: Connection, said: Report, row: Row) -> Row:
    """Store the settled plans. Returns the run with the session that the last of them uses."""
    for plan in said.settled:
        change_sessions(connection, plan.session_changes)
    place, workspace = said.settled[-1].situation.place, said.settled[-1].workspace
    if place.remade:
        # Stored until the agent is known to have taken a prompt that says so.
        keep_remade(connection, LaneId(row["lane_id"]), place.remade)
    if place.on_branch and workspace is not None:
        set_branch(connection, workspace.id, place.on_branch)
    steps = enumerate(said.settled, start=1)
    keep_decisions(connection, [(plan, said.run, said.attempt, step, row["now"]) for step, plan in steps])
    session = _settled_on(said, row)
    if session == row["session_id"]:
        return row
    set_session(connection, row, session)
    # A resumed session has a row, so it is pinned; a new one has none yet.
    return {**row, "session_id": session, "pinned": int(said.settled[-1].outcome is Outcome.RESUME)}


def _settled_on(said: Report, row: Row) -> SessionId:
    """The session that is resumed, or the id for a new one. A run that has pinned a session of its own stays in it."""
    plan, planned = said.settled[-1], SessionId(row["session_id"])
    earlier = {session.id for read in plan.situation.sources for session in read.sessions}
    if plan.outcome is Outcome.HOLD or (row["pinned"] and planned not in earlier):
        return planned
    if plan.outcome is Outcome.RESUME and plan.session is not None:
        return plan.session.id
    # Derived, so that a repeated report gives the same id; and not the id of the session that was given up.
    return SessionId(derived_id("ss", said.run, str(said.attempt))) if planned in earlier else planned


def _entries_to_tell(connection: Connection, said: Report, row: Row) -> tuple[Entry, ...]:
    """What a new session must be told: more than the order had for the session that it replaces."""
    plan = said.settled[-1]
    return (
        unseen_entries(connection, ThreadId(row["thread_id"]), plan, ()) if plan.outcome in STARTS_NEW_SESSION else ()
    )


def _given(connection: Connection, said: Report) -> tuple[AnswerGiven, ...]:
    rows = _answers.rows(connection, run=said.run, attempt=said.attempt)
    return tuple(AnswerGiven(ApprovalId(row["id"]), row["state"], row["answer"] or "") for row in rows)
