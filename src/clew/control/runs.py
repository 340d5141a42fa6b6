"""Runs: listed, newest first, shown, and their logs."""

from sqlalchemy import Connection

from clew.control.bounds import how_many
from clew.control.desk import Desk
from clew.control.faults import BadRequest
from clew.control.showing import runs as showing
from clew.kernel import RunState
from clew.protocol.views import EventView, RunView
from clew.store.queries import runs as reading
from clew.store.queries.names import agent_named, run_called, thread_called


async def list_runs(
    desk: Desk,
    thread: str | None = None,
    agent: str | None = None,
    state: str | None = None,
    limit: int = 50,
    before: str | None = None,
) -> tuple[RunView, ...]:
    most, of_state = how_many(limit), None if state is None else _state(state)

    def look(connection: Connection) -> tuple[RunView, ...]:
        in_thread = None if thread is None else thread_called(connection, thread)["id"]
        of_agent = None if agent is None else agent_named(connection, agent)["id"]
        later = None if before is None else run_called(connection, before)
        found = reading.list_runs(connection, in_thread, of_agent, of_state, most, later)
        return showing.show_runs(connection, found)

    return await desk.read(look)


async def show_run(desk: Desk, run: str) -> RunView:
    """By its id, or by a beginning that no other has."""

    def look(connection: Connection) -> RunView:
        return showing.show_run(connection, reading.read_run(connection, run_called(connection, run)))

    return await desk.read(look)


async def list_events(desk: Desk, run: str, after: int = 0, limit: int = 500) -> tuple[EventView, ...]:
    """The lines of its log after a given one, in order."""
    most = how_many(limit)
    if not 0 <= after < 2**31:
        raise BadRequest(f"There is no line {after}.", "Lines are counted from 1; 0 is before them all.")

    def look(connection: Connection) -> tuple[EventView, ...]:
        rows = reading.list_events(connection, run_called(connection, run), after, most)
        return tuple(map(showing.show_event, rows))

    return await desk.read(look)


def _state(state: str) -> RunState:
    try:
        return RunState(state)
    except ValueError as fault:
        raise BadRequest(f"No run is ever {state!r}.", f"Name one of {', '.join(RunState)}.") from fault
