"""Workspaces: the places that a lane remembers, and the workspace it would get on a machine."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count

from sqlalchemy import Connection, bindparam, func, null, select

from clew.kernel import (
    AgentId,
    Directory,
    LaneId,
    MachineId,
    PlaceFacts,
    ProjectId,
    Workspace,
    WorkspaceId,
    WorkspaceKind,
)
from clew.store.engine.dialect import insert, now, storable
from clew.store.engine.statement import Row, Statement
from clew.store.operations.ids import derived_id
from clew.store.operations.rows import read_workspace, unreadable
from clew.store.operations.workspace_names import branch_name, directory_name, numbered, thread_name
from clew.store.schema.tables import agents, lanes, runs, workspaces

EARLIER = 10
"""How many of a lane's earlier workspaces are read: it has one for each machine and project it worked in."""

FROM_BASE = "base"
"""What a person says instead of a branch: a new branch begins from the project's base."""

PLAIN = "plain"
"""The kind, in a project's settings, of a directory without git."""

_earlier = Statement(
    lambda _: (
        select(workspaces)
        .where(workspaces.c.lane_id == bindparam("lane"))
        .order_by(workspaces.c.created_at.desc())
        .limit(EARLIER)
    )
)
_last_run = select(func.max(runs.c.queued_at)).where(runs.c.lane_id == lanes.c.id).scalar_subquery()

in_thread = Statement(
    lambda _: (
        select(*workspaces.c, agents.c.name.label("agent_name"), _last_run.label("worked_at"))
        .select_from(
            workspaces.join(lanes, lanes.c.id == workspaces.c.lane_id).join(agents, agents.c.id == lanes.c.agent_id)
        )
        .where(lanes.c.thread_id == bindparam("thread"))
        .order_by(workspaces.c.created_at, workspaces.c.id)
    )
)
"""All workspaces that the lanes of a thread have had."""

at_directory = Statement(
    lambda _: select(workspaces.c.lane_id).where(
        workspaces.c.machine_id == bindparam("machine"), workspaces.c.directory == bindparam("directory")
    )
)
_set_branch = Statement(
    lambda _: workspaces.update().where(workspaces.c.id == bindparam("workspace")).values(branch=bindparam("branch"))
)
_remember = Statement(
    lambda _: lanes.update().where(lanes.c.id == bindparam("lane")).values(workspace_id=bindparam("workspace"))
)


_check_out = Statement(
    lambda _: lanes.update().where(lanes.c.id == bindparam("lane")).values(checked_out=bindparam("by"))
)
_begin = Statement(
    lambda _: lanes.update().where(lanes.c.id == bindparam("lane")).values(begin_from=bindparam("branch"))
)
_keep_remade = Statement(
    lambda _: lanes.update().where(lanes.c.id == bindparam("lane")).values(remade=bindparam("words"))
)
# The condition avoids a write when there is nothing to clear.
_clear_remade = Statement(
    lambda _: lanes.update().where(lanes.c.id == bindparam("lane"), lanes.c.remade.is_not(None)).values(remade=null())
)


def place_facts(connection: Connection, row: Row) -> PlaceFacts:
    """The facts about the place of a run's lane. Earlier places are read only if the last one does not fit."""
    machine = MachineId(row["machine_id"])
    project = None if row["project_id"] is None else ProjectId(row["project_id"])
    remembered = _still(row, read_workspace(row, "workspace_"))
    home = _home(row)
    facts = PlaceFacts(
        agent_home=home,
        project=project,
        remembered=remembered,
        remade=row["remade"],
        checked_out=_checked_out(row, remembered),
    )
    serves = remembered is not None and remembered.reachable_from(machine) and remembered.project == project
    if serves or (project is None and not row["has_places"]):
        return facts
    prepared, obstacle = _prepared(connection, row, project, machine)
    return replace(facts, earlier=_earlier_places(connection, row), prepared=prepared, obstacle=obstacle)


GOES_ON_AFTER = "It goes on after"
"""Before the command that ends a hold and starts its run: no other one is needed."""


def _checked_out(row: Row, place: Workspace | None) -> str | None:
    if row["checked_out"] is None or place is None:
        return None
    thread = thread_name(row["thread_kind"], row["thread_number"], row["thread_title"], row["agent_name"])
    return (
        f"{row['checked_out']} works in {place.directory} by hand. {GOES_ON_AFTER} "
        f"`clew checkout {thread} --agent {row['agent_name']} --done`."
    )


def remember_place(connection: Connection, lane: LaneId, workspace: Workspace) -> None:
    """The lane works there from now on. Its earlier places are kept."""
    if workspace.kind is WorkspaceKind.AGENT_HOME:
        return
    made = insert(connection, workspaces).values(
        id=workspace.id,
        lane_id=lane,
        kind=workspace.kind.value,
        project_id=workspace.project,
        machine_id=workspace.machine,
        directory=workspace.directory.path,
        branch=workspace.branch,
        begins=workspace.begins,
        begun_by=workspace.begun_by,
        created_at=now(),
    )
    connection.execute(made.on_conflict_do_nothing(index_elements=[workspaces.c.id]))
    _remember.count(connection, lane=lane, workspace=workspace.id)


def check_out(connection: Connection, lane: LaneId, by: str | None) -> None:
    """A person works in the lane's worktree, or with None no longer does."""
    _check_out.count(connection, lane=lane, by=None if by is None else storable(by))


