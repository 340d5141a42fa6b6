"""Saying something in a thread, which wakes whose it is."""

from sqlalchemy import Connection

from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.control.showing.wakes import show_wake
from clew.control.threads import overlap_called
from clew.control.wakes import new_wake, requested, say_it, wake
from clew.kernel import Overlap, ThreadId, WakeReason
from clew.protocol.requests import Words
from clew.protocol.views import Spoken
from clew.protocol.wakes import Said
from clew.store.engine.hints import hint_anything, hint_thread
from clew.store.engine.statement import Row
from clew.store.operations.journal import Tried, append_once
from clew.store.operations.threads import must_be_open
from clew.store.queries.agents import read_agent
from clew.store.queries.names import agent_named, thread_called
from clew.store.queries.wakes import read_wake, read_wakes

_REASONS = {"issue": WakeReason.COMMENT}


async def say(services: Services, ref: str, words: Words) -> Spoken:
    """A comment on an issue, a message in a chat. Where it wakes nobody it is written down all the same."""
    if not words.text.strip():
        raise BadRequest("Nothing was said.", "Give a text; to wake an agent without one, use `clew wake`.")
    overlap = None if words.overlap is None else overlap_called(words.overlap)
    if overlap is Overlap.STEER and (words.fresh or words.resume_run is not None):
        raise BadRequest(
            "The turn that is going is in its own session: another one cannot be had with it.",
            "Leave steering out, or do not ask for another session.",
        )
    said, named = say_it(words.text), new_wake()
    tried: Tried = {}

    def do(connection: Connection) -> Spoken:
        before = read_wakes(connection, [named]).get(named)
        if before is not None:
            # It was taken, and the answer was lost; the thread may be closed or another's by now.
            hint_anything(connection)
            return Spoken(before["entry"], show_wake(before))
        thread = thread_called(connection, ref, held=True)
        agent = _whom(connection, thread, words)
        if agent is None:
            return _written(connection, ThreadId(thread["id"]), words, overlap, said, tried)
        must_be_open(thread, ref)
        reason = _REASONS.get(thread["kind"], WakeReason.CHAT)
        request = requested(named, agent, ThreadId(thread["id"]), reason, said, words.key, words.fresh)
        accepted = wake(connection, request, words.resume_run, overlap)
        return Spoken(accepted.entry or 0, show_wake(read_wake(connection, accepted.wake), accepted.repeated))

    return await services.write(do)


def _written(
    connection: Connection, thread: ThreadId, words: Words, overlap: Overlap | None, said: Said, tried: Tried
) -> Spoken:
    """Words that wake nobody. `tried` outlives a lost answer, so they are written once."""
    if words.key is not None:
        raise BadRequest("A key names a wake, and this wakes nobody.", "Leave the key out.")
    if overlap is Overlap.STEER:
        raise BadRequest("This wakes nobody, so there is no turn to tell it in.", "Name an agent, or do not steer.")
    entry = append_once(connection, thread, said, tried)
    hint_thread(connection, thread)
    return Spoken(entry, None)


def _whom(connection: Connection, thread: Row, words: Words) -> Row | None:
    if not words.wakes:
        return None
    if words.agent is not None:
        return agent_named(connection, words.agent)
    return None if thread["assignee"] is None else read_agent(connection, thread["assignee"])
