"""`clew chat`: a conversation with an agent."""

import sys
from itertools import chain
from typing import Annotated

from cyclopts import Parameter

from clew.cli.client import Query, Server, part
from clew.cli.conversation import Conversation
from clew.cli.ending import Ending
from clew.cli.options import OPTIONS, Options, Text
from clew.cli.reading import read, read_all
from clew.cli.texts import BadText, given, messages
from clew.cli.threads import named
from clew.ports.fault import Fault
from clew.protocol.views import AgentView, ThreadPage, ThreadView


class WhichAgent(Fault):
    code = "cli:which-agent"


def chat(
    agent: str | None = None,
    /,
    *,
    in_: Annotated[str | None, Parameter(name="--in", metavar="THREAD")] = None,
    continue_: Annotated[bool, Parameter(name=("--continue", "-c"))] = False,
    project: str | None = None,
    title: str = "",
    once: Text | None = None,
    options: Options = OPTIONS,
) -> Ending:
    """Talk with an agent. Every line is a message; its answer is shown as it comes.

    Ctrl-C interrupts the turn, Ctrl-D leaves; the chat stays, and --in or --continue come back to it. When the agent
    asks for something, you are asked. Lines from a pipe are sent one after another.

    For example:

        clew chat ada

        clew chat ada --project web --once "What does this repository do?"

        clew chat --in chat-1

        clew chat ada --once - < question.md

    Parameters
    ----------
    agent
        Whom to talk with; needed when there are several.
    in_
        Go on in this thread: chat-1, issue-3, or an id.
    continue_
        Go on in the latest chat with the agent.
    project
        Where the agent is to work in a new chat; its home without one.
    title
        What to call a new chat.
    once
        Say this, show the answer and end; - reads it from stdin.
    """
    if in_ is not None and continue_:
        raise BadText("--in and --continue name two threads.", "Leave one of them out.")
    for option, text in (("--project", project), ("--title", title)):
        if text and (in_ is not None or continue_):
            words = f"{option} is for a new chat, and --in and --continue go on in one that has its own."
            raise BadText(words, f"Leave {option} out, or begin a new chat.")
    if sys.stdin is None and once is None:
        raise BadText("There is nothing to read: stdin is closed.", "Say something with --once.")
    typing = once is None and sys.stdin.isatty()
    if typing and options.json:
        raise BadText("A conversation in a terminal is not JSON.", "Use --once, or pipe the messages in.")
    said = iter([given(once)]) if once is not None else messages()
    first = None if typing else next(said, None)
    if first is None and not typing:
        raise BadText("Nothing was said: stdin is empty.", "Say something with --once.")
    server = Server(options.data)
    thread = _thread(server, agent, in_, continue_, project, title)
    whom = agent if in_ is not None else None
    conversation = Conversation(server, thread, whom, as_json=options.json)
    return conversation.typed() if first is None else conversation.piped(chain([first], said))


def _thread(
    server: Server, agent: str | None, in_: str | None, go_on: bool, project: str | None, title: str
) -> ThreadView:
    if in_ is not None:
        return read(ThreadPage, server.get(f"/threads/{part(named(in_, 'chat'))}", {"limit": 1})).thread
    agent = agent or _only_agent(server)
    if go_on:
        query: Query = {"kind": "chat", "state": "open", "agent": agent, "limit": 1}
        latest = read_all(ThreadView, server.get("/threads", query))
        if latest:
            return latest[0]
    return read(ThreadView, server.post("/chats", {"agent": agent, "project": project, "title": title}))


def _only_agent(server: Server) -> str:
    agents = [each.name for each in read_all(AgentView, server.get("/agents"))]
    match agents:
        case []:
            raise WhichAgent("There are no agents.", "Add one with `clew agent add`.")
        case [one]:
            return one
        case _:
            raise WhichAgent(f"There are several agents: {', '.join(agents)}.", "Say which: `clew chat NAME`.")
