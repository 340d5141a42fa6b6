"""Projects: a repository of a machine, an address that git clones, or a plain directory that is used in place."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from clew.control.actor import Actor
from clew.control.faults import BadRequest, NotNow
from clew.control.services import Services
from clew.control.validation import check_mode, check_name
from clew.kernel import MachineId
from clew.ports.fault import Fault
from clew.ports.workspaces import SourceFound, SourceKind
from clew.protocol.machine import Machine
from clew.protocol.requests import NewProject, ProjectChange
from clew.protocol.views import ProjectView
from clew.store.engine.database import Transaction
from clew.store.engine.dialect import storable
from clew.store.operations import projects as store
from clew.store.operations.policies import policy_in
from clew.store.operations.updates import KEPT, ProjectUpdate
from clew.store.queries import projects as queries
from clew.store.queries.names import project_named
from clew.store.queries.threads import SOME, refs_in_project

_MOST_COMMANDS = 100
_LONGEST = 10_000


async def list_projects(services: Services, actor: Actor) -> tuple[ProjectView, ...]:
    return await services.read(queries.list_projects)


async def show_project(services: Services, actor: Actor, name: str) -> ProjectView:
    return await services.read(lambda tx: project_named(tx, name))


async def add_project(services: Services, actor: Actor, asked: NewProject) -> ProjectView:
    name, limit = check_name(asked.name, "a project"), _limit(asked.mode_limit)
    setup = _setup(asked.setup)
    machine = services.chosen_machine(asked.machine)
    found = await machine.inspect(asked.source, asked.plain, asked.base or None)
    settings = queries.project_settings(found.kind, _base(asked.base, found), setup)

    def write(tx: Transaction) -> ProjectView:
        store.add_project(tx, name, storable(found.source), _owner(machine, found), limit, settings)
        return project_named(tx, name)

    added = await services.write(write)
    services.record(actor, f"added project {name} from {added.source}")
    return added


async def change_project(services: Services, actor: Actor, name: str, change: ProjectChange) -> ProjectView:
    """Another source is where the project has moved to: runs that were held because of the old one are tried again."""
    kept = await services.read(lambda tx: project_named(tx, name))
    kind, base = SourceKind(kept.kind), kept.base if change.base is None else change.base or None
    update = ProjectUpdate(mode_limit=KEPT if change.mode_limit is None else _limit(change.mode_limit))
    if change.source is not None:
        machine = services.remaining_machine(kept.machine)
        found = await machine.inspect(change.source, kind is SourceKind.PLAIN, base)
        kind, base = found.kind, _base(base, found)
        update = replace(update, source=storable(found.source), machine=_owner(machine, found))
    elif base is not None and kind is SourceKind.PLAIN:
        raise BadRequest("A plain directory has no branches.", "Leave the base out.")
    elif change.base:
        await services.remaining_machine(kept.machine).inspect(kept.source, False, base)
    setup = kept.setup if change.setup is None else _setup(change.setup)

    def write(tx: Transaction) -> ProjectView:
        project = project_named(tx, name)
        policy = policy_in(queries.read_settings(tx, project.id))
        settings = queries.project_settings(kind, base, setup, policy)
        store.change_project(tx, project.id, replace(update, settings=settings))
        return project_named(tx, name)

    changed = await services.write(write)
    services.record(actor, f"changed project {name}")
    return changed


async def look_for_projects(services: Services, actor: Actor, machine: MachineId, there: set[str]) -> tuple[str, ...]:
    """Have the runs decided again that are held because the directory of their project was gone, where it is back.
    Returns the names of those projects. `there` is kept from call to call: a directory that stays is no reason to
    decide a second time."""
    found = []
    for project in await services.read(queries.list_moved):
        if project.machine != machine:
            continue
        try:
            plain = project.kind == SourceKind.PLAIN
            await services.machine(machine).inspect(project.source, plain, None if plain else project.base)
        except Fault:
            there.discard(project.id)
            continue
        if project.id not in there:
            there.add(project.id)
            found.append(project)
    for project in found:
        await services.write(partial(_decide_again, project.id))
        services.record(actor, f"found the directory of project {project.name} again")
    return tuple(project.name for project in found)


def _decide_again(project: str, tx: Transaction) -> None:
    store.change_project(tx, project, ProjectUpdate())


async def remove_project(services: Services, actor: Actor, name: str) -> ProjectView:
    """Remove a project that no thread has or had. Its directory is not touched."""

    def write(tx: Transaction) -> ProjectView:
        project = project_named(tx, name)
        used = refs_in_project(tx, project.id)
        if used:
            named = ", ".join(used) + (" and others" if len(used) == SOME else "")
            raise NotNow(
                f"{name} is the project of {named}, and stays: their history names it.",
                f"Use `clew project edit {name}` to change where it is, or leave it.",
            )
        store.remove_project(tx, project.id)
        return project

    removed = await services.write(write)
    services.record(actor, f"removed project {name}")
    return removed


def _owner(machine: Machine, found: SourceFound) -> str | None:
    """A directory belongs to its machine; an address can be cloned by any machine."""
    return None if found.kind is SourceKind.ADDRESS else machine.id


def _base(base: str | None, found: SourceFound) -> str | None:
    if base and found.kind is SourceKind.PLAIN:
        raise BadRequest("A plain directory has no branches.", "Leave the base out.")
    return base or None


def _setup(commands: Sequence[str]) -> tuple[str, ...]:
    if len(commands) > _MOST_COMMANDS:
        words = f"There are {len(commands)} setup commands; the limit is {_MOST_COMMANDS}."
        raise BadRequest(words, "Put them into a script of the project, and run that.")
    for line in commands:
        if not line.strip():
            raise BadRequest(f"A setup command is empty ({line!r}).", "Leave it out.")
        if len(line) > _LONGEST:
            words = f"A setup command has {len(line):,} characters; the limit is {_LONGEST:,}."
            raise BadRequest(words, "Put it into a script of the project, and run that.")
    return tuple(commands)


def _limit(mode: str | None) -> str | None:
    return None if mode is None else check_mode(mode)
