"""Workspaces of the machines: listed with what they hold, and removed where nothing in them is needed."""

from collections.abc import Sequence

from clew.control.actor import Actor
from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.kernel import MachineId, WorkspaceId
from clew.ports.workspaces import Cleaned, Listed
from clew.protocol.work_views import CleanedView, WorkspaceView
from clew.store.engine.database import Transaction
from clew.store.queries.projects import list_projects
from clew.store.queries.sessions import LaneName, lane_names
from clew.store.queries.work import lanes_in_open_threads


async def list_workspaces(services: Services, actor: Actor) -> tuple[WorkspaceView, ...]:
    """The workspaces of all connected machines."""
    found = [each for machine in services.connected() for each in await machine.workspaces()]

    def read(tx: Transaction) -> tuple[WorkspaceView, ...]:
        lanes = lane_names(tx, [each.lane for each in found if each.lane is not None])
        projects = {project.id: project.name for project in list_projects(tx)}
        return tuple(_view(each, lanes.get(each.lane or ""), projects.get(each.project or "")) for each in found)

    return await services.read(read)


async def clean_workspaces(
    services: Services, actor: Actor, asked: Sequence[str] = (), dry: bool = False, with_open: bool = False
) -> tuple[CleanedView, ...]:
    """Remove those that are merged, unchanged and idle, except those of open threads that are not merged; `with_open`
    removes those too. Where some are named, by directory or id, only those are removed, even if they have changes or
    unmerged commits. A `dry` run removes nothing."""
    machines = services.connected()
    named: dict[MachineId, list[WorkspaceId]] = {machine.id: [] for machine in machines} if not asked else {}
    there = [(machine.id, each) for machine in machines for each in await machine.workspaces()] if asked else []
    for name in dict.fromkeys(asked):
        machine_id, workspace = _called(name, there)
        named.setdefault(machine_id, []).append(workspace)
    spared = {} if with_open else await services.read(lanes_in_open_threads)
    cleaned = [
        _cleaned(each) for at, ids in named.items() for each in await services.machine(at).clean(ids, spared, dry)
    ]
    for each in cleaned:
        if each.removed and not dry:
            services.record(actor, f"removed workspace {each.directory}")
    return tuple(cleaned)


def _called(name: str, there: Sequence[tuple[MachineId, Listed]]) -> tuple[MachineId, WorkspaceId]:
    for machine, each in there:
        if each.workspace is not None and name in (each.workspace, each.directory.path, each.lane):
            return machine, WorkspaceId(each.workspace)
    raise BadRequest(
        f"{name} is not a workspace of Clew's, so nothing was removed.", "See them with `clew workspaces`."
    )


def _view(listed: Listed, lane: LaneName | None, project: str | None) -> WorkspaceView:
    return WorkspaceView(
        directory=listed.directory.path,
        state=listed.state.value,
        lane=listed.lane,
        thread=None if lane is None else lane.thread,
        agent=None if lane is None else lane.agent,
        project=project or listed.project,
        branch=listed.branch,
        bytes=listed.disk.total,
        changes=listed.changes,
        unmerged=listed.unmerged,
        used_by=listed.used_by,
        last_used=listed.last_used,
        note=listed.note or _other_branch(listed),
    )


def _other_branch(listed: Listed) -> str:
    if not listed.own_branch or listed.branch == listed.own_branch:
        return ""
    return (
        f"on {listed.branch or 'no branch'} instead of {listed.own_branch}: clew workspaces accept {listed.directory}"
    )


def _cleaned(done: Cleaned) -> CleanedView:
    return CleanedView(done.listed.directory.path, done.removed, done.reason.value, done.words)
