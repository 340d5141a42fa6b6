"""The end of a run: its state, session, reply, wakes and the lane's next run, in one transaction."""

import random
from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, literal_column

from clew.kernel import (
    HELD_BY_AGENT,
    WAITED_OUT,
    AgentId,
    Attestation,
    EntrySeq,
    Evidence,
    Failure,
    FailureKind,
    Instant,
    LaneId,
    RetryChoice,
    RetryPolicy,
    RunEvent,
    RunId,
    RunOutcome,
    RunState,
    Served,
    SessionChange,
    SessionEvent,
    SessionId,
    ThreadId,
    WaitsFor,
    WakeEnd,
    WakeEvent,
    ask_next,
    retry,
    wakes_on,
)
from clew.kernel import RuleReason as Why
from clew.protocol.reports import Completed, End, Failed, Finish, Finished, Returned, Stopped, StoreAnswer, StoreAsked
from clew.store.engine.database import LostRace
from clew.store.engine.dialect import storable
from clew.store.engine.hints import hint_run
from clew.store.engine.statement import Row, Statement
from clew.store.operations import claim_sql
from clew.store.operations.agents import set_missing
from clew.store.operations.cancel import end_idle, open_run
from clew.store.operations.carried_wakes import WakeEnding, carried_by, end_carried, pending_in
from clew.store.operations.evidence import Followed, open_prompts, pinned_by_evidence, record_answers
from clew.store.operations.journal import append_statement, appended_seq, reply_of
from clew.store.operations.pins import pin_session
from clew.store.operations.run_state import advance, why_refused
from clew.store.operations.sessions import change_sessions, evidence_of, update_session, update_session_deferred
from clew.store.operations.work import keep_work
from clew.store.schema.tables import runs

_COMPLETED = frozenset({RunOutcome.ANSWERED.code, RunOutcome.NO_REPLY.code, RunOutcome.READ_BACK.code})

_EVENTS: Mapping[type, RunEvent] = {
    Completed: RunEvent.SUCCEED,
    Failed: RunEvent.FAIL,
    Returned: RunEvent.RETURN,
    Stopped: RunEvent.STOPPED,
    # Renewed first: the answers count only if they come from the daemon that has the run.
    StoreAsked: RunEvent.RENEW,
}


_set_outcome = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.id == bindparam("run"))
        .values(outcome=bindparam("outcome"), words=bindparam("words"))
    )
)


_reset_tries = Statement(lambda _: runs.update().where(runs.c.id == bindparam("run")).values(tries=literal_column("0")))


def finish(connection: Connection, said: Finish) -> Finished:
    """One transaction. The first end counts; a later one gets it as its answer. Safe to repeat."""
    event = RunEvent.RECOVER if _is_read_back(said.end) else _EVENTS[type(said.end)]
    outcome, heard = _plain_outcome(said.end), _said_of_prompt(said.end)
    ends = not isinstance(said.end, StoreAsked)
    row = advance(
        connection,
        said.run,
        said.attempt,
        (event,),
        outcome=outcome.code if ends else None,
        words=outcome.fill(why=_why(said.end)) if ends else None,
        evidence=None if heard is None else heard.evidence.value,
        evidence_words=None if heard is None else storable(heard.detail) or None,
    )
    if row is None:
        return _too_late(connection, said, event)
    if said.work is not None:
        keep_work(connection, said.work, row["now"])
    if said.pin is not None:
        # Reported together with the end, so it is not late.
        pinned = pin_session(connection, {**row, "ended_at": None}, said.pin)
        row = {**row, "session_id": pinned.session, "pinned": 1}
    match said.end:
        case Completed():
            return _completed(connection, row, said.end)
        case Failed():
            return _failed(connection, row, said.end, said.policy)
        case Returned():
            return _returned(connection, row, said.end)
        case Stopped():
            return _stopped(connection, row, said.end)
        case StoreAsked():
            return _store_asked(connection, row, said.end, said.policy)


def _is_read_back(end: End) -> bool:
    return isinstance(end, Completed) and end.read_back


def _said_of_prompt(end: End) -> Attestation | None:
    """What the end says about the run's own prompt. A completed turn has taken it."""
    match end:
        case Completed():
            words = "its reply was read from the agent's own store" if end.read_back else ""
            return Attestation(Evidence.FINISHED, words)
        case Failed() | Stopped():
            return end.heard
        case Returned() | StoreAsked():
            return None


def _plain_outcome(end: End) -> RunOutcome:
    match end:
        case Completed():
            if end.read_back:
                return RunOutcome.READ_BACK
            return RunOutcome.ANSWERED if (end.reply or "").strip() else RunOutcome.NO_REPLY
        case Failed():
            return RunOutcome.GAVE_UP
        case Returned() | StoreAsked():
            return RunOutcome.RETURNED
        case Stopped():
            return RunOutcome.STOPPED


def _why(end: End) -> str:
    return "" if isinstance(end, Completed | StoreAsked) else storable(end.why)


