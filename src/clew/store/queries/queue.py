"""The queue of a thread: the messages that wait, in the order in which agents would be told, and why each waits."""

from collections.abc import Sequence

from sqlalchemy import Connection

from clew.kernel import AdmissionReason, AuthorKind, LaneId, RunState
from clew.protocol.views import RunView
from clew.protocol.waiting import Change, WaitingView
from clew.store.engine.statement import Row
from clew.store.operations.entry_readers import Reader
from clew.store.operations.steering import steerable_run
from clew.store.operations.waiting_messages import Message, knows, messages_among, read_messages
from clew.store.queries.runs import open_run_of, show_run
from clew.store.queries.spoken import spoken
from clew.store.queries.threads import lanes_in_thread
from clew.store.queries.wakes import pending_of_lane


def show_queue(connection: Connection, thread: str) -> tuple[WaitingView, ...]:
    """Agent by agent, sorted by name."""
    lanes = lanes_in_thread.rows(connection, thread=thread)
    found = tuple(view for lane in lanes for view in _of_lane(connection, LaneId(lane["id"])))
    return spoken(connection, found)


def _of_lane(connection: Connection, lane: LaneId) -> Sequence[WaitingView]:
    rows = pending_of_lane.rows(connection, lane=lane)
    if not rows:
        return ()
    messages = messages_among(connection, rows)
    read = read_messages(connection, lane, list(messages.values()))
    record = open_run_of(connection, lane)
    run = None if record is None else show_run(connection, record.id)
    steerable = steerable_run(connection, lane) is not None
    views = [_view(row, messages.get(row["id"]), read.get(row["id"]), run, steerable) for row in rows]
    # What has no message comes first: it has no place among them.
    return sorted(views, key=lambda view: (view.entry or 0, view.accepted_at, view.wake))


def _view(
    row: Row, message: Message | None, reader: Reader | None, run: RunView | None, steerable: bool
) -> WaitingView:
    words, until = _why(row, reader, run)
    return WaitingView(
        wake=row["id"],
        agent=row["agent_name"],
        text="" if message is None else message.said.body,
        author="" if message is None else message.said.facts.author.name,
        entry=None if message is None else message.entry,
        reason=row["reason"],
        code=row["code"],
        words=words,
        accepted_at=row["accepted_at"],
        run=None if run is None else run.ref,
        until=until,
        files=() if message is None else message.said.files,
        can=("take back",) if message is None or reader is not None else _can(message, steerable),
    )


def _can(message: Message, steerable: bool) -> tuple[Change, ...]:
    may: dict[Change, bool] = {
        "edit": message.said.facts.author.kind is AuthorKind.HUMAN,
        "move": True,
        "steer": steerable and message.same_session and message.code != AdmissionReason.STEERED.code,
        "take back": True,
    }
    return tuple(change for change, allowed in may.items() if allowed)


def _why(row: Row, reader: Reader | None, run: RunView | None) -> tuple[str, float | None]:
    """Why the wake waits, and until when."""
    if reader is not None:
        return f"{knows(reader)}, and is asked for it again. {row['words']}", row["not_before"]
    if run is None or (row["not_before"] is not None and run.state == RunState.QUEUED):
        return row["words"], row["not_before"]
    if run.state == RunState.QUEUED:
        return run.words or row["words"], run.not_before
    match row["code"]:
        case AdmissionReason.STEERED.code:
            return f"{row['agent_name']} is told during this turn ({run.ref}), or at the start of the next.", None
        case AdmissionReason.NOT_STEERED.code:
            return f"The turn of {run.ref} did not take it; the next run does.", None
        case _:
            return f"Queued behind {run.ref}: {row['agent_name']} is told when that one ends.", None
