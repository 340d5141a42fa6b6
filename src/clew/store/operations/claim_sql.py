"""The statements of a claim. The first one reads everything that a decision needs of a run, except its sessions."""

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    Integer,
    Select,
    Text,
    bindparam,
    cast,
    func,
    literal_column,
    null,
    select,
    text,
)
from sqlalchemy.sql import ClauseElement

from clew.kernel import Carried, Evidence, RunState, WaitsFor, WakeEvent, WakeState
from clew.store.engine.dialect import greater, lesser, listed, now
from clew.store.engine.statement import Statement
from clew.store.operations.runtimes import is_program, last_seen_runtime, started
from clew.store.operations.wake_state import PENDING, state_after
from clew.store.schema.tables import (
    LIVE,
    NOT_ENDED,
    UNHEARD,
    agents,
    events,
    journal,
    lanes,
    machines,
    programs,
    projects,
    runs,
    runtimes,
    sessions,
    threads,
    wakes,
    workspaces,
)

HELD_FOR: Mapping[WaitsFor, float] = {WaitsFor.ANOTHER_TRY: 30.0, WaitsFor.SESSION_FREE: 5.0, WaitsFor.PERSON: 0.0}
"""Seconds until a held run is decided again. One that waits for a person is decided again when something changes."""

QUEUED = RunState.QUEUED.value
"""Compared as a bound value where a run is found by its id: a literal would match the condition of ix_runs_queue, and
PostgreSQL could scan that index from end to end."""

_NOT_OF_WAKE = frozenset({"thread_id", "dedupe_key", "state", "run_id", "code", "words", "ended_at", "preview"})

WAKE_KEYS = tuple(column.name for column in wakes.c if column.name not in _NOT_OF_WAKE)
"""The columns that `read_wake` reads, and the scope."""

_WORKSPACE_KEYS = ("id", "kind", "directory", "project_id", "machine_id", "branch", "begins", "begun_by")
_ENTRY_KEYS = tuple(column.name for column in journal.c if column.name != "thread_id")


def _picked(dialect: str) -> CTE:
    """The first runs of the queue that may start, in the order of ix_runs_queue; no other run is read.

    No more than the runtime has free places: every row here is locked, and read with all that its run needs.
    Agents without a free place are found once and skipped here, so that one agent's queue does not block the others.
    PostgreSQL: FOR UPDATE SKIP LOCKED, so concurrent claims take different runs.
    """
    r, b, c = runs.alias("r"), runs.alias("b"), runs.alias("c")
    a, o = agents.alias("a"), agents.alias("o")
    allowed = select(o.c.max_live).where(o.c.id == b.c.agent_id).scalar_subquery()
    full = select(b.c.agent_id).where(text(f"b.{LIVE}")).group_by(b.c.agent_id).having(func.count() >= allowed)
    may_work = (a.c.state == literal_column("'active'")) & (a.c.max_live > literal_column("0")) & a.c.missing.is_(None)
    live_here = (
        select(func.count())
        .select_from(c)
        .where(c.c.runtime_id == bindparam("runtime"), text(f"c.{LIVE}"))
        .scalar_subquery()
    )
    most_live = select(runtimes.c.max_live).where(runtimes.c.id == bindparam("runtime")).scalar_subquery()
    # A runtime that is not registered has no places; without a number, there would be no limit.
    free = func.coalesce(most_live, literal_column("0")) - live_here
    picked = (
        select(r.c.id.label("run_id"), r.c.attempt, r.c.tries, r.c.rank, r.c.lane_id, r.c.agent_id, r.c.runtime_id)
        .where(
            text("r.state = 'queued' AND r.hold <> 'person'"),
            r.c.runtime_id == bindparam("runtime"),
            r.c.not_before.is_(None) | (r.c.not_before <= now()),
            r.c.agent_id.not_in(full),
            select(may_work).where(a.c.id == r.c.agent_id).scalar_subquery(),
        )
        .order_by(r.c.rank, r.c.id)
        .limit(greater(dialect, lesser(dialect, free, bindparam("most", type_=Integer)), literal_column("0")))
        .with_for_update(of=r, skip_locked=True)
    )
    return picked.cte("q")


