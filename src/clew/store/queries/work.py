"""The worktrees of a thread's lanes, for the use cases that show, commit and merge what is in them."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, select, text

from clew.kernel import AgentId, LaneId, MachineId, WorkspaceId
from clew.protocol.views import WorkView
from clew.store.engine.statement import Statement
from clew.store.operations.work import read_work
from clew.store.schema.tables import LIVE, agents, lanes, projects, runs, workspaces


@dataclass(frozen=True, slots=True)
class LaneWorktree:
    """A lane with its workspace. `worked_at` is when its newest run was queued; `live`: a run of it is live."""

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
    worked_at: float


_last = select(func.max(runs.c.queued_at)).where(runs.c.lane_id == lanes.c.id).scalar_subquery()
_live = select(runs.c.id).where(runs.c.lane_id == lanes.c.id, text(f"runs.{LIVE}")).exists()

of_thread = Statement(
    lambda _: (
        select(
            lanes.c.id.label("lane_id"),
            lanes.c.agent_id,
            agents.c.name.label("agent_name"),
            projects.c.name.label("project_name"),
            *(workspaces.c[name] for name in ("id", "kind", "machine_id", "directory", "branch", "work")),
            func.coalesce(_last, 0.0).label("worked_at"),
            _live.label("live"),
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
            worked_at=row["worked_at"],
        )
        for row in of_thread.rows(connection, thread=thread)
    )