def _too_late(connection: Connection, said: Finish, event: RunEvent) -> Finished:
    refused = why_refused(connection, said.run, said.attempt, event)
    if refused.reason is None:
        raise LostRace("the run changed while its end was refused, and can end that way now")
    repeated = refused.run.attempt == said.attempt and _was_taken(said.end, refused.row)
    if not repeated and refused.run.attempt == said.attempt:
        _record_late(connection, LaneId(refused.row["lane_id"]), said)
    return Finished(repeated, refused.run.state, refused.row["words"] or "" if repeated else refused.words)


def _record_late(connection: Connection, lane: LaneId, said: Finish) -> None:
    """The end is too late to end the run, but what it says about the prompt is recorded."""
    heard = _said_of_prompt(said.end)
    if heard is None or heard.evidence is Evidence.UNKNOWN:
        return
    if isinstance(said.end, Completed):
        late = "its daemon said so after the run was given up"
        heard = Attestation(Evidence.FINISHED, late, said.end.reply or "")
    waiting = open_run(connection, lane)
    followed = record_answers(connection, lane, [StoreAnswer(said.run, heard)], waiting, said.policy)
    if waiting is None or not followed.heard:
        return
    state, run = RunState(waiting["state"]), RunId(waiting["id"])
    outcome, _ = _all_done(followed)
    if end_idle(connection, waiting, outcome, outcome.fill(why=followed.gave_up)):
        return
    if state is RunState.QUEUED and not ask_next([each.unheard for each in open_prompts(connection, lane)]):
        # Everything that it waited for is known.
        claim_sql.hold.count(connection, run=run, hold="", code=None, words=None, until=None)
        hint_run(connection, run)
    elif state is not RunState.QUEUED and not carried_by(connection, run):
        _end_asker(connection, waiting, followed)


def _all_done(followed: Followed) -> tuple[RunOutcome, RunEvent]:
    """How a run ends that asked the agent's store and has nothing left to do."""
    outcome = RunOutcome.GAVE_UP if followed.gave_up else RunOutcome.READ_BACK
    return outcome, wakes_on(outcome).run


def _end_asker(connection: Connection, row: Row, followed: Followed) -> Row:
    run, (outcome, event) = RunId(row["id"]), _all_done(followed)
    words = outcome.fill(why=followed.gave_up)
    row = _required(advance(connection, run, row["attempt"], (event,), outcome=outcome.code, words=words))
    end_carried(connection, row, WakeEnding(WakeEvent.SERVE, Served.BY_RUN.code, Served.BY_RUN.fill(run=run)))
    return row


def _was_taken(end: End, row: Row) -> bool:
    """Whether this end was already applied: its answer was lost, and the daemon repeats it."""
    match end:
        case Returned():
            return RunState(row["state"]) is RunState.QUEUED
        case Failed():
            return row["outcome"] in (RunOutcome.GAVE_UP.code, RunOutcome.RETRYING.code)
        case Stopped():
            # A run that was told to stop ends for that reason.
            return row["ended_at"] is not None and row["outcome"] in (row["stop_code"], RunOutcome.STOPPED.code)
        case Completed():
            return row["outcome"] in _COMPLETED
        case StoreAsked():
            ends = (row["stop_code"], RunOutcome.READ_BACK.code, RunOutcome.GAVE_UP.code)
            return RunState(row["state"]) is RunState.QUEUED or (row["ended_at"] is not None and row["outcome"] in ends)


def _completed(connection: Connection, row: Row, end: Completed) -> Finished:
    # An agent that died right after its reply may not have reported its session; the completed turn proves it exists.
    row, run = _pinned(connection, row), RunId(row["id"])
    thread, said = ThreadId(row["thread_id"]), None if end.reply is None else reply_of(row, end.reply, end.size)
    ending = WakeEnding(WakeEvent.SERVE, Served.BY_RUN.code, Served.BY_RUN.fill(run=run))
    appended = end_carried(connection, row, ending, beside=() if said is None else (append_statement(thread, said),))
    reply = None if said is None else appended_seq(connection, thread, said, appended[0])
    seen = EntrySeq(row["told"])
    # The session has seen its own reply, unless another entry came in between: then it gets both, in order.
    update_session_deferred(connection, row, reply if reply is not None and reply == seen + 1 else seen, end.usage)
    return Finished(True, RunState(row["state"]), row["words"] or "", reply)


def _failed(connection: Connection, row: Row, end: Failed, policy: RetryPolicy) -> Finished:
    left_nothing = end.kind in WAITED_OUT and not row["tool_ran"]
    row = update_session(connection, _pinned(connection, row), end.usage, left_nothing)
    if end.poisons and row["pinned"]:
        change_sessions(connection, [SessionChange(SessionId(row["session_id"]), SessionEvent.POISONED, Why.POISONED)])
    failure = failure_of(row, end.kind, _why(end), end.reset_at)
    choice = retry_or_give_up(connection, row, failure, RunOutcome.RETRYING, policy)
    return Finished(True, RunState(row["state"]), choice.words, retry=choice)


