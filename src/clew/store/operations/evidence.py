"""Evidence: what an agent's own store says about the prompt of a run that ended without a report of it.

A lane with such a run sends nothing until it is known whether the agent took that prompt. Its next run asks the store.
The answer is stored with the run that sent the prompt, its session, and the wakes it was for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Update, bindparam, literal_column, null, or_, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    HELD_BY_AGENT,
    NEVER_AGAIN,
    Attestation,
    EntrySeq,
    Evidence,
    Failure,
    FailureKind,
    LaneId,
    PinReason,
    RetryPolicy,
    RunId,
    RunOutcome,
    RuntimeId,
    Served,
    ThreadId,
    Unheard,
    WakeEnd,
    WakeEvent,
    WakeId,
    WakeState,
    retry,
    with_observed_work,
)
from clew.protocol.orders import StoreQuestion
from clew.protocol.reports import Prompted, SteerSent, StoreAnswer, Usage, read_prompted, read_steer
from clew.store.engine.dialect import among, now, storable
from clew.store.engine.hints import hint_run, hint_thread
from clew.store.engine.statement import Row, Statement
from clew.store.faults import SessionHeld
from clew.store.operations.cancel import end_idle, open_run
from clew.store.operations.ids import asked_again
from clew.store.operations.journal import append, reply_of
from clew.store.operations.pins import pin_session
from clew.store.operations.run_state import RUN_COLUMNS
from clew.store.operations.sessions import update_session_deferred
from clew.store.operations.wake_state import state_after, state_literal
from clew.store.schema.tables import UNHEARD, runs, wakes


def _unheard_in_lane(*more: object) -> ClauseElement:
    return (
        select(*RUN_COLUMNS, runs.c.steer, runs.c.evidence_words)
        .where(runs.c.lane_id == bindparam("lane"), text(UNHEARD), *more)  # type: ignore[arg-type]
        .order_by(runs.c.queued_at, runs.c.id)
    )


_unheard = Statement(lambda _: _unheard_in_lane())
_one = Statement(lambda _: _unheard_in_lane(runs.c.id == bindparam("run")))

_keep = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.id == bindparam("run"))
        .values(evidence=bindparam("evidence"), evidence_words=bindparam("words"), evidence_at=now())
    )
)

_keep_steer = Statement(
    lambda _: runs.update().where(runs.c.id == bindparam("run")).values(steer=null(), told=bindparam("told"))
)

_in_vain = Statement(
    lambda _: runs.update().where(runs.c.id == bindparam("run")).values(evidence_asked=runs.c.evidence_asked + 1)
)

_never_again = Statement(
    lambda _: runs.update().where(runs.c.id == bindparam("run")).values(evidence_asked=literal_column(str(NEVER_AGAIN)))
)

_reset_asked = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.lane_id == bindparam("lane"), text(UNHEARD))
        .values(evidence_asked=literal_column("0"))
    )
)


def _of_prompt(dialect: str) -> Update:
    """The prompt's wakes that are pending, or that the asking run carries."""
    waits = wakes.c.state == state_literal(WakeState.PENDING)
    carried = (wakes.c.state == state_literal(WakeState.CLAIMED)) & (wakes.c.run_id == bindparam("asker"))
    return wakes.update().where(among(dialect, wakes.c.id, "wakes"), or_(waits, carried))


def _ended(dialect: str, event: WakeEvent, code: str) -> ClauseElement:
    """The wakes end with the run that sent the prompt. The kernel's table has no end for a pending wake, so it is
    claimed by that run first."""
    return _of_prompt(dialect).values(
        state=state_after(WakeState.PENDING, WakeEvent.CLAIM, event),
        run_id=bindparam("run"),
        code=literal_column(f"'{code}'"),
        words=bindparam("words"),
        ended_at=now(),
    )


serve_read_back = Statement(lambda dialect: _ended(dialect, WakeEvent.SERVE, Served.READ_BACK.code))
give_up = Statement(lambda dialect: _ended(dialect, WakeEvent.CANCEL, WakeEnd.GAVE_UP.code))
drop = Statement(lambda dialect: _ended(dialect, WakeEvent.CANCEL, WakeEnd.BY_USER.code))
_begin = Statement(lambda dialect: _of_prompt(dialect).values(began=literal_column("1")))


@dataclass(frozen=True, slots=True)
class OpenPrompt:
    """A run whose prompt may or may not have been taken: as a fact of a decision, and as a question to the agent's
    store."""

    unheard: Unheard
    question: StoreQuestion


