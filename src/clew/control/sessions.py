"""Sessions: those that Clew keeps, and those that the agents of this machine have."""

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection

from clew.control.faults import BadRequest, NoSuchSession, NotNow
from clew.control.services import Services
from clew.control.validation import how_many
from clew.kernel import (
    AgentId,
    Directory,
    LaneId,
    MachineId,
    RuntimeId,
    ThreadId,
    Workspace,
    WorkspaceId,
    WorkspaceKind,
    resumability,
)
from clew.ports.fault import Fault
from clew.ports.provider import FoundSession
from clew.protocol.reports import NewSession
from clew.protocol.requests import Adopt
from clew.protocol.views import FoundSessionView, SessionView
from clew.store.engine.statement import Row
from clew.store.operations.adoption import Adoption
from clew.store.operations.adoption import adopt_session as adopt
from clew.store.operations.ids import derived_id
from clew.store.operations.rows import read_session
from clew.store.operations.runtimes import as_started
from clew.store.operations.threads import must_be_open
from clew.store.operations.workspaces import remember_place
from clew.store.queries import sessions as reading
from clew.store.queries.agents import list_runtimes, read_runtime
from clew.store.queries.names import agent_named, thread_called
from clew.store.queries.sessions import read_session_row
from clew.store.queries.threads import lanes_of, thread_ref


async def list_sessions(
    services: Services, thread: str | None = None, agent: str | None = None, limit: int = 100
) -> tuple[SessionView, ...]:
    """Those of a thread; without one, those that an agent's newest runs were in, or everybody's."""
    most = how_many(limit)

    def look(connection: Connection) -> tuple[SessionView, ...]:
        of = None if agent is None else agent_named(connection, agent)
        if thread is not None:
            name = None if of is None else of["name"]
            rows = reading.in_thread(connection, thread_called(connection, thread)["id"], name, most)
        else:
            rows = reading.recently_used(connection, None if of is None else of["id"], most)
        return tuple(map(show_session, rows))

    return await services.read(look)


async def found_sessions(services: Services) -> tuple[FoundSessionView, ...]:
    """What each agent of this machine says it has, whether Clew knows it or not. One that cannot say is left out."""
    machine = services.here()
    shown: list[FoundSessionView] = []
    for row in await services.read(list_runtimes):
        if row["machine_id"] != machine.id:
            continue
        try:
            found = await machine.sessions(RuntimeId(row["id"]))
        except Fault:
            continue
        shown += await services.read(partial(_show_found, runtime=row, found=found))
    return tuple(shown)


def _show_found(connection: Connection, runtime: Row, found: Sequence[FoundSession]) -> list[FoundSessionView]:
    known = reading.whose_are(connection, runtime["id"], [each.cursor.native_id for each in found])
    return [
        FoundSessionView(
            provider=runtime["provider"],
            runtime=runtime["id"],
            native_id=each.cursor.native_id,
            directory=None if each.directory is None else each.directory.path,
            title=each.title,
            updated_at=each.updated_at,
            turns=each.turns,
            thread=thread_ref(known[each.cursor.native_id]) if each.cursor.native_id in known else None,
        )
        for each in found
    ]


def show_session(row: Row) -> SessionView:
    session = read_session(row)
    return SessionView(
        id=session.id,
        thread=thread_ref(row),
        agent=row["agent_name"],
        generation=session.generation,
        provider=session.provider,
        runtime=row["runtime_id"],
        native_id=row["native_id"],
        directory=session.directory.path,
        state=session.state.value,
        turns=session.turns,
        seen=session.seen,
        born_at=session.born_at,
        proven_at=session.proven_at,
        resumability=resumability(session).value,
        scope=row["scope_run"] or "lane",
        superseded=bool(row["superseded"]),
    )


async def adopt_session(services: Services, ref: str, asked: Adopt) -> SessionView:
    """The next wake goes on in it. A lane that has no place yet works where the session does; one that has a place
    keeps it, and the session's history is forked into it."""
    found = await _find(services, asked)
    directory = found.directory
    if directory is None:
        raise NotNow(f"{asked.native_id} does not say in which directory it is.", "Open it once with its own program.")

    def do(connection: Connection) -> SessionView:
        thread = thread_called(connection, ref, held=True)
        must_be_open(thread, ref)
        agent, runtime = agent_named(connection, asked.agent), read_runtime(connection, asked.runtime)
        if runtime is None or runtime["provider"] != agent["provider"]:
            raise BadRequest(
                f"{asked.agent} is a {agent['provider']} agent; that session is of another provider.",
                "Choose an agent of the session's provider.",
            )
        started = as_started(connection, agent["id"], asked.runtime)
        session = NewSession(found.cursor, directory, None if started is None else started["account"])
        adoption = Adoption(
            AgentId(agent["id"]), ThreadId(thread["id"]), RuntimeId(asked.runtime), session, found.turns or 0
        )
        adopted = adopt(connection, adoption)
        _work_there(connection, thread, adopted.lane, directory, runtime)
        row = read_session_row(connection, adopted.session)
        assert row is not None
        return show_session(row)

    return await services.write(do)


async def _find(services: Services, asked: Adopt) -> FoundSession:
    there = await services.here().sessions(RuntimeId(asked.runtime))
    for each in there:
        if each.cursor.native_id == asked.native_id:
            return each
    raise NoSuchSession(
        f"Runtime {asked.runtime} has no session {asked.native_id!r}.", "See what there is with `clew sessions found`."
    )


def _work_there(connection: Connection, thread: Row, lane: LaneId, directory: Directory, runtime: Row) -> None:
    rows = lanes_of.rows(connection, thread=thread["id"])
    placed = any(row["id"] == lane and row["directory"] is not None for row in rows)
    if placed or thread["project_id"] is not None:
        return
    name = WorkspaceId(derived_id("ws", lane, runtime["machine_id"], directory.path))
    place = Workspace(name, WorkspaceKind.DIRECTORY, directory, None, MachineId(runtime["machine_id"]))
    remember_place(connection, lane, place)