def retry_or_give_up(
    connection: Connection, row: Row, failure: Failure, again: RunOutcome, policy: RetryPolicy
) -> RetryChoice:
    """After a failure: the wakes wait for another try, or are given up with the reason."""
    tries = row["tries"] + 1
    choice = retry(failure, tries, policy, row["now"], random.random())
    if choice.redo is None:
        outcome = RunOutcome.GAVE_UP
        ending = WakeEnding(WakeEvent.CANCEL, WakeEnd.GAVE_UP.code, WakeEnd.GAVE_UP.fill(why=choice.words))
    else:
        outcome = again
        until = None if choice.at is None or choice.at <= row["now"] else choice.at
        waits_out = choice.reason.code if until is not None and failure.kind in WAITED_OUT else None
        words = again.fill(why=choice.words)
        ending = WakeEnding(WakeEvent.RELEASE, again.code, words, until, waits_out=waits_out)
    if RunState(row["state"]) is RunState.CANCELLED:
        # A cancelled run does not count as a try: what is pending starts with zero tries.
        end_carried(connection, row, ending)
    else:
        said = {"run": row["id"], "outcome": outcome.code, "words": outcome.fill(why=choice.words)}
        again_for_these = tries if ending.event is WakeEvent.RELEASE else 0
        end_carried(connection, row, ending, again_for_these, beside=((_set_outcome, said),))
    return choice


def failure_of(row: Row, kind: FailureKind, why: str, reset_at: Instant | None = None) -> Failure:
    """A failure, with how far its run had come."""
    return Failure(
        kind,
        why,
        evidence=evidence_of(row),
        continues=bool(row["pinned"]),
        tool_ran=bool(row["tool_ran"]),
        reopened=bool(row["reopened"]),
        reset_at=reset_at,
    )


def _returned(connection: Connection, row: Row, end: Returned) -> Finished:
    words = RunOutcome.RETURNED.fill(why=_why(end))
    # A wake that came meanwhile was not part of the decision, so the run must not wait for a person.
    waits = WaitsFor.ANOTHER_TRY if pending_in(connection, LaneId(row["lane_id"])) else end.waits_for
    end_carried(connection, row, WakeEnding(WakeEvent.RELEASE, RunOutcome.RETURNED.code, words))
    if end.program_gone:
        # The run itself is not held: no run of this agent is claimed until its machine finds the program.
        set_missing(connection, AgentId(row["agent_id"]), _why(end))
    elif RunState(row["state"]) is RunState.QUEUED:
        until = None if waits is WaitsFor.PERSON else row["now"] + claim_sql.HELD_FOR[waits]
        claim_sql.hold.count(connection, run=row["id"], hold=waits.value, code=end.code, words=_why(end), until=until)
    return Finished(True, RunState(row["state"]), words)


def _stopped(connection: Connection, row: Row, end: Stopped) -> Finished:
    update_session(connection, _pinned(connection, row), end.usage)
    end_carried(connection, row, WakeEnding(WakeEvent.CANCEL, WakeEnd.BY_USER.code, WakeEnd.BY_USER.fill()))
    return Finished(True, RunState(row["state"]), row["words"] or "")


def _pinned(connection: Connection, row: Row) -> Row:
    return pinned_by_evidence(connection, row) if evidence_of(row) in HELD_BY_AGENT else row


def _store_asked(connection: Connection, row: Row, end: StoreAsked, policy: RetryPolicy) -> Finished:
    """Record the answers. The run's remaining wakes are decided again at once, or when more is known."""
    run, attempt, lane = RunId(row["id"]), row["attempt"], LaneId(row["lane_id"])
    followed = record_answers(connection, lane, end.answers, row, policy)
    if not carried_by(connection, run):
        row = _end_asker(connection, row, followed)
        return Finished(True, RunState(row["state"]), row["words"] or "")
    if followed.heard and not followed.left:
        # The remaining wakes were not tried yet.
        _reset_tries.count(connection, run=run)
    asks = ask_next([each.unheard for each in open_prompts(connection, lane)])
    why = "the agent's own store has answered" if asks is None else asks.words
    words = RunOutcome.RETURNED.fill(why=why)
    row = _required(
        advance(connection, run, attempt, (RunEvent.RETURN,), outcome=RunOutcome.RETURNED.code, words=words)
    )
    end_carried(connection, row, WakeEnding(WakeEvent.RELEASE, RunOutcome.RETURNED.code, words))
    if asks is not None and RunState(row["state"]) is RunState.QUEUED:
        until = None if asks.wait is None else row["now"] + asks.wait
        waits = WaitsFor.PERSON if asks.wait is None else WaitsFor.ANOTHER_TRY
        hold = claim_sql.hold
        hold.count(connection, run=run, hold=waits.value, code=asks.reason.code, words=asks.words, until=until)
    return Finished(True, RunState(row["state"]), words)


def _required(row: Row | None) -> Row:
    if row is None:
        raise LostRace("the run changed while the answers of its agent's store were recorded")
    return row
