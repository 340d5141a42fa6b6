"""Workspaces: the places that a lane remembers, and the workspace it would get on a machine."""

import json
from functools import lru_cache

from sqlalchemy import Connection, bindparam, null, select

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
from clew.store.schema.tables import lanes, workspaces

EARLIER = 10
"""How many of a lane's earlier workspaces are read: it has one for each machine and project it worked in."""

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
_remember = Statement(
    lambda _: lanes.update().where(lanes.c.id == bindparam("lane")).values(workspace_id=bindparam("workspace"))
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
    facts = PlaceFacts(agent_home=home, project=project, remembered=remembered, remade=row["remade"])
    serves = remembered is not None and remembered.reachable_from(machine) and remembered.project == project
    if serves or (project is None and not row["has_places"]):
        return facts
    prepared, obstacle = _prepared(row, project, machine)
    return PlaceFacts(
        agent_home=home,
        project=project,
        remembered=remembered,
        earlier=_earlier_places(connection, row),
        prepared=prepared,
        obstacle=obstacle,
        remade=row["remade"],
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
        created_at=now(),
    )
    connection.execute(made.on_conflict_do_nothing(index_elements=[workspaces.c.id]))
    _remember.count(connection, lane=lane, workspace=workspace.id)


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


def _prepared(row: Row, project: ProjectId | None, machine: MachineId) -> tuple[Workspace | None, str | None]:
    """The worktree that the lane would get on this machine, derived from its id; or what prevents one. A project
    without git is used where it is."""
    if project is None:
        return None, None
    if row["project_machine"] not in (None, machine):
        return None, f"its source is a directory on machine {row['project_machine']}."
    lane = LaneId(row["lane_id"])
    if _is_plain(project, row["project_settings"]):
        return _in_place(lane, project, machine, row["project_source"]), None
    if row["machine_root"] is None:
        return None, f"machine {machine} has no directory for workspaces."
    try:
        directory = Directory(f"{row['machine_root']}/{project}/{lane}")
    except ValueError as fault:
        raise unreadable("machines", machine, "root", fault) from fault
    name = WorkspaceId(derived_id("ws", lane, project, machine))
    return Workspace(name, WorkspaceKind.WORKTREE, directory, project, machine, f"clew/{lane}"), None


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