# The condition of ix_runs_unheard, with the alias that the table has in this query.
_UNHEARD = re.sub(r"\b(ended_at|steer|prompt|evidence)\b", r"u.\1", UNHEARD)


def _queued(dialect: str) -> ClauseElement:
    return _all_of(dialect, _picked(dialect), bindparam("runtime", type_=Text))


def _all_of(
    dialect: str, q: CTE, runtime: ColumnElement[str], in_thread: ColumnElement[str] | None = None
) -> Select[Any]:
    """Everything that a decision needs of each run in `q`, except its sessions. With `in_thread`, the thread of a run
    whose lane may not exist yet."""
    a, l, t = agents.alias("a"), lanes.alias("l"), threads.alias("t")  # noqa: E741
    rt, m, p, ws = runtimes.alias("rt"), machines.alias("m"), projects.alias("p"), workspaces.alias("ws")
    whole, places = journal.alias("k"), workspaces.alias("wt")
    pg, w, j = programs.alias("pg"), wakes.alias("w"), journal.alias("j")
    b, c, earlier, unheard = runs.alias("b"), runs.alias("c"), runs.alias("e"), runs.alias("u")
    of_agent = (b.c.agent_id == q.c.agent_id, text(f"b.{LIVE}"))
    of_runtime = (c.c.runtime_id == runtime, text(f"c.{LIVE}"))
    head = select(func.max(whole.c.seq)).where(whole.c.thread_id == t.c.id).scalar_subquery()
    logged = select(func.max(events.c.seq)).where(events.c.run_id == q.c.run_id).scalar_subquery()
    return (
        select(
            q,
            select(listed(dialect, b.c.agent_place)).where(*of_agent).scalar_subquery().label("agent_taken"),
            select(listed(dialect, c.c.runtime_place)).where(*of_runtime).scalar_subquery().label("runtime_taken"),
            rt.c.provider,
            started(pg, rt, "account").label("account"),
            started(pg, rt, "capabilities").label("capabilities"),
            pg.c.credential,
            rt.c.max_live.label("runtime_max_live"),
            rt.c.machine_id,
            m.c.root.label("machine_root"),
            a.c.model,
            a.c.mode,
            a.c.instructions,
            a.c.tools,
            a.c.policy,
            a.c.home,
            a.c.name.label("agent_name"),
            a.c.settings.label("agent_settings"),
            a.c.max_live.label("agent_max_live"),
            t.c.id.label("thread_id"),
            t.c.kind.label("thread_kind"),
            t.c.title.label("thread_title"),
            t.c.number.label("thread_number"),
            l.c.floor_generation,
            l.c.floor_entry,
            l.c.floor_kept,
            l.c.remade,
            l.c.checked_out,
            l.c.begin_from,
            t.c.project_id,
            t.c.mode_limit.label("thread_mode_limit"),
            p.c.mode_limit.label("project_mode_limit"),
            p.c.machine_id.label("project_machine"),
            p.c.name.label("project_name"),
            p.c.source.label("project_source"),
            p.c.settings.label("project_settings"),
            *(ws.c[name].label(f"workspace_{name}") for name in _WORKSPACE_KEYS),
            now().label("now"),
            func.coalesce(head, 0).label("head"),
            func.coalesce(logged, 0).label("logged"),
            select(sessions.c.id).where(sessions.c.lane_id == q.c.lane_id).exists().label("has_sessions"),
            select(earlier.c.id)
            .where(
                earlier.c.lane_id == q.c.lane_id,
                earlier.c.prompt_sent == literal_column("1"),
                earlier.c.evidence != literal_column(f"'{Evidence.UNSENT}'"),
            )
            .exists()
            .label("told_before"),
            select(unheard.c.id).where(unheard.c.lane_id == q.c.lane_id, text(_UNHEARD)).exists().label("unheard"),
            select(places.c.id).where(places.c.lane_id == q.c.lane_id).exists().label("has_places"),
            *(w.c[name].label(f"wake_{name}") for name in WAKE_KEYS),
            *(j.c[name].label(f"entry_{name}") for name in _ENTRY_KEYS),
        )
        .select_from(
            q.join(rt, rt.c.id == q.c.runtime_id)
            .join(m, m.c.id == rt.c.machine_id)
            .join(a, a.c.id == q.c.agent_id)
            .join(l, l.c.id == q.c.lane_id, isouter=in_thread is not None)
            .join(t, t.c.id == (l.c.thread_id if in_thread is None else in_thread))
            .outerjoin(pg, is_program(pg, q.c.runtime_id, a))
            .outerjoin(p, p.c.id == t.c.project_id)
            .outerjoin(ws, ws.c.id == l.c.workspace_id)
            .outerjoin(w, (w.c.lane_id == q.c.lane_id) & text("w.state = 'pending'"))
            .outerjoin(j, (j.c.thread_id == t.c.id) & (j.c.seq == w.c.entry))
        )
        .order_by(q.c.rank, q.c.run_id, w.c.accepted_at, w.c.id)
    )