def open_prompts(connection: Connection, lane: LaneId) -> tuple[OpenPrompt, ...]:
    return tuple(map(_open_prompt, _unheard.rows(connection, lane=lane)))


def ask_stores_again(connection: Connection, lane: LaneId) -> None:
    """A person retries: ask the agents' stores as if for the first time."""
    _reset_asked.count(connection, lane=lane)


def attest_by_person(connection: Connection, lane: LaneId, taken: bool, by: str = "a person") -> int:
    """A person says whether the agent took the prompts that no store can tell about; `by` names the person. How many
    prompts that was. If one was taken but has no session to continue in, its wakes are cancelled."""
    said = Attestation(
        # Not CUT_OFF: it is unknown how far the turn came.
        Evidence.TAKEN if taken else Evidence.UNSENT,
        f"{by} said that it was {'' if taken else 'not '}taken",
    )
    waiting, rows = open_run(connection, lane), _unheard.rows(connection, lane=lane)
    for row in rows:
        became = _record_answer(connection, row, StoreAnswer(RunId(row["id"]), said, said), "")
        if taken and not became.row["pinned"]:
            words = WakeEnd.BY_USER.fill()
            drop.count(connection, wakes=list(became.wakes), asker="", run=row["id"], words=words)
    if waiting is not None:
        end_idle(connection, waiting, RunOutcome.BY_USER, RunOutcome.BY_USER.fill())
    return len(rows)


def _open_prompt(row: Row) -> OpenPrompt:
    prompted, steer = _prompted(row), _steer(row)
    session = None if prompted is None else prompted.session
    hears = session is not None and prompted is not None and prompted.hears
    unheard = Unheard(RunId(row["id"]), hears, row["evidence_asked"], row["evidence_words"] or "")
    question = StoreQuestion(
        run=unheard.run,
        runtime=RuntimeId(row["runtime_id"]),
        cursor=None if session is None else session.cursor,
        directory=None if session is None else session.directory,
        prompt=prompted.sent if prompted is not None and not _is_known(row) else None,
        steered=None if steer is None else steer.sent,
    )
    return OpenPrompt(unheard, question)


@dataclass(frozen=True, slots=True)
class Followed:
    """The result of the answers: how many runs they were about, why wakes were given up (empty if none were), and
    whether anything is left for a run to do."""

    heard: int = 0
    gave_up: str = ""
    left: bool = False


def record_answers(
    connection: Connection,
    lane: LaneId,
    answers: Sequence[StoreAnswer],
    asker: Row | None = None,
    policy: RetryPolicy | None = None,
) -> Followed:
    """Store the answers and apply what follows from them. A run whose prompt became known meanwhile is skipped.
    `asker` is the lane's run that has not ended: it carries the wakes of the run it asked about, or is queued for
    them."""
    followed = Followed()
    by, tries = ("", 1) if asker is None else (asker["id"], max(1, asker["tries"]))
    for answer in answers:
        row = _one.first(connection, lane=lane, run=answer.run)
        if row is None:
            continue
        became = _record_answer(connection, row, answer, by)
        gave_up, left = _give_up_or_continue(connection, became, by, tries, policy or RetryPolicy())
        followed = Followed(followed.heard + 1, gave_up or followed.gave_up, left or followed.left)
    return followed


@dataclass(frozen=True, slots=True)
class _Became:
    """A run after an answer: what is known of its prompt, and the wakes that the prompt was for."""

    row: Row
    evidence: Evidence
    wakes: tuple[WakeId, ...]


def _record_answer(connection: Connection, row: Row, answer: StoreAnswer, asker: str) -> _Became:
    in_vain = news = False
    reply = ""
    if answer.prompt is not None and not _is_known(row):
        said = with_observed_work(answer.prompt, bool(row["tool_ran"]))
        reply, in_vain, news = said.reply, said.evidence is Evidence.UNKNOWN, True
        _keep.count(connection, run=row["id"], evidence=said.evidence.value, words=storable(said.detail))
        row = {**row, "evidence": said.evidence.value, "evidence_words": storable(said.detail)}
    evidence = Evidence(row["evidence"] or Evidence.UNKNOWN)
    steer = _steer(row)
    steered: tuple[WakeId, ...] = ()
    if steer is not None and evidence is not Evidence.UNKNOWN:
        taken = _steer_was_taken(answer.steered, evidence)
        in_vain = in_vain or taken is None
        if taken is not None:
            row = {**row, "told": max(row["told"], steer.through) if taken else row["told"], "steer": None}
            _keep_steer.count(connection, run=row["id"], told=row["told"])
            steered = steer.wakes if taken else ()
    if in_vain:
        able = all(said is None or said.able for said in (answer.prompt, answer.steered))
        (_in_vain if able else _never_again).count(connection, run=row["id"])
    of_prompt = _wakes_of(row, steered)
    if evidence in HELD_BY_AGENT:
        row = _prompt_was_taken(connection, row, evidence, reply, of_prompt, asker, news)
    hint_run(connection, RunId(row["id"]))
    return _Became(row, evidence, of_prompt)


