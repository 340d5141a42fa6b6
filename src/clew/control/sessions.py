"""Sessions: those that Clew keeps, and those that the agents of this machine have."""

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection

from clew.control.bounds import how_many
from clew.control.desk import Desk
from clew.kernel import RuntimeId, resumability
from clew.ports.fault import Fault
from clew.ports.provider import FoundSession
from clew.protocol.views import FoundSessionView, SessionView
from clew.store.engine.statement import Row
from clew.store.operations.rows import read_session
from clew.store.queries import sessions as reading
from clew.store.queries.agents import list_runtimes
from clew.store.queries.names import agent_named, thread_called
from clew.store.queries.threads import thread_ref


async def list_sessions(
    desk: Desk, thread: str | None = None, agent: str | None = None, limit: int = 100
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

    return await desk.read(look)


async def found_sessions(desk: Desk) -> tuple[FoundSessionView, ...]:
    """What each agent of this machine says it has, whether Clew knows it or not. One that cannot say is left out."""
    machine = desk.here()
    shown: list[FoundSessionView] = []
    for row in await desk.read(list_runtimes):
        if row["machine_id"] != machine.id:
            continue
        try:
            found = await machine.sessions(RuntimeId(row["id"]))
        except Fault:
            continue
        shown += await desk.read(partial(_show_found, runtime=row, found=found))
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
