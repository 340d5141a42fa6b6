"""Messages that wait: pending wakes that ask for one entry, and which of them an agent already has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select, text

from clew.kernel import EntrySeq, Freshness, LaneId, ThreadId, WakeId, WakeReason, WakeState
from clew.protocol.orders import Entry
from clew.store.engine.dialect import read_clock
from clew.store.engine.statement import Row, Statement
from clew.store.faults import MessageTaken, NoSuchWake, NotAMessage, NotWithinTurn
from clew.store.operations.entry_readers import Reader, readers_since
from clew.store.operations.journal import entry_at
from clew.store.operations.rows import read_wake
from clew.store.schema.tables import agents, lanes, runs, wakes


@dataclass(frozen=True, slots=True)
class Message:
    """A pending wake that asks for one entry. `code` says why it is pending."""

    wake: WakeId
    entry: EntrySeq
    said: Entry
    reason: WakeReason
    code: str
    same_session: bool
    """It demands neither a fresh start nor an earlier run, so a running turn can be told of it."""


_wake = Statement(
    lambda _: (
        select(
            *wakes.c,
            agents.c.name.label("agent_name"),
            runs.c.number.label("run_number"),
            runs.c.started_at.label("run_started_at"),
        )
        .select_from(
            wakes.join(lanes, lanes.c.id == wakes.c.lane_id)
            .join(agents, agents.c.id == lanes.c.agent_id)
            .outerjoin(runs, runs.c.id == wakes.c.run_id)
        )
        .where(wakes.c.id == bindparam("wake"))
    )
)

_pending = Statement(
    lambda _: (
        select(wakes)
        .where(wakes.c.lane_id == bindparam("lane"), text("wakes.state = 'pending'"))
        .order_by(wakes.c.accepted_at, wakes.c.id)
    )
)


def wake_row(connection: Connection, wake: WakeId) -> Row:
    """The wake, with the name of its agent and the number of the run that took it."""
    row = _wake.first(connection, wake=wake)
    if row is None:
        raise NoSuchWake(f"There is no wake {wake}.", "See what waits with `clew queue THREAD`.")
    return row


def message_of(connection: Connection, row: Row) -> Message | None:
    """The message of a wake; None for one that asks for no entry or for several, or that hands a thread over."""
    wake = read_wake(row)
    if len(wake.entries) != 1 or wake.freshness is Freshness.HANDOVER:
        return None
    said = entry_at(connection, ThreadId(row["thread_id"]), wake.entries[0])
    if said is None:
        return None
    same = wake.freshness is Freshness.FOLLOW_POLICY and wake.resume_run is None and not row["scope"]
    return Message(wake.id, wake.entries[0], said, wake.reason, row["code"], same)


def messages_among(connection: Connection, rows: Sequence[Row]) -> Mapping[WakeId, Message]:
    """The messages of these pending wakes."""
    found = (message_of(connection, row) for row in rows)
    return {message.wake: message for message in found if message is not None}


def own_message(connection: Connection, row: Row) -> Message:
    message = message_of(connection, row)
    if message is None:
        raise NotAMessage(
            f"The wake ({row['reason']}) has no message of its own that could be changed.",
            f"Cancel it: `clew cancel {row['id']}`.",
        )
    return message


def unread_messages(connection: Connection, lane: LaneId) -> list[Message]:
    """The lane's waiting messages that its agent does not have, in the order in which it would be told."""
    messages = list(messages_among(connection, _pending.rows(connection, lane=lane)).values())
    read = read_messages(connection, lane, messages)
    return sorted((each for each in messages if each.wake not in read), key=lambda each: each.entry)


def read_messages(connection: Connection, lane: LaneId, messages: Sequence[Message]) -> Mapping[WakeId, Reader]:
    """Those of a lane's messages that its agent has, or may have, with the run that gave it to it."""
    if not messages:
        return {}
    readers = readers_since(connection, lane, min(message.said.at for message in messages))
    known = {message.wake: [each for each in readers if each.has(message.entry)] for message in messages}
    return {wake: found[0] for wake, found in known.items() if found}


def reader_of(connection: Connection, lane: LaneId, message: Message) -> Reader | None:
    return read_messages(connection, lane, [message]).get(message.wake)


def knows(reader: Reader) -> str:
    """What is known of an agent and a message, without an end: ada has it already (run-17)."""
    has = "has it already" if reader.certain else "may have it already; that is not known yet"
    return f"{reader.agent} {has} ({reader.run})"


_TOO_LATE = "It can no longer be changed: send another message."


def must_be_unread(connection: Connection, lane: LaneId, message: Message) -> None:
    reader = reader_of(connection, lane, message)
    if reader is None:
        return
    since = _lasted(read_clock(connection) - reader.since)
    if reader.certain:
        raise MessageTaken(f"{reader.agent} has it: {reader.run}, which started {since} ago.", _TOO_LATE)
    raise MessageTaken(
        f"It is not known yet whether {reader.agent} has it: {reader.run}, which started {since} ago.",
        f"`clew why {reader.run}` shows what is known.",
    )


def taken(connection: Connection, row: Row) -> MessageTaken:
    """The answer for a wake that is no longer pending: who has it, and since when."""
    if row["run_number"] is None:
        return MessageTaken(f"It does not wait any more: {row['words']}", "Send it again as a new message.")
    run, since = f"run-{row['run_number']}", _lasted(read_clock(connection) - (row["run_started_at"] or 0.0))
    if row["state"] == WakeState.CANCELLED:
        return MessageTaken(f"It does not wait any more ({run}): {row['words']}", f"See `clew why {run}`.")
    return MessageTaken(f"{row['agent_name']} has it: {run}, which started {since} ago.", _TOO_LATE)


_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def _lasted(seconds: float) -> str:
    unit, name = next(((unit, name) for unit, name in _UNITS if seconds >= unit), (1, "s"))
    return f"{max(0, int(seconds // unit))} {name}"


def not_within_turn(agent: str, message: Message, live_run: str | None) -> NotWithinTurn:
    """Why the message cannot be told within a turn. `live_run` is the name of the run that is going."""
    if not message.same_session:
        words = f"It asks for another session than the one {agent} is in, so it waits for the next run."
        return NotWithinTurn(words, "Leave it in the queue.")
    if live_run is None:
        return NotWithinTurn(f"{agent} has no turn going here: the next run takes it.", "Leave it in the queue.")
    return NotWithinTurn(
        f"{agent} cannot be told anything within this turn, so it waits for the next run.",
        f"`clew interrupt {live_run}` ends the turn now.",
    )
