"""Messages: something is said in a thread, which wakes the agent that the thread belongs to."""

from clew.control.actor import Actor, author_of, origin_of
from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.control.threads import overlap_called
from clew.control.wakes import message, new_wake, wake, wake_request
from clew.kernel import Overlap, ThreadId, WakeReason
from clew.protocol.requests import Words
from clew.protocol.views import Spoken
from clew.protocol.wakes import Said
from clew.store.engine.database import Transaction
from clew.store.engine.hints import hint_anything, hint_thread
from clew.store.operations.journal import Tried, append_once
from clew.store.operations.threads import must_be_open
from clew.store.queries.agents import AgentRecord, read_agent
from clew.store.queries.names import ThreadRecord, agent_named, thread_called
from clew.store.queries.wakes import find_wake, show_wake

_REASONS = {"issue": WakeReason.COMMENT}


async def say(services: Services, actor: Actor, ref: str, words: Words) -> Spoken:
    """A comment on an issue, or a message in a chat. A message that wakes no agent is written to the journal too."""
    if not words.text.strip():
        raise BadRequest("The message is empty.", "Give a text; to wake an agent without one, use `clew wake`.")
    overlap = None if words.overlap is None else overlap_called(words.overlap)
    if overlap is Overlap.STEER and (words.fresh or words.resume_run is not None):
        raise BadRequest(
            "--steer cannot be combined with --fresh or --resume: the running turn has a session already.",
            "Leave one of them out.",
        )
    said, named = message(author_of(actor), words.text), new_wake()
    tried: Tried = {}

    def write(tx: Transaction) -> Spoken:
        before = find_wake(tx, named)
        if before is not None:
            # An earlier try was committed and its answer lost; the thread may have been closed or reassigned since.
            hint_anything(tx)
            return Spoken(before.entry or 0, before)
        thread = thread_called(tx, ref, locked=True)
        agent = _addressee(tx, thread, words)
        if agent is None:
            return _write_only(tx, thread.id, words, overlap, said, tried)
        must_be_open(thread, ref)
        reason = _REASONS.get(thread.kind, WakeReason.CHAT)
        request = wake_request(
            named, agent.id, thread.id, reason, origin_of(actor), said, key=words.key, fresh=words.fresh
        )
        accepted = wake(tx, request, words.resume_run, overlap)
        return Spoken(accepted.entry or 0, show_wake(tx, accepted.wake, accepted.repeated))

    return await services.write(write)


def _write_only(
    tx: Transaction, thread: ThreadId, words: Words, overlap: Overlap | None, said: Said, tried: Tried
) -> Spoken:
    """A message that wakes no agent. `tried` outlives a lost answer, so the message is written once."""
    if words.key is not None:
        raise BadRequest("A key names a wake, and this message wakes no agent.", "Leave the key out.")
    if overlap is Overlap.STEER:
        raise BadRequest(
            "This message wakes no agent, so there is no turn to steer.", "Name an agent, or do not steer."
        )
    entry = append_once(tx, thread, said, tried)
    hint_thread(tx, thread)
    return Spoken(entry, None)


def _addressee(tx: Transaction, thread: ThreadRecord, words: Words) -> AgentRecord | None:
    if not words.wakes:
        return None
    if words.agent is not None:
        return agent_named(tx, words.agent)
    return None if thread.assignee is None else read_agent(tx, thread.assignee)