queued = Statement(_queued)


def _foreseen(dialect: str) -> ClauseElement:
    """The run that a wake sent now would get: the lane's queued one, or one that does not exist yet. Nothing is locked.
    Without a runtime, there is no row."""
    a, l, r = agents.alias("pa"), lanes.alias("pl"), runs.alias("pr")  # noqa: E741
    lane, thread = bindparam("lane", type_=Text), bindparam("thread", type_=Text)
    picked = (
        select(
            func.coalesce(r.c.id, bindparam("run", type_=Text)).label("run_id"),
            func.coalesce(r.c.attempt, literal_column("0")).label("attempt"),
            func.coalesce(r.c.tries, literal_column("0")).label("tries"),
            func.coalesce(r.c.rank, now()).label("rank"),
            cast(lane, Text).label("lane_id"),
            a.c.id.label("agent_id"),
            func.coalesce(l.c.runtime_id, r.c.runtime_id, a.c.runtime_id, last_seen_runtime(a.c.provider)).label(
                "runtime_id"
            ),
            cast(thread, Text).label("in_thread"),
        )
        .select_from(
            a.outerjoin(l, l.c.id == lane).outerjoin(
                r, (r.c.lane_id == lane) & text(f"pr.{NOT_ENDED} AND pr.state = 'queued'")
            )
        )
        .where(a.c.id == bindparam("agent"))
        .cte("q")
    )
    return _all_of(dialect, picked, picked.c.runtime_id, picked.c.in_thread)


foreseen = Statement(_foreseen)


def _one_at_a_time(_: str) -> ClauseElement:
    name = func.unnest(bindparam("names", type_=ARRAY(Text))).column_valued("name")
    return select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0)))


claim_lock = Statement(_one_at_a_time)
"""PostgreSQL only: an advisory lock for a claim of several runs of a runtime. Two such claims at the same moment would
each insert places that the other one wants, and deadlock."""


carry = Statement(
    lambda _: (
        wakes.update()
        # The entry as it was read: a message that was edited or moved since is read again.
        .where(wakes.c.id == bindparam("wake"), wakes.c.state == PENDING, wakes.c.entry == bindparam("entry"))
        .values(
            state=state_after(WakeState.PENDING, WakeEvent.CLAIM),
            run_id=bindparam("run"),
            scope=bindparam("scope"),
            code=literal_column(f"'{Carried.BY_RUN.code}'"),
            words=bindparam("words"),
        )
    )
)

take = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.id == bindparam("run"), runs.c.state == QUEUED)
        .values(
            state=literal_column("'claimed'"),
            attempt=runs.c.attempt + 1,
            lease_until=bindparam("lease"),
            claimed_by=bindparam("by"),
            agent_place=bindparam("agent_at"),
            runtime_place=bindparam("runtime_at"),
            session_id=bindparam("session"),
            scope_run=bindparam("scope"),
            started_at=func.coalesce(runs.c.started_at, bindparam("now", type_=runs.c.started_at.type)),
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
)


hold = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.id == bindparam("run"), runs.c.state == QUEUED)
        .values(
            hold=bindparam("hold"), hold_code=bindparam("code"), words=bindparam("words"), not_before=bindparam("until")
        )
    )
)

park = Statement(
    lambda _: (
        runs.update().where(runs.c.id == bindparam("run"), runs.c.state == QUEUED).values(not_before=bindparam("until"))
    )
)
