"""Threads: issues, chats and agents' own, and what is said in them."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Query

from clew.control.issues import assign_thread, open_issue
from clew.control.messages import say
from clew.control.services import Services
from clew.control.sessions import adopt_session
from clew.control.threads import close_thread, list_threads, open_chat, reopen_thread, set_overlap, show_thread
from clew.protocol.requests import Adopt, Assign, NewChat, NewIssue, Overlapping, Words
from clew.protocol.views import LaneView, SessionView, Spoken, ThreadPage, ThreadView
from clew.server.asked import Before, Filter, Limit, Name
from clew.server.calls import Calls
from clew.server.identity import By

EntryBefore = Annotated[int | None, Query(ge=1, le=2**31 - 1)]


@dataclass(frozen=True, slots=True)
class LaneChange:
    overlap: Overlapping


def threads(calls: Calls, services: Services) -> None:
    calls = calls.below("", "threads")

    @calls.post("/issues", status_code=201)
    async def new_issue(by: By, asked: NewIssue) -> ThreadPage:
        """A new issue; with an assignee, that agent is woken."""
        return await open_issue(services, by, asked)

    @calls.post("/chats", status_code=201)
    async def new_chat(by: By, asked: NewChat) -> ThreadView:
        """A new chat with an agent."""
        return await open_chat(services, by, asked)

    @calls.get("/threads")
    async def list_all(
        by: By,
        kind: Filter = None,
        state: Filter = None,
        agent: Filter = None,
        limit: Limit = 50,
        before: Before = None,
    ) -> tuple[ThreadView, ...]:
        """Threads, newest first."""
        return await list_threads(services, by, kind=kind, state=state, agent=agent, limit=limit, before=before)

    @calls.get("/threads/{ref}")
    async def show(by: By, ref: Name, before: EntryBefore = None, limit: Limit = 50) -> ThreadPage:
        """One thread with the newest of its journal, or what is before an entry. `ref` is as people call it (issue-3,
        chat-1, own-ada) or its id."""
        return await show_thread(services, by, ref, before=before, limit=limit)

    @calls.post("/threads/{ref}/words", status_code=201)
    async def speak(by: By, ref: Name, asked: Words) -> Spoken:
        """Say something in a thread. The answer is given when it is durable."""
        return await say(services, by, ref, asked)

    @calls.post("/threads/{ref}/assign")
    async def assign(by: By, ref: Name, asked: Assign) -> ThreadView:
        """Give it to an agent, or to nobody."""
        return await assign_thread(services, by, ref, asked)

    @calls.post("/threads/{ref}/close")
    async def close(by: By, ref: Name) -> ThreadView:
        """Close it; what goes on in it is stopped."""
        return await close_thread(services, by, ref)

    @calls.post("/threads/{ref}/reopen")
    async def reopen(by: By, ref: Name) -> ThreadView:
        """Open it again."""
        return await reopen_thread(services, by, ref)

    @calls.post("/threads/{ref}/adopt", status_code=201)
    async def adopt(by: By, ref: Name, asked: Adopt) -> SessionView:
        """Go on in this thread with a session that a person has had with the agent."""
        return await adopt_session(services, by, ref, asked)

    @calls.patch("/threads/{ref}/lanes/{agent}")
    async def change_lane(by: By, ref: Name, agent: Name, asked: LaneChange) -> LaneView:
        """What becomes of words that come while the agent works in this thread."""
        return await set_overlap(services, by, ref, agent, asked.overlap)
