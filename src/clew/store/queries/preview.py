"""A preview: how a wake that is sent now would continue. It is decided as a claim does it, and nothing is written."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from clew.kernel import (
    Admission,
    AdmissionPolicy,
    EntrySeq,
    Instant,
    LaneId,
    Plan,
    RunId,
    Wake,
    decide,
    lane_id,
    thread_for,
)
from clew.protocol.wakes import WakeRequest
from clew.store.engine.dialect import read_clock
from clew.store.engine.statement import Row, Statement
from clew.store.operations import claim_sql as sql
from clew.store.operations.claim import served_together
from clew.store.operations.decisions import situation_of
from clew.store.operations.evidence import open_prompts
from clew.store.operations.rows import read_wake
from clew.store.operations.steering import live_run, steerable_run
from clew.store.operations.wakes import foresee_admission
from clew.store.queries.runs import read_run
from clew.store.queries.waits import Wait, wait_of_new
from clew.store.schema.tables import machines

_RUN = RunId("~")
"""The id of a run that does not exist yet. It sorts after all that wait with the same rank."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What would become of the wake. `entry` is the number that its message would get.

    `live_run` is the name of the lane's live run, and `steerable` says whether its turn can be told of a message. There
    is a plan where the lane is free and a machine is known; `machine` is that machine. `wait` is what the run would
    wait for. `alone`: a wake that asks for a context of its own is served first.
    """

    at: Instant
    admission: Admission
    entry: EntrySeq
    live_run: str | None = None
    steerable: bool = False
    plan: Plan | None = None
    machine: str = ""
    wait: Wait | None = None
    alone: bool = False


_machine = Statement(lambda _: select(machines.c.name).where(machines.c.id == bindparam("machine")))


def foresee(connection: Connection, request: WakeRequest, head: int, policy: AdmissionPolicy | None = None) -> Foreseen:
    """`head` is the last entry of the thread's journal."""
    thread = thread_for(request.agent, request.thread)
    lane = lane_id(request.agent, thread)
    entry = EntrySeq(head + 1)
    admission = foresee_admission(connection, request, policy)
    going = live_run(connection, lane)
    if going is not None:
        steerable = steerable_run(connection, lane) is not None
        name = read_run(connection, going).name
        return Foreseen(read_clock(connection), admission, entry, name, steerable)
    rows = sql.foreseen.rows(connection, agent=request.agent, lane=lane, thread=thread, run=_RUN)
    if not rows:
        wait = wait_of_new(connection, _RUN, request.agent, None, lane, 0.0)
        return Foreseen(read_clock(connection), admission, entry, wait=wait)
    entry = EntrySeq(rows[0]["head"] + 1)
    row = _with_new_entry(rows[0], entry)
    wait = wait_of_new(connection, row["run_id"], request.agent, row["runtime_id"], lane, row["rank"])
    new = _wake(request, lane, entry, row["now"])
    waiting = {read_wake(each, "wake_"): each["wake_scope"] for each in rows if each["wake_id"] is not None}
    taken, scope = served_together(row, {**waiting, new: ""})
    if new not in taken:
        return Foreseen(row["now"], admission, entry, wait=wait, alone=True)
    unheard = tuple(each.unheard for each in open_prompts(connection, lane)) if row["unheard"] else ()
    plan = decide(situation_of(connection, row, taken, scope, unheard))
    machine = _machine.first(connection, machine=row["machine_id"])
    return Foreseen(row["now"], admission, entry, plan=plan, machine=machine["name"] if machine else "", wait=wait)


def _with_new_entry(row: Row, entry: EntrySeq) -> Row:
    """The row as it would be with the message in the journal, in a lane that may be made for it."""
    made = {"floor_generation": 0, "floor_entry": 0, "floor_kept": "[]"}
    new = {} if row["floor_kept"] is not None else made
    return {**row, **new, "head": entry}


def _wake(request: WakeRequest, lane: LaneId, entry: EntrySeq, now: Instant) -> Wake:
    return Wake(
        id=request.id,
        lane=lane,
        reason=request.reason,
        origin=request.origin,
        accepted_at=now,
        entries=(entry,),
        freshness=request.freshness,
        resume_run=request.resume_run,
    )
