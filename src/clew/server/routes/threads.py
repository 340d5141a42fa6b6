"""Routes of threads: issues, chats, agents' own threads, and the messages in them."""

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
from clew.server.identity import By
from clew.server.params import Before, Filter, Limit, Name
from clew.server.router import Routes

EntryBefore = Annotated[int | None, Query(ge=1, le=2**31 - 1)]


@dataclass(frozen=True, slots=True)
class LaneChange:
    overlap: Overlapping


def threads(routes: Routes, services: Services) -> None:
    routes = routes.below("", "threads")

    @routes.post("/issues", status_code=201)
    async def new_issue(by: By, asked: NewIssue) -> ThreadPage:
        """Open an issue. An assignee is woken."""
        return await open_issue(services, by, asked)

    @routes.post("/chats", status_code=201)
    async def new_chat(by: By, asked: NewChat) -> ThreadView:
        """Open a chat with an agent."""
        return await open_chat(services, by, asked)

    @routes.get("/threads")
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

    @routes.get("/threads/{ref}")
    async def show(by: By, ref: Name, before: EntryBefore = None, limit: Limit = 50) -> ThreadPage:
        """One thread with the latest entries of its journal, or those before entry `before`. `ref` is its name
        (issue-3, chat-1, own-ada) or its id."""
        return await show_thread(services, by, ref, before=before, limit=limit)

    @routes.post("/threads/{ref}/words", status_code=201)
    async def speak(by: By, ref: Name, asked: Words) -> Spoken:
        """Send a message to a thread. Answered once the message is stored."""
        return await say(services, by, ref, asked)

    @routes.post("/threads/{ref}/assign")
    async def assign(by: By, ref: Name, asked: Assign) -> ThreadView:
        """Assign it to an agent, or unassign it."""
        return await assign_thread(services, by, ref, asked)

    @routes.post("/threads/{ref}/close")
    async def close(by: By, ref: Name) -> ThreadView:
        """Close it. Pending wakes are cancelled; a live run finishes."""
        return await close_thread(services, by, ref)

    @routes.post("/threads/{ref}/reopen")
    async def reopen(by: By, ref: Name) -> ThreadView:
        """Reopen it."""
        return await reopen_thread(services, by, ref)

    @routes.post("/threads/{ref}/adopt", status_code=201)
    async def adopt(by: By, ref: Name, asked: Adopt) -> SessionView:
        """Continue this thread in a session that you started in the agent itself."""
        return await adopt_session(services, by, ref, asked)

    @routes.patch("/threads/{ref}/lanes/{agent}")
    async def change_lane(by: By, ref: Name, agent: Name, asked: LaneChange) -> LaneView:
        """Set how messages are handled while the agent is busy in this thread."""
        return await set_overlap(services, by, ref, agent, asked.overlap)
