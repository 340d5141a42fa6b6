"""The claim: a daemon takes queued runs of its runtimes with their lanes' wakes, decided, as complete orders."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from clew.kernel import (
    AgentId,
    Carried,
    EntrySeq,
    EvidenceReason,
    LaneId,
    Outcome,
    Plan,
    ProjectId,
    RunId,
    RuntimeId,
    ScopeKey,
    SessionId,
    ThreadId,
    WaitsFor,
    Wake,
    WakeId,
    decide,
    isolated,
    leased,
    ready,
)
from clew.protocol.orders import ClaimRequest, Entry, Order, OrderedAgent, OrderedProject, OrderedThread
from clew.store.engine.database import LostRace
from clew.store.engine.dialect import storable
from clew.store.engine.hints import hint_run, hint_thread
from clew.store.engine.statement import POSTGRESQL, Row
from clew.store.faults import Unreadable
from clew.store.operations import claim_sql as sql
from clew.store.operations.decisions import HELD, decision_record, keep_decision, keep_decisions, kept, situation_of
from clew.store.operations.evidence import open_prompts
from clew.store.operations.ids import new_id
from clew.store.operations.journal import entries_between, read_entry
from clew.store.operations.rows import read_scope, read_wake
from clew.store.operations.sessions import change_sessions
from clew.store.operations.wakes import OWN_SCOPE
from clew.store.operations.workspaces import remember_place

LOOKS = 20
"""How often one claim reads the queue again after runs that have to wait, before it leaves the rest to the next."""


@dataclass(frozen=True, slots=True)
class _Load:
    """The wakes a run takes, and the scope they are served in. `asks` has the column `entry` of each wake."""

    wakes: tuple[Wake, ...]
    scope: ScopeKey
    entries: tuple[Entry, ...]
    asks: Mapping[WakeId, int]


@dataclass(frozen=True, slots=True)
class _Taken:
    """A run that this claim takes, before it is written."""

    order: Order
    row: Row
    carried: _Load
    record: str
    agent_place: int
    runtime_place: int


def claim(connection: Connection, asked: ClaimRequest) -> tuple[Order, ...]:
    """One transaction: this daemon gets up to `most` queued runs, the lowest rank first.

    Safe to repeat: runs of a claim whose answer was lost return to the queue when their leases end.
    """
    if asked.most > 1 and connection.dialect.name == POSTGRESQL:
        sql.claim_lock.defer(connection, names=sorted(f"claim:{runtime}" for runtime in asked.runtimes))
    orders: list[Order] = []
    for runtime in asked.runtimes:
        for _ in range(LOOKS):
            wanted = asked.most - len(orders)
            if wanted <= 0:
                break
            # What the read before held or delayed is not read again, and has left its place to others.
            groups = _by_run(sql.queued.rows(connection, runtime=runtime, most=wanted))
            found = _claim_found(connection, asked, groups)
            orders += found
            if len(groups) < wanted and len(found) == len(groups):
                break
    return tuple(orders)


def _claim_found(connection: Connection, asked: ClaimRequest, groups: Sequence[Sequence[Row]]) -> list[Order]:
    taken: list[_Taken] = []
    places = _Places()
    for group in groups:
        run = group[0]
        at = places.free(run)
        if at is None:
            continue
        try:
            order = _decide(connection, asked, group)
            record = "" if order is None else decision_record(order[0].plan)
        except Unreadable as fault:
            _hold(connection, run, WaitsFor.PERSON, fault.code, str(fault))
            continue
        except (ValueError, TypeError, KeyError, RecursionError) as fault:
            # A run that cannot be decided must not block the queue.
            _hold(
                connection,
                run,
                WaitsFor.PERSON,
                Unreadable.code,
                f"It cannot be decided: {storable(str(fault) or type(fault).__name__)}",
            )
            continue
        if order is not None:
            places.take(run, at)
            taken.append(_Taken(order[0], run, order[1], record, *at))
    # Sorted by agent: claims for two runtimes then lock the places of the same agents in the same order.
    _write(connection, asked, sorted(taken, key=lambda each: each.order.agent.id))
    return [each.order for each in taken]


def _by_run(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each run (one for every pending wake of its lane), in the order of the queue."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["run_id"], []).append(row)
    return list(groups.values())


class _Places:
    """The places of each agent and runtime that are free, as this claim fills them."""

    def __init__(self) -> None:
        self._taken: dict[str, set[int]] = {}

    def free(self, row: Row) -> tuple[int, int] | None:
        agent = self._one(row["agent_id"], row["agent_taken"], row["agent_max_live"])
        runtime = self._one(row["runtime_id"], row["runtime_taken"], row["runtime_max_live"])
        return None if agent is None or runtime is None else (agent, runtime)

    def take(self, row: Row, places: tuple[int, int]) -> None:
        self._taken[row["agent_id"]].add(places[0])
        self._taken[row["runtime_id"]].add(places[1])

    def _one(self, owner: str, listed: str | None, most: int) -> int | None:
        taken = self._taken.get(owner)
        if taken is None:
            taken = self._taken[owner] = {int(each) for each in listed.split(",")} if listed else set()
        if len(taken) >= most:
            return None
        # A random one: two servers that claim at the same moment seldom choose the same place.
        first = random.randrange(most)
        return next(place for at in range(most) if (place := (first + at) % most + 1) not in taken)


def _decide(connection: Connection, asked: ClaimRequest, group: Sequence[Row]) -> tuple[Order, _Load] | None:
    row = group[0]
    if row["wake_id"] is None:
        # A run without a pending wake has no work, and must not block the queue.
        sql.park.count(connection, run=row["run_id"], until=row["now"] + sql.HELD_FOR[WaitsFor.ANOTHER_TRY])
        return None
    carried = _carried(group)
    if not carried.wakes:
        sql.park.count(connection, run=row["run_id"], until=min(each["wake_not_before"] or 0.0 for each in group))
        return None
    # Prompts of earlier runs that nothing is known of: this run asks the agent's store about them first.
    left = open_prompts(connection, LaneId(row["lane_id"])) if row["unheard"] else ()
    unheard = tuple(each.unheard for each in left)
    plan = decide(situation_of(connection, row, carried.wakes, carried.scope, unheard))
    asks = plan.reason is EvidenceReason.UNHEARD
    if plan.outcome is Outcome.HOLD and not asks:
        waits = plan.waits_for or WaitsFor.ANOTHER_TRY
        _hold(connection, row, waits, plan.reason.code, plan.words)
        keep_decisions(connection, [(plan, row["run_id"], row["attempt"], HELD, row["now"])])
        return None
    change_sessions(connection, plan.session_changes)
    if plan.workspace is not None and plan.workspace.id != row["workspace_id"]:
        remember_place(connection, LaneId(row["lane_id"]), plan.workspace)
    resumes = plan.outcome is Outcome.RESUME and plan.session is not None
    session = plan.session.id if resumes and plan.session is not None else SessionId(new_id("ss"))
    order = Order(
        run=RunId(row["run_id"]),
        attempt=row["attempt"] + 1,
        lane=LaneId(row["lane_id"]),
        thread=OrderedThread(ThreadId(row["thread_id"]), row["thread_kind"], row["thread_title"], row["thread_number"]),
        agent=OrderedAgent(AgentId(row["agent_id"]), row["agent_name"], row["agent_settings"], row["instructions"]),
        project=_project(row),
        runtime=RuntimeId(row["runtime_id"]),
        lease_until=leased(row["now"], asked.patience),
        session=session,
        plan=plan,
        wakes=carried.wakes,
        entries=() if asks else unseen_entries(connection, ThreadId(row["thread_id"]), plan, carried.entries),
        route=plan.situation.demand.route,
        logged=row["logged"],
        questions=tuple(each.question for each in left),
        tries=row["tries"],
    )
    return order, carried


def _project(row: Row) -> OrderedProject | None:
    if row["project_id"] is None:
        return None
    return OrderedProject(
        ProjectId(row["project_id"]), row["project_name"], row["project_source"], row["project_settings"]
    )


def _carried(group: Sequence[Row]) -> _Load:
    rows = {row["wake_id"]: row for row in group}
    mine, scope = served_together(group[0], {read_wake(row, "wake_"): row["wake_scope"] for row in group})
    told = {seq: read_entry(rows[wake.id], "entry_") for wake in mine if (seq := rows[wake.id]["entry_seq"])}
    asks = {wake.id: rows[wake.id]["wake_entry"] for wake in mine}
    return _Load(mine, scope, tuple(told[seq] for seq in sorted(told)), asks)


def served_together(run: Row, waiting: Mapping[Wake, str]) -> tuple[tuple[Wake, ...], ScopeKey]:
    """The ready wakes that the run takes, of those that wait with the scope that each asks for: they are served in one
    scope, that of the first of them to arrive."""
    due = ready(waiting, run["now"])
    asked = waiting[due[0]] if due else ""
    return tuple(wake for wake in due if waiting[wake] == asked), _scope(run, asked)


def _scope(run: Row, asked: str) -> ScopeKey:
    """The scope that a wake asks for. A wake that was claimed before keeps the scope of its first run."""
    kept = read_scope(LaneId(run["lane_id"]), "" if asked == OWN_SCOPE else asked)
    return isolated(kept, RunId(run["run_id"])) if asked else kept


def unseen_entries(connection: Connection, thread: ThreadId, plan: Plan, own: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The entries that the session has not seen. `own` (those of the wakes) came with the claim; others are read."""
    told_before = plan.already_told
    at_hand = {entry.seq: entry for entry in own if entry.seq not in told_before}
    catch_up = plan.catch_up
    missing = len(catch_up) - sum(seq in catch_up for seq in at_hand)
    if missing > 0:
        at_hand |= {each.seq: each for each in entries_between(connection, thread, catch_up.after, catch_up.through)}
    for seq in (*plan.kept, *plan.act_on):
        if seq not in at_hand and seq not in told_before:
            at_hand |= {each.seq: each for each in entries_between(connection, thread, EntrySeq(seq - 1), seq)}
    return tuple(at_hand[seq] for seq in sorted(at_hand))


