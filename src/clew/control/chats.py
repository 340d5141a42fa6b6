"""Chats: a thread with one agent who can be woken, opened before anything is said."""

from sqlalchemy import Connection

from clew.control.desk import Desk
from clew.control.faults import NotNow
from clew.control.issues import check_title
from clew.control.showing.threads import show_thread
from clew.kernel import AgentId, AgentState, ProjectId
from clew.protocol.requests import NewChat
from clew.protocol.views import ThreadView
from clew.store.operations.threads import new_thread, open_thread
from clew.store.queries.names import agent_named, project_named


async def open_chat(desk: Desk, asked: NewChat) -> ThreadView:
    title = check_title(asked.title) if asked.title.strip() else ""
    thread = new_thread()

    def do(connection: Connection) -> ThreadView:
        agent = agent_named(connection, asked.agent)
        if agent["state"] != AgentState.ACTIVE.value:
            # The first word would be turned away, and an empty chat left behind.
            name, state = agent["name"], agent["state"]
            raise NotNow(
                f"{name} is {state}, so nobody would answer.",
                f"`clew agent resume {name}` first, or chat with another.",
            )
        project = None if asked.project is None else ProjectId(project_named(connection, asked.project)["id"])
        open_thread(connection, thread, "chat", title, project, AgentId(agent["id"]))
        return show_thread(connection, thread)

    return await desk.write(do)
