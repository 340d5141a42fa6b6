"""The statements of a claim. The first one reads all that a decision needs of a run but its sessions."""

from collections.abc import Mapping

from sqlalchemy import bindparam, func, literal_column, null, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import Carried, WaitsFor
from clew.store.clock import now
from clew.store.dialect import listed
from clew.store.statement import POSTGRESQL, Statement
from clew.store.tables import (
    LIVE,
    agents,
    journal,
    lanes,
    machines,
    projects,
    runs,
    runtimes,
    sessions,
    threads,
    wakes,
    workspaces,
)

HELD_FOR: Mapping[WaitsFor, float] = {WaitsFor.ANOTHER_TRY: 30.0, WaitsFor.SESSION_FREE: 5.0, WaitsFor.PERSON: 0.0}
"""Seconds until a held run is looked at again; one that waits for a person is looked at when something new comes."""

OWN = "own"
"""The scope of a wake that is to be served in a scope of its run's own."""

WAKE_KEYS = (
    "id",
    "lane_id",
    "reason",
    "origin_kind",
    "origin_agent",
    "origin_depth",
    "accepted_at",
    "entry",
    "freshness",
    "resume_run",
    "priority",
    "not_before",
    "route",
    "began",
)
ENTRY_KEYS = (
    "seq",
    "author_kind",
    "author_name",
    "agent_id",
    "provider",
    "account",
    "body",
    "size",
    "pair",
    "run_id",
    "at",
)


def _queued(dialect: str) -> ClauseElement:
    of_agent, of_runtime = runs.alias("of_agent"), runs.alias("of_runtime")
    agents_live = (of_agent.c.agent_id == runs.c.agent_id, text(f"of_agent.{LIVE}"))
    runtimes_live = (of_runtime.c.runtime_id == bindparam("runtime"), text(f"of_runtime.{LIVE}"))
    due = runs.c.not_before.is_(None) | (runs.c.not_before <= now())
    picked = (
        select(
            runs.c.id.label("run_id"),
            runs.c.attempt,
            runs.c.rank,
            runs.c.lane_id,
            runs.c.agent_id,
            runs.c.runtime_id,
            runtimes.c.provider,
            runtimes.c.account,
            runtimes.c.capabilities,
            runtimes.c.max_live.label("runtime_max_live"),
            runtimes.c.machine_id,
            machines.c.root.label("machine_root"),
            agents.c.model,
            agents.c.mode,
            agents.c.instructions,
            agents.c.tools,
            agents.c.policy,
            agents.c.home,
            agents.c.max_live.label("agent_max_live"),
            lanes.c.thread_id,
            lanes.c.floor_generation,
            lanes.c.floor_entry,
            lanes.c.floor_kept,
            threads.c.project_id,
            threads.c.mode_limit.label("thread_mode_limit"),
            projects.c.mode_limit.label("project_mode_limit"),
            projects.c.machine_id.label("project_machine"),
            *(
                workspaces.c[name].label(f"workspace_{name}")
                for name in ("id", "kind", "directory", "project_id", "machine_id", "branch")
            ),
            select(listed(dialect, of_agent.c.agent_place)).where(*agents_live).scalar_subquery().label("agent_taken"),
            select(listed(dialect, of_runtime.c.runtime_place))
            .where(*runtimes_live)
            .scalar_subquery()
            .label("runtime_taken"),
            now().label("now"),
        )
        .select_from(
            runs.join(runtimes, runtimes.c.id == runs.c.runtime_id)
            .join(machines, machines.c.id == runtimes.c.machine_id)
            .join(agents, agents.c.id == runs.c.agent_id)
            .join(lanes, lanes.c.id == runs.c.lane_id)
            .join(threads, threads.c.id == lanes.c.thread_id)
            .outerjoin(projects, projects.c.id == threads.c.project_id)
            .outerjoin(workspaces, workspaces.c.id == lanes.c.workspace_id)
        )
        .where(
            text("runs.state = 'queued' AND runs.hold <> 'person'"),
            runs.c.runtime_id == bindparam("runtime"),
            due,
            agents.c.state == literal_column("'active'"),
            # An agent that is full is passed over here, so that its queue does not stand before everybody else's.
            select(func.count()).select_from(of_agent).where(*agents_live).scalar_subquery() < agents.c.max_live,
            select(func.count()).select_from(of_runtime).where(*runtimes_live).scalar_subquery() < runtimes.c.max_live,
        )
        .order_by(runs.c.rank, runs.c.id)
        .limit(bindparam("most"))
    )
    if dialect == POSTGRESQL:
        picked = picked.with_for_update(of=runs, skip_locked=True)
    run = picked.cte("picked")
    whole, places = journal.alias("whole"), workspaces.alias("places")
    head = select(func.max(whole.c.seq)).where(whole.c.thread_id == run.c.thread_id).scalar_subquery()
    has_sessions = select(sessions.c.id).where(sessions.c.lane_id == run.c.lane_id).exists()
    has_places = select(places.c.id).where(places.c.lane_id == run.c.lane_id).exists()
    return (
        select(
            run,
            func.coalesce(head, 0).label("head"),
            has_sessions.label("has_sessions"),
            has_places.label("has_places"),
            *(wakes.c[name].label(f"wake_{name}") for name in (*WAKE_KEYS, "scope")),
            *(journal.c[name].label(f"entry_{name}") for name in ENTRY_KEYS),
        )
        .select_from(
            run.outerjoin(wakes, (wakes.c.lane_id == run.c.lane_id) & text("wakes.state = 'pending'")).outerjoin(
                journal, (journal.c.thread_id == run.c.thread_id) & (journal.c.seq == wakes.c.entry)
            )
        )
        .order_by(run.c.rank, run.c.run_id, wakes.c.accepted_at, wakes.c.id)
    )


queued = Statement(_queued)

carry = Statement(
    lambda _: (
        wakes.update()
        .where(wakes.c.id == bindparam("wake"), wakes.c.state == literal_column("'pending'"))
        .values(
            state=literal_column("'claimed'"),
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
        .where(runs.c.id == bindparam("run"), runs.c.state == literal_column("'queued'"))
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
        .where(runs.c.id == bindparam("run"), runs.c.state == literal_column("'queued'"))
        .values(
            hold=bindparam("hold"), hold_code=bindparam("code"), words=bindparam("words"), not_before=bindparam("until")
        )
    )
)

park = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.id == bindparam("run"), runs.c.state == literal_column("'queued'"))
        .values(not_before=bindparam("until"))
    )
)
