"""Saying something in a thread, which wakes whose it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sqlalchemy import Connection

from clew.control.desk import Desk
from clew.control.faults import BadRequest
from clew.control.lanes import overlap_called
from clew.control.showing.wakes import show_wake
from clew.control.waking import new_wake, requested, say_it, wake
from clew.kernel import Overlap, ThreadId, WakeId, WakeReason, thread_for
from clew.protocol.requests import Words
from clew.protocol.views import Spoken
from clew.protocol.wakes import Said, WakeRequest
from clew.store.accept import is_plain
from clew.store.admitting import admit_all
from clew.store.hints import hint_anything, hint_thread
from clew.store.joining import Joint
from clew.store.journal import Tried, append_once
from clew.store.reading.agents import read_agent
from clew.store.reading.names import agent_named, thread_called
from clew.store.reading.wakes import read_wake, read_wakes
from clew.store.statement import Row
from clew.store.threads import must_be_open

_REASONS = {"issue": WakeReason.COMMENT}


async def say(desk: Desk, ref: str, words: Words) -> Spoken:
    """A comment on an issue, a message in a chat. Where it wakes nobody it is written down all the same."""
    if not words.text.strip():
        raise BadRequest("Nothing was said.", "Give a text; to wake an agent without one, use `clew wake`.")
    overlap = None if words.overlap is None else overlap_called(words.overlap)
    if overlap is Overlap.STEER and (words.fresh or words.resume_run is not None):
        raise BadRequest(
            "The turn that is going is in its own session: another one cannot be had with it.",
            "Leave steering out, or do not ask for another session.",
        )
    return await desk.write(_Saying(ref, words, say_it(words.text), overlap, new_wake()))


@dataclass(frozen=True, slots=True)
class _Saying(Joint[Spoken]):
    """Something said. Words to an agent that has nothing to do there may go in together with those of others."""

    reads: ClassVar[bool] = True

    ref: str
    words: Words
    said: Said
    overlap: Overlap | None
    wake: WakeId
    tried: Tried = field(default_factory=dict)
    request: WakeRequest | None = None

    def __call__(self, connection: Connection) -> Spoken:
        words, overlap = self.words, self.overlap
        before = read_wakes(connection, [self.wake]).get(self.wake)
        if before is not None:
            # It was taken, and the answer was lost; the thread may be closed or another's by now.
            hint_anything(connection)
            return Spoken(before["entry"], show_wake(before))
        thread = thread_called(connection, self.ref, held=True)
        agent = _whom(connection, thread, words)
        if agent is None:
            if words.key is not None:
                raise BadRequest("A key names a wake, and this wakes nobody.", "Leave the key out.")
            if overlap is Overlap.STEER:
                raise BadRequest(
                    "This wakes nobody, so there is no turn to tell it in.", "Name an agent, or do not steer."
                )
            name = ThreadId(thread["id"])
            entry = append_once(connection, name, self.said, self.tried)
            hint_thread(connection, name)
            return Spoken(entry, None)
        must_be_open(thread, self.ref)
        accepted = wake(connection, self._request(thread, agent), words.resume_run, overlap)
        return Spoken(accepted.entry or 0, show_wake(read_wake(connection, accepted.wake), accepted.repeated))

    @property
    def about(self) -> str:
        return self.ref if self.request is None else thread_for(self.request.agent, self.request.thread)

    def joins(self) -> bool:
        return self.words.wakes and self.overlap is None and self.words.resume_run is None

    def found(self, connection: Connection) -> "_Saying | None":
        thread = thread_called(connection, self.ref)
        agent = _whom(connection, thread, self.words)
        if agent is None:
            return None
        request = self._request(thread, agent)
        return replace(self, request=request) if is_plain(request) else None

    @classmethod
    def together(cls, connection: Connection, group: Sequence["_Saying"]) -> Sequence[Spoken | None]:
        asked = [(each.request, each.words.agent is None) for each in group if each.request is not None]
        accepted = admit_all(connection, asked)
        rows = read_wakes(connection, [each.wake for each in accepted if each is not None])
        return [None if each is None else Spoken(each.entry or 0, show_wake(rows[each.wake])) for each in accepted]

    def _request(self, thread: Row, agent: Row) -> WakeRequest:
        reason = _REASONS.get(thread["kind"], WakeReason.CHAT)
        return requested(self.wake, agent, ThreadId(thread["id"]), reason, self.said, self.words.key, self.words.fresh)


def _whom(connection: Connection, thread: Row, words: Words) -> Row | None:
    if not words.wakes:
        return None
    if words.agent is not None:
        return agent_named(connection, words.agent)
    return None if thread["assignee"] is None else read_agent(connection, thread["assignee"])
