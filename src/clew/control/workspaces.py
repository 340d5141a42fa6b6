"""Workspaces of the machine: listed with what they hold, and cleaned of what nobody needs."""

from collections.abc import Sequence

from sqlalchemy import Connection

from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.kernel import WorkspaceId
from clew.ports.workspaces import Cleaned, Listed
from clew.protocol.views import CleanedView, WorkspaceView
from clew.store.engine.statement import Row
from clew.store.queries.agents import list_projects
from clew.store.queries.sessions import names_of_lanes
from clew.store.queries.threads import thread_ref


async def list_workspaces(services: Services) -> tuple[WorkspaceView, ...]:
    found = await services.here().workspaces()

    def look(connection: Connection) -> tuple[WorkspaceView, ...]:
        mine = [each.lane for each in found if each.lane is not None]
        lanes = {row["lane_id"]: row for row in names_of_lanes.rows(connection, lanes=mine)} if mine else {}
        projects = {row["id"]: row["name"] for row in list_projects(connection)}
        return tuple(_show(each, lanes.get(each.lane or ""), projects.get(each.project or "")) for each in found)

    return await services.read(look)


async def clean_workspaces(services: Services, asked: Sequence[str] = ()) -> tuple[CleanedView, ...]:
    """What is merged, unchanged and idle goes. Where some are named, by their directory or id, only those go, and
    though they are dirty or unmerged."""
    machine = services.here()
    ids = [_called(each, await machine.workspaces()) for each in dict.fromkeys(asked)]
    return tuple(_cleaned(each) for each in await machine.clean(ids))


def _called(name: str, there: Sequence[Listed]) -> WorkspaceId:
    for each in there:
        if each.workspace is not None and name in (each.workspace, each.directory.path, each.lane):
            return WorkspaceId(each.workspace)
    raise BadRequest(f"{name} is no workspace of Clew's, so nothing was removed.", "See them with `clew workspaces`.")


def _show(listed: Listed, lane: Row | None, project: str | None) -> WorkspaceView:
    return WorkspaceView(
        directory=listed.directory.path,
        state=listed.state.value,
        lane=listed.lane,
        thread=None if lane is None else thread_ref(lane),
        agent=None if lane is None else lane["agent_name"],
        project=project or listed.project,
        branch=listed.branch,
        bytes=listed.disk.total,
        changes=listed.changes,
        unmerged=listed.unmerged,
        used_by=listed.used_by,
        last_used=listed.last_used,
        note=listed.note,
    )


def _cleaned(done: Cleaned) -> CleanedView:
    return CleanedView(done.listed.directory.path, done.removed, done.reason.value, done.words)
