"""The worktrees of a thread's lanes, for the use cases that show, commit and merge what is in them."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, exists, func, select, text

from clew.kernel import AgentId, LaneId, MachineId, RunState, WorkspaceId
from clew.protocol.work_views import WorkView
from clew.store.engine.dialect import storable
from clew.store.engine.statement import Statement
from clew.store.operations.work import read_work
from clew.store.queries.refs import THREAD_NAME, thread_ref, with_owner
from clew.store.schema.tables import LIVE, NOT_ENDED, agents, lanes, projects, runs, threads, workspaces


@dataclass(frozen=True, slots=True)
class LaneWorktree:
    """A lane with its workspace. `worked_at` is when its newest run was queued; `live`: a run of it is live;
    `asks`: one waits for an answer."""

    lane: LaneId
    agent: AgentId
    agent_name: str
    workspace: WorkspaceId
    kind: str
    machine: MachineId | None
    project: str | None
    directory: str
    branch: str | None
    work: WorkView | None
    live: bool
    asks: bool
    worked_at: float
    checked_out: str | None


_last = select(func.max(runs.c.queued_at)).where(runs.c.lane_id == lanes.c.id).scalar_subquery()
_live = select(runs.c.id).where(runs.c.lane_id == lanes.c.id, text(f"runs.{LIVE}")).exists()
_asks = select(runs.c.id).where(runs.c.lane_id == lanes.c.id, runs.c.state == RunState.WAITING.value).exists()

of_thread = Statement(
    lambda _: (
        select(
            lanes.c.id.label("lane_id"),
            lanes.c.agent_id,
            lanes.c.checked_out,
            agents.c.name.label("agent_name"),
            projects.c.name.label("project_name"),
            *(workspaces.c[name] for name in ("id", "kind", "machine_id", "directory", "branch", "work")),
            func.coalesce(_last, 0.0).label("worked_at"),
            _live.label("live"),
            _asks.label("asks"),
        )
        .select_from(
            lanes.join(agents, agents.c.id == lanes.c.agent_id)
            .join(workspaces, workspaces.c.id == lanes.c.workspace_id)
            .outerjoin(projects, projects.c.id == workspaces.c.project_id)
        )
        .where(lanes.c.thread_id == bindparam("thread"))
        .order_by(agents.c.name)
    )
)


at_directory = Statement(
    lambda _: (
        select(lanes.c.thread_id, agents.c.name.label("agent_name"))
        .select_from(
            workspaces.join(lanes, lanes.c.id == workspaces.c.lane_id).join(agents, agents.c.id == lanes.c.agent_id)
        )
        .where(
            workspaces.c.machine_id == bindparam("machine"),
            workspaces.c.directory == bindparam("directory"),
            lanes.c.workspace_id == workspaces.c.id,
        )
        .limit(1)
    )
)


def thread_at(connection: Connection, machine: MachineId, directory: str) -> tuple[str, str] | None:
    """The thread and the agent that work in a directory of that machine."""
    row = at_directory.first(connection, machine=machine, directory=storable(directory))
    return None if row is None else (row["thread_id"], row["agent_name"])


def worktrees_of(connection: Connection, thread: str) -> tuple[LaneWorktree, ...]:
    return tuple(
        LaneWorktree(
            lane=LaneId(row["lane_id"]),
            agent=AgentId(row["agent_id"]),
            agent_name=row["agent_name"],
            workspace=WorkspaceId(row["id"]),
            kind=row["kind"],
            machine=None if row["machine_id"] is None else MachineId(row["machine_id"]),
            project=row["project_name"],
            directory=row["directory"],
            branch=row["branch"],
            work=read_work(row["work"]),
            live=bool(row["live"]),
            asks=bool(row["asks"]),
            worked_at=row["worked_at"],
            checked_out=row["checked_out"],
        )
        for row in of_thread.rows(connection, thread=thread)
    )


_waits = exists().where(runs.c.lane_id == lanes.c.id, text(f"runs.{NOT_ENDED}"))

in_open_threads = Statement(
    lambda _: (
        select(lanes.c.id.label("lane_id"), lanes.c.thread_id, workspaces.c.work, _waits.label("waits"), *THREAD_NAME)
        .select_from(
            with_owner(
                lanes.join(threads, threads.c.id == lanes.c.thread_id).join(
                    workspaces, workspaces.c.id == lanes.c.workspace_id
                )
            )
        )
        .where(threads.c.state == "open")
    )
)


def lanes_in_open_threads(connection: Connection) -> dict[LaneId, str]:
    """The lanes with a workspace whose thread is open, and whose work is not merged or goes on, with that in words."""
    found = {}
    for row in in_open_threads.rows(connection):
        work = read_work(row["work"])
        if row["waits"]:
            found[LaneId(row["lane_id"])] = f"{thread_ref(row)} has a run that waits or works."
        elif work is None or work.merged_into is None:
            found[LaneId(row["lane_id"])] = f"{thread_ref(row)} is open."
    return found
