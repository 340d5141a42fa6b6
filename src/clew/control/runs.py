"""Runs: listed, newest first, shown, and their logs."""

from collections.abc import Sequence

from sqlalchemy import Connection

from clew.control.faults import BadRequest, NotNow
from clew.control.services import Services
from clew.control.showing import runs as showing
from clew.control.showing.wakes import show_wake
from clew.control.validation import how_many
from clew.kernel import LaneId, RunId, RunOutcome, RunState, ThreadId
from clew.protocol.requests import Retry
from clew.protocol.views import Cancelled, EventView, RunView, WakeView
from clew.protocol.wakes import Accepted
from clew.store.engine.statement import Row
from clew.store.operations import cancel
from clew.store.operations.evidence import by_person
from clew.store.operations.ids import new_id
from clew.store.operations.retry import ask_again, go_now
from clew.store.operations.sessions import run_session
from clew.store.operations.threads import must_be_open
from clew.store.queries import runs as reading
from clew.store.queries.names import agent_named, run_called, thread_called
from clew.store.queries.runs import is_live, read_run
from clew.store.queries.threads import thread_ref
from clew.store.queries.wakes import pending_wakes, read_wake


async def list_runs(
    services: Services,
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

    return await services.read(look)


async def show_run(services: Services, run: str) -> RunView:
    """By its id, or by a beginning that no other has."""

    def look(connection: Connection) -> RunView:
        return showing.show_run(connection, reading.read_run(connection, run_called(connection, run)))

    return await services.read(look)


async def list_events(services: Services, run: str, after: int = 0, limit: int = 500) -> tuple[EventView, ...]:
    """The lines of its log after a given one, in order."""
    most = how_many(limit)
    if not 0 <= after < 2**31:
        raise BadRequest(f"There is no line {after}.", "Lines are counted from 1; 0 is before them all.")

    def look(connection: Connection) -> tuple[EventView, ...]:
        rows = reading.list_events(connection, run_called(connection, run), after, most)
        return tuple(map(showing.show_event, rows))

    return await services.read(look)


def _state(state: str) -> RunState:
    try:
        return RunState(state)
    except ValueError as fault:
        raise BadRequest(f"No run is ever {state!r}.", f"Name one of {', '.join(RunState)}.") from fault


async def cancel_run(services: Services, run: str) -> Cancelled:
    def do(connection: Connection) -> Cancelled:
        return _stop(connection, RunId(run_called(connection, run)), RunOutcome.BY_USER)

    return await services.write(do)


async def interrupt_run(services: Services, run: str) -> Cancelled:
    """End the turn that is going; the next message goes on in the same session."""

    def do(connection: Connection) -> Cancelled:
        found = RunId(run_called(connection, run))
        row = read_run(connection, found)
        if is_live(row):
            return _stop(connection, found, RunOutcome.STOPPED)
        state = RunState(row["state"])
        words = f"Run {found} is {state}: there is no turn to interrupt."
        return Cancelled(False, state.value, words)

    return await services.write(do)


def _stop(connection: Connection, run: RunId, why: RunOutcome) -> Cancelled:
    stopped = cancel.cancel_run(connection, run, why)
    return Cancelled(stopped.taken, stopped.state.value, stopped.words)


async def retry_run(services: Services, run: str, asked: Retry | None = None) -> tuple[WakeView, ...]:
    """The wakes that go again now: those that wait, and of a run that gave up, those it had carried. With `taken`, a
    person says whether the agent took a prompt of which nobody else can tell."""

    def do(connection: Connection) -> tuple[WakeView, ...]:
        row = _named(connection, run)
        state = RunState(row["state"])
        if is_live(row):
            raise NotNow(f"Run {row['id']} is {state}: it is being tried.", "Wait for its end, or cancel it first.")
        if asked is not None and asked.taken is not None:
            return _decided(connection, row, asked.taken)
        if state is RunState.SUCCEEDED:
            raise NotNow(f"Run {row['id']} has succeeded.", "Say something new, or rerun from it.")
        again = [] if state is RunState.QUEUED else ask_again(connection, row, only_unserved=True, resume=None)
        waits = go_now(connection, LaneId(row["lane_id"]), ThreadId(row["thread_id"]))
        if waits is None and not again:
            raise NotNow(f"Nothing of run {row['id']} is left to be tried.", "Wake its agent in its thread again.")
        return _shown(connection, row, again)

    return await services.write(do)


def _decided(connection: Connection, row: Row, taken: bool) -> tuple[WakeView, ...]:
    lane = LaneId(row["lane_id"])
    if not by_person(connection, lane, taken):
        words = f"It is known what became of every prompt of {thread_ref(row)}; nothing is left for you to decide."
        raise NotNow(words, f"`clew why {row['id']}` shows it. Retry it without --taken or --not-taken.")
    go_now(connection, lane, ThreadId(row["thread_id"]))
    return _shown(connection, row, ())


async def rerun(services: Services, run: str) -> tuple[WakeView, ...]:
    """What the run was for is asked again, in the session that it was in."""
    # Named before anything is written: however often it is tried, it is asked once.
    name = new_id("again")

    def do(connection: Connection) -> tuple[WakeView, ...]:
        row = _named(connection, run)
        if row["scope_run"]:
            raise NotNow(f"Run {row['id']} kept a context of its own, which ended with it.", "Wake its agent anew.")
        if not run_session(connection, RunId(row["id"])):
            raise NotNow(f"No session of run {row['id']} is known, so none can be gone on with.", "Retry it instead.")
        asked = ask_again(connection, row, only_unserved=False, resume=name)
        if not asked:
            raise NotNow(
                f"Run {row['id']} carries no wake: what it was for has gone to another run, or waits for one.",
                f"See `clew thread show {thread_ref(row)}` and `clew why {row['id']}`.",
            )
        return _shown(connection, row, asked)

    return await services.write(do)


def _named(connection: Connection, run: str) -> Row:
    row = read_run(connection, run_called(connection, run))
    must_be_open(thread_called(connection, row["thread_id"], held=True), thread_ref(row))
    return row


def _shown(connection: Connection, row: Row, asked: Sequence[Accepted]) -> tuple[WakeView, ...]:
    if not asked:
        return tuple(map(show_wake, pending_wakes(connection, row["lane_id"])))
    return tuple(show_wake(read_wake(connection, each.wake), each.repeated) for each in asked)
