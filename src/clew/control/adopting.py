"""Adopting: a session that a person has with an agent already goes on in a thread."""

from sqlalchemy import Connection

from clew.control.desk import Desk
from clew.control.faults import BadRequest, NoSuchSession, NotNow
from clew.control.sessions import show_session
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
)
from clew.ports.provider import FoundSession
from clew.protocol.reports import NewSession
from clew.protocol.requests import Adopt
from clew.protocol.views import SessionView
from clew.store.engine.statement import Row
from clew.store.operations.adoption import Adoption
from clew.store.operations.adoption import adopt_session as adopt
from clew.store.operations.ids import derived_id
from clew.store.operations.runtimes import as_started
from clew.store.operations.threads import must_be_open
from clew.store.operations.workspaces import remember_place
from clew.store.queries.agents import read_runtime
from clew.store.queries.names import agent_named, thread_called
from clew.store.queries.sessions import read_session_row
from clew.store.queries.threads import lanes_of


async def adopt_session(desk: Desk, ref: str, asked: Adopt) -> SessionView:
    """The next wake goes on in it. A lane that has no place yet works where the session does; one that has a place
    keeps it, and the session's history is forked into it."""
    found = await _find(desk, asked)
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

    return await desk.write(do)


async def _find(desk: Desk, asked: Adopt) -> FoundSession:
    there = await desk.here().sessions(RuntimeId(asked.runtime))
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