def _hold(connection: Connection, row: Row, waits: WaitsFor, code: str, words: str) -> None:
    until = None if waits is WaitsFor.PERSON else row["now"] + sql.HELD_FOR[waits]
    sql.hold.count(connection, run=row["run_id"], hold=waits.value, code=code, words=words, until=until)
    hint_run(connection, RunId(row["run_id"]))


def _write(connection: Connection, asked: ClaimRequest, taken: Sequence[_Taken]) -> None:
    if not taken:
        return
    carried = [
        {
            "run": each.order.run,
            "wake": wake.id,
            "entry": each.carried.asks[wake.id],
            "scope": each.carried.scope.run or "",
            "words": Carried.BY_RUN.fill(run=each.order.run),
        }
        for each in taken
        for wake in each.carried.wakes
    ]
    takes = [
        {
            "run": each.order.run,
            "lease": each.order.lease_until,
            "by": asked.by,
            "agent_at": each.agent_place,
            "runtime_at": each.runtime_place,
            "session": each.order.session,
            "scope": each.carried.scope.run or "",
            "now": each.row["now"],
        }
        for each in taken
    ]
    decided = [
        kept(each.order.plan, each.record, each.order.run, each.order.attempt, 0, each.row["now"]) for each in taken
    ]
    if sql.carry.many(connection, carried) < len(carried):
        raise LostRace("a wake was cancelled or changed while its run was being claimed")
    sql.take.defer_all(connection, takes)
    keep_decision.defer_all(connection, decided)
    for each in taken:
        hint_thread(connection, each.order.thread.id)
        hint_run(connection, each.order.run)