def begin_from(connection: Connection, lane: LaneId, branch: str) -> None:
    """The lane's first worktree begins from that branch, or from FROM_BASE."""
    _begin.count(connection, lane=lane, branch=storable(branch))


def set_branch(connection: Connection, workspace: WorkspaceId, branch: str) -> None:
    """The workspace is on that branch from now on."""
    _set_branch.count(connection, workspace=workspace, branch=storable(branch))


def keep_remade(connection: Connection, lane: LaneId, words: str) -> None:
    """The lane's directory was made again: its agent must be told so, in these words."""
    _keep_remade.count(connection, lane=lane, words=storable(words))


def clear_remade(connection: Connection, lane: LaneId) -> None:
    """The lane's agent took a prompt that said so."""
    _clear_remade.count(connection, lane=lane)


def _earlier_places(connection: Connection, row: Row) -> tuple[Workspace, ...]:
    found = (_still(row, read_workspace(each)) for each in _earlier.rows(connection, lane=row["lane_id"]))
    return tuple(place for place in found if place is not None)


def _still(row: Row, place: Workspace | None) -> Workspace | None:
    """The place, unless the project's source has changed since: a plain project has one directory, its own."""
    if place is None or place.project is None or place.project != row["project_id"]:
        return place
    if not _is_plain(row["project_id"], row["project_settings"]):
        return None if place.kind is WorkspaceKind.DIRECTORY else place
    return place if place.kind is WorkspaceKind.DIRECTORY and place.directory.path == row["project_source"] else None


@lru_cache(maxsize=512)
def _is_plain(project: str, settings: str) -> bool:
    try:
        return bool(json.loads(settings).get("kind") == PLAIN)
    except (ValueError, AttributeError, RecursionError) as fault:
        raise unreadable("projects", project, "settings", fault) from fault


def _prepared(
    connection: Connection, row: Row, project: ProjectId | None, machine: MachineId
) -> tuple[Workspace | None, str | None]:
    """The worktree that the lane would get on this machine; or what prevents one. A project without git is used where
    it is."""
    if project is None:
        return None, None
    if row["project_machine"] not in (None, machine):
        return None, f"its source is a directory on machine {row['project_machine']}."
    lane = LaneId(row["lane_id"])
    if _is_plain(project, row["project_settings"]):
        return _in_place(lane, project, machine, row["project_source"]), None
    if row["machine_root"] is None:
        return None, f"machine {machine} has no directory for workspaces."
    name = WorkspaceId(derived_id("ws", lane, project, machine))
    there = in_thread.rows(connection, thread=row["thread_id"])
    kept = next((read_workspace(each) for each in there if each["id"] == name), None)
    return kept or _new_worktree(connection, row, name, project, machine, there), None


def _new_worktree(
    connection: Connection, row: Row, name: WorkspaceId, project: ProjectId, machine: MachineId, there: Sequence[Row]
) -> Workspace:
    """A worktree with names for people. A directory that another lane has had gets a number: the agent of that lane
    was removed, and a new one has its name."""
    lane = LaneId(row["lane_id"])
    called = (row["thread_kind"], row["thread_number"], row["thread_title"], row["agent_name"])
    first = all(each["lane_id"] == lane or each["project_id"] != project for each in there)
    try:
        below = Directory(f"{row['machine_root']}/{row['project_name']}")
    except ValueError as fault:
        raise unreadable("machines", machine, "root", fault) from fault
    for number in count(1):
        path = f"{below.path}/{numbered(directory_name(*called), number)}"
        if all(each["lane_id"] == lane for each in at_directory.rows(connection, machine=machine, directory=path)):
            break
    branch = branch_name(*called, first=first)
    begins, begun_by = _begins(row, project, machine, there)
    return Workspace(name, WorkspaceKind.WORKTREE, Directory(path), project, machine, branch, begins, begun_by)


def _begins(row: Row, project: ProjectId, machine: MachineId, there: Sequence[Row]) -> tuple[str | None, str | None]:
    """The branch that a new one begins from, and whose it is: the one that a person chose, or else the branch of the
    lane that worked last in this thread. None is the project's base."""
    if row["begin_from"] == FROM_BASE:
        return None, None
    others = [
        each
        for each in there
        if each["lane_id"] != row["lane_id"]
        and (each["project_id"], each["machine_id"]) == (project, machine)
        and each["branch"] is not None
    ]
    if row["begin_from"] is not None:
        owner = next((each["agent_name"] for each in others if each["branch"] == row["begin_from"]), None)
        return row["begin_from"], owner
    newest = max(others, key=lambda each: (each["worked_at"] or 0.0, each["id"]), default=None)
    return (None, None) if newest is None else (newest["branch"], newest["agent_name"])


def _in_place(lane: LaneId, project: ProjectId, machine: MachineId, source: str) -> Workspace:
    try:
        directory = Directory(source)
    except ValueError as fault:
        raise unreadable("projects", project, "source", fault) from fault
    name = WorkspaceId(derived_id("ws", lane, project, machine, source))
    return Workspace(name, WorkspaceKind.DIRECTORY, directory, project, machine)


def _home(row: Row) -> Workspace:
    try:
        return _own_home(AgentId(row["agent_id"]), row["home"])
    except ValueError as fault:
        raise unreadable("agents", row["agent_id"], "home", fault) from fault


@lru_cache(maxsize=512)
def _own_home(agent: AgentId, directory: str) -> Workspace:
    return Workspace(WorkspaceId(derived_id("ws", "home", agent)), WorkspaceKind.AGENT_HOME, Directory(directory))
