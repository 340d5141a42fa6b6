"""Stopping a run: cancelled with what it carries, or its turn interrupted. Its session stays, and is gone on with."""

from sqlalchemy import Connection

from clew.control.desk import Desk
from clew.kernel import RunId, RunOutcome, RunState
from clew.protocol.views import Cancelled
from clew.store.operations import cancel
from clew.store.queries.names import run_called
from clew.store.queries.runs import is_live, read_run


async def cancel_run(desk: Desk, run: str) -> Cancelled:
    def do(connection: Connection) -> Cancelled:
        return _stop(connection, RunId(run_called(connection, run)), RunOutcome.BY_USER)

    return await desk.write(do)


async def interrupt_run(desk: Desk, run: str) -> Cancelled:
    """End the turn that is going; the next message goes on in the same session."""

    def do(connection: Connection) -> Cancelled:
        found = RunId(run_called(connection, run))
        row = read_run(connection, found)
        if is_live(row):
            return _stop(connection, found, RunOutcome.STOPPED)
        state = RunState(row["state"])
        words = f"Run {found} is {state}: there is no turn to interrupt."
        return Cancelled(False, state.value, words)

    return await desk.write(do)


def _stop(connection: Connection, run: RunId, why: RunOutcome) -> Cancelled:
    stopped = cancel.cancel_run(connection, run, why)
    return Cancelled(stopped.taken, stopped.state.value, stopped.words)
