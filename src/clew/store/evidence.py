"""Evidence: what agents' own stores said of the prompts of runs that ended without a word of them.

A lane with such a run sends nothing until it is known whether the agent took that prompt. Its next run asks the store,
and what is answered is kept with the run that sent it, with the session it was sent to, and with the wakes it was for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, literal_column, null, or_, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    HELD_BY_AGENT,
    Attestation,
    EntrySeq,
    Evidence,
    LaneId,
    RunId,
    RuntimeId,
    Served,
    ThreadId,
    Unheard,
    WakeId,
    weighed,
)
from clew.store.advancing import RUN_COLUMNS
from clew.store.cancel import cancel_wake
from clew.store.clock import now
from clew.store.faults import SessionHeld
from clew.store.hints import hint_run, hint_thread
from clew.store.journal import append, reply_of
from clew.store.pinning import pin_session
from clew.store.settling import told_at_last
from clew.store.statement import Row, Statement, among
from clew.store.tables import UNHEARD, runs, wakes
from clew.store.texts import keepable
from clew.wire.ends import StoreAnswer, Usage
from clew.wire.orders import StoreQuestion
from clew.wire.prompted import SteerSent, read_prompted, read_steer
from clew.wire.reports import Prompted


def _of_lane(*more: object) -> ClauseElement:
    return (
        select(*RUN_COLUMNS, runs.c.steer, runs.c.evidence_words)
        .where(runs.c.lane_id == bindparam("lane"), text(UNHEARD), *more)  # type: ignore[arg-type]
        .order_by(runs.c.queued_at, runs.c.id)
    )


_unheard = Statement(lambda _: _of_lane())
_one = Statement(lambda _: _of_lane(runs.c.id == bindparam("run")))

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

_ask_anew = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.lane_id == bindparam("lane"), text(UNHEARD))
        .values(evidence_asked=literal_column("0"))
    )
)


def _serve(dialect: str) -> ClauseElement:
    waits = wakes.c.state == literal_column("'pending'")
    carried = (wakes.c.state == literal_column("'claimed'")) & (wakes.c.run_id == bindparam("asker"))
    return (
        wakes.update()
        .where(among(dialect, wakes.c.id, "wakes"), or_(waits, carried))
        .values(
            state=literal_column("'served'"),
            run_id=bindparam("run"),
            code=literal_column(f"'{Served.READ_BACK.code}'"),
            words=bindparam("words"),
            ended_at=now(),
        )
    )


_serve_read_back = Statement(_serve)


@dataclass(frozen=True, slots=True)
class OpenPrompt:
    """A run whose prompt nobody has word of: as a decision knows it, and as its agent's store is asked for it."""

    unheard: Unheard
    question: StoreQuestion


def open_prompts(connection: Connection, lane: LaneId) -> tuple[OpenPrompt, ...]:
    return tuple(map(_open_prompt, _unheard.rows(connection, lane=lane)))


def ask_anew(connection: Connection, lane: LaneId) -> None:
    """A person wants it tried again: the stores are asked as if for the first time."""
    _ask_anew.count(connection, lane=lane)


def by_person(connection: Connection, lane: LaneId, taken: bool) -> int:
    """A person says whether the agent took what nobody else can tell of. How many prompts that was about. Where there
    is no session to go on with, what was taken is asked for no more."""
    said = Attestation(
        Evidence.CUT_OFF if taken else Evidence.UNSENT, f"a person said that it was {'' if taken else 'not '}taken"
    )
    rows = _unheard.rows(connection, lane=lane)
    for row in rows:
        _hear(connection, row, StoreAnswer(RunId(row["id"]), said, said), None)
        prompted = _prompted(row)
        if taken and prompted is not None and prompted.session is None and not row["pinned"]:
            for wake in prompted.wakes:
                cancel_wake(connection, wake)
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


def hear(connection: Connection, lane: LaneId, answers: Sequence[StoreAnswer], asker: RunId | None = None) -> None:
    """Keep what stores answered, with all that follows from it. A run of which word came meanwhile is passed over.
    `asker` is the run that asked, and carries wakes of the run it asked about."""
    for answer in answers:
        row = _one.first(connection, lane=lane, run=answer.run)
        if row is not None:
            _hear(connection, row, answer, asker)


def _hear(connection: Connection, row: Row, answer: StoreAnswer, asker: RunId | None) -> None:
    in_vain = False
    reply = ""
    if answer.prompt is not None and not _is_known(row):
        said = weighed(answer.prompt, bool(row["tool_ran"]))
        reply, in_vain = said.reply, said.evidence is Evidence.UNKNOWN
        _keep.count(connection, run=row["id"], evidence=said.evidence.value, words=keepable(said.detail))
        row = {**row, "evidence": said.evidence.value}
    evidence = Evidence(row["evidence"] or Evidence.UNKNOWN)
    steer = _steer(row)
    if steer is not None and evidence is not Evidence.UNKNOWN:
        taken = _taken(answer.steered, evidence)
        in_vain = in_vain or taken is None
        if taken is not None:
            row = {**row, "told": max(row["told"], steer.through) if taken else row["told"], "steer": None}
            _keep_steer.count(connection, run=row["id"], told=row["told"])
            steer = steer if taken else None
    if in_vain:
        _in_vain.count(connection, run=row["id"])
    if evidence in HELD_BY_AGENT:
        _held(connection, row, evidence, reply, () if steer is None else steer.wakes, asker)
    hint_run(connection, RunId(row["id"]))


def _taken(said: Attestation | None, of_prompt: Evidence) -> bool | None:
    """Whether what was told within the turn was taken: not where its turn never began; None where nobody knows."""
    if of_prompt is Evidence.UNSENT:
        return False
    if said is None or said.evidence is Evidence.UNKNOWN:
        return None
    return said.evidence in HELD_BY_AGENT


def _held(
    connection: Connection,
    row: Row,
    evidence: Evidence,
    reply: str,
    steered: tuple[WakeId, ...],
    asker: RunId | None,
) -> None:
    """The session has the prompt: it is written down if it was not, and has seen what the prompt told."""
    row = pinned_by_evidence(connection, row)
    seen, usage = EntrySeq(row["told"]), Usage()
    if evidence is Evidence.FINISHED:
        usage = Usage(turns=1)
        prompted = _prompted(row)
        served = (*(() if prompted is None else prompted.wakes), *steered)
        if reply:
            thread = ThreadId(row["thread_id"])
            entry = append(connection, thread, reply_of(row, reply))
            hint_thread(connection, thread)
            seen = entry if entry == seen + 1 else seen
        words = Served.READ_BACK.fill(run=row["id"])
        _serve_read_back.count(connection, wakes=list(served), asker=asker or "", run=row["id"], words=words)
    told_at_last(connection, row, seen, usage)


def pinned_by_evidence(connection: Connection, row: Row) -> Row:
    """A session that turns out to have taken its prompt is there, whether or not its daemon came to say so."""
    prompted = _prompted(row)
    if row["pinned"] or prompted is None or prompted.session is None:
        return row
    try:
        pinned = pin_session(connection, row, prompted.session)
    except SessionHeld:
        # Another lane has it by now, and keeps it.
        return row
    return {**row, "session_id": pinned.session, "pinned": 1}


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
