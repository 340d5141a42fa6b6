"""Saying something in a thread, which wakes whose it is."""

from sqlalchemy import Connection

from clew.control.desk import Desk
from clew.control.faults import BadRequest
from clew.control.lanes import overlap_called
from clew.control.showing.wakes import show_wake
from clew.control.waking import say_it, wake
from clew.kernel import Overlap, ThreadId, WakeReason
from clew.store.hints import hint_thread
from clew.store.journal import append
from clew.store.reading.agents import read_agent
from clew.store.reading.names import agent_named, thread_called
from clew.store.reading.wakes import read_wake
from clew.store.statement import Row
from clew.store.threads import must_be_open
from clew.wire.asks import Words
from clew.wire.views import Spoken

_REASONS = {"issue": WakeReason.COMMENT}


async def say(desk: Desk, ref: str, words: Words) -> Spoken:
    """A comment on an issue, a message in a chat. Where it wakes nobody it is written down all the same."""
    if not words.text.strip():
        raise BadRequest("Nothing was said.", "Give a text; to wake an agent without one, use `clew wake`.")
    said = say_it(words.text)
    overlap = None if words.overlap is None else overlap_called(words.overlap)
    if overlap is Overlap.STEER and (words.fresh or words.resume_run is not None):
        raise BadRequest(
            "The turn that is going is in its own session: another one cannot be had with it.",
            "Leave steering out, or do not ask for another session.",
        )

    def do(connection: Connection) -> Spoken:
        thread = thread_called(connection, ref, held=True)
        agent = _whom(connection, thread, words)
        if agent is None:
            if words.key is not None:
                raise BadRequest("A key names a wake, and this wakes nobody.", "Leave the key out.")
            if overlap is Overlap.STEER:
                raise BadRequest(
                    "This wakes nobody, so there is no turn to tell it in.", "Name an agent, or do not steer."
                )
            entry = append(connection, ThreadId(thread["id"]), said)
            hint_thread(connection, ThreadId(thread["id"]))
            return Spoken(entry, None)
        must_be_open(thread, ref)
        reason = _REASONS.get(thread["kind"], WakeReason.CHAT)
        accepted = wake(
            connection,
            agent,
            ThreadId(thread["id"]),
            reason,
            said,
            words.key,
            words.fresh,
            words.resume_run,
            overlap=overlap,
        )
        return Spoken(accepted.entry or 0, show_wake(read_wake(connection, accepted.wake), accepted.repeated))

    return await desk.write(do)


def _whom(connection: Connection, thread: Row, words: Words) -> Row | None:
    if not words.wakes:
        return None
    if words.agent is not None:
        return agent_named(connection, words.agent)
    return None if thread["assignee"] is None else read_agent(connection, thread["assignee"])
