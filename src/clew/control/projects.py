"""Projects: a repository of the machine, an address that it clones, or a plain directory that is used in place."""

import json
from collections.abc import Sequence
from typing import cast

from sqlalchemy import Connection

from clew.control.agents import check_mode
from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.control.validation import check_name
from clew.ports.workspaces import SourceFound, SourceKind
from clew.protocol.requests import NewProject, ProjectChange
from clew.protocol.views import Mode, ProjectView
from clew.store.engine.statement import Row
from clew.store.operations import projects as store
from clew.store.operations.texts import keepable
from clew.store.queries.agents import list_projects as read_projects
from clew.store.queries.names import project_named

_MOST_COMMANDS = 100
_LONGEST = 10_000


async def list_projects(services: Services) -> tuple[ProjectView, ...]:
    return await services.read(lambda connection: tuple(_show(row) for row in read_projects(connection)))


async def show_project(services: Services, name: str) -> ProjectView:
    return await services.read(lambda connection: _show(project_named(connection, name)))


async def add_project(services: Services, asked: NewProject) -> ProjectView:
    name, limit = check_name(asked.name, "a project"), _limit(asked.mode_limit)
    setup = _setup(asked.setup)
    found = await services.here().inspect(asked.source, asked.plain, asked.base or None)
    settings = _settings(found.kind, _base(asked.base, found), setup)

    def do(connection: Connection) -> ProjectView:
        store.add_project(connection, name, keepable(found.source), _machine(services, found), limit, settings)
        return _show(project_named(connection, name))

    return await services.write(do)


async def change_project(services: Services, name: str, change: ProjectChange) -> ProjectView:
    """Another source is where the project has gone: lanes that waited for it are looked at again."""
    kept = _show(await services.read(lambda connection: project_named(connection, name)))
    kind, base = SourceKind(kept.kind), kept.base if change.base is None else change.base or None
    values: dict[str, object] = {}
    if change.source is not None:
        found = await services.here().inspect(change.source, kind is SourceKind.PLAIN, base)
        kind, base = found.kind, _base(base, found)
        values |= {"source": keepable(found.source), "machine_id": _machine(services, found)}
    elif base is not None and kind is SourceKind.PLAIN:
        raise BadRequest("A plain directory has no branches.", "Leave the base out.")
    elif change.base:
        await services.here().inspect(kept.source, False, base)
    if change.mode_limit is not None:
        values["mode_limit"] = _limit(change.mode_limit)
    setup = kept.setup if change.setup is None else _setup(change.setup)
    values["settings"] = _settings(kind, base, setup)

    def do(connection: Connection) -> ProjectView:
        store.change_project(connection, project_named(connection, name), values)
        return _show(project_named(connection, name))

    return await services.write(do)


def _machine(services: Services, found: SourceFound) -> str | None:
    """A directory is its machine's; an address is everybody's."""
    return None if found.kind is SourceKind.ADDRESS else services.here().id


def _base(base: str | None, found: SourceFound) -> str | None:
    if base and found.kind is SourceKind.PLAIN:
        raise BadRequest("A plain directory has no branches.", "Leave the base out.")
    return base or None


def _setup(commands: Sequence[str]) -> tuple[str, ...]:
    if len(commands) > _MOST_COMMANDS or any(not line.strip() or len(line) > _LONGEST for line in commands):
        raise BadRequest("These commands cannot be kept.", f"Give up to {_MOST_COMMANDS}, none of them empty.")
    return tuple(commands)


def _limit(mode: str | None) -> str | None:
    return None if mode is None else check_mode(mode)


def _settings(kind: SourceKind, base: str | None, setup: Sequence[str]) -> str:
    return json.dumps({"kind": kind.value, "base": base, "setup": list(setup)})


def _show(row: Row) -> ProjectView:
    try:
        kept = json.loads(row["settings"])
    except ValueError:
        kept = {}
    return ProjectView(
        id=row["id"],
        name=row["name"],
        source=row["source"],
        kind=kept.get("kind", SourceKind.REPOSITORY.value),
        base=kept.get("base"),
        setup=tuple(kept.get("setup", ())),
        mode_limit=cast(Mode | None, row["mode_limit"]),
        machine=row["machine_id"],
    )