def _wakes_of(row: Row, steered: tuple[WakeId, ...]) -> tuple[WakeId, ...]:
    """The wakes that the run's prompt was for, and those that a person's retry made of them before it was known."""
    prompted = _prompted(row)
    told = (*(() if prompted is None else prompted.wakes), *steered)
    return (*told, *(WakeId(asked_again(wake)) for wake in told))


def _give_up_or_continue(
    connection: Connection, became: _Became, asker: str, tries: int, policy: RetryPolicy
) -> tuple[str, bool]:
    """Why the prompt's wakes are given up (empty if they are not), and whether a run has anything left to do. Their run
    ended before this was known, so the tries are counted here."""
    row = became.row
    if became.evidence in (Evidence.UNKNOWN, Evidence.FINISHED):
        return "", became.evidence is Evidence.UNKNOWN
    why = f"run {row['id']} ended without a word of its prompt ({row['evidence_words'] or became.evidence})"
    failure = Failure(FailureKind.INTERRUPTED, why, became.evidence, continues=bool(row["pinned"]))
    choice = retry(failure, tries, policy, row["now"], 0.0)
    if choice.redo is not None:
        return "", True
    words = WakeEnd.GAVE_UP.fill(why=choice.words)
    ended = give_up.count(connection, wakes=list(became.wakes), asker=asker, run=row["id"], words=words)
    return choice.words if ended else "", False


def _steer_was_taken(said: Attestation | None, of_prompt: Evidence) -> bool | None:
    """Whether the agent took the message it was steered with; None if unknown. If the turn never began, it did not."""
    if of_prompt is Evidence.UNSENT:
        return False
    if said is None or said.evidence is Evidence.UNKNOWN:
        return None
    return said.evidence in HELD_BY_AGENT


def _prompt_was_taken(
    connection: Connection,
    row: Row,
    evidence: Evidence,
    reply: str,
    of_prompt: tuple[WakeId, ...],
    asker: str,
    news: bool,
) -> Row:
    """The agent took the prompt: pin its session if that is missing, and record that it has seen the prompt's entries.
    `news` is whether this was unknown before. Returns the run as it is now."""
    row = pinned_by_evidence(connection, row)
    seen, usage = EntrySeq(row["told"]), Usage()
    if evidence is Evidence.FINISHED:
        usage = Usage(turns=int(news))
        if reply:
            thread = ThreadId(row["thread_id"])
            entry = append(connection, thread, reply_of(row, reply))
            hint_thread(connection, thread)
            seen = entry if entry == seen + 1 else seen
        words = Served.READ_BACK.fill(run=row["id"])
        serve_read_back.count(connection, wakes=list(of_prompt), asker=asker, run=row["id"], words=words)
    elif row["pinned"]:
        # A session was opened for these wakes, so a demand for a fresh start is met.
        _begin.count(connection, wakes=list(of_prompt), asker=asker)
    update_session_deferred(connection, row, seen, usage)
    return row


def pinned_by_evidence(connection: Connection, row: Row) -> Row:
    """The run with its session pinned. A session that took the prompt exists, even if its daemon never reported it."""
    prompted = None if row["pinned"] else _prompted(row)
    if prompted is None or prompted.session is None:
        return row
    try:
        pinned = pin_session(connection, row, prompted.session)
    except SessionHeld:
        # The session belongs to another lane by now, and stays there.
        return row
    return row if pinned.reason is PinReason.LATE else {**row, "session_id": pinned.session, "pinned": 1}


def _is_known(row: Row) -> bool:
    return row["evidence"] not in ("", Evidence.UNKNOWN.value)


def _prompted(row: Row) -> Prompted | None:
    try:
        return None if row["prompt"] is None else read_prompted(row["prompt"])
    except ValueError:
        return None


def _steer(row: Row) -> SteerSent | None:
    try:
        return None if row["steer"] is None else read_steer(row["steer"])
    except ValueError:
        return None
