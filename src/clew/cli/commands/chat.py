"""`clew chat`: a conversation at a terminal, from a pipe, or a single message."""

import sys
from collections.abc import Iterable
from itertools import chain
from typing import Annotated

from cyclopts import Parameter

from clew.cli.answers import get_thread, read, read_all
from clew.cli.approver import at_terminal
from clew.cli.client import Query, Server
from clew.cli.commands.project import project_here
from clew.cli.commands.say import nobody_woken, send
from clew.cli.commands.thread import WhichAgent
from clew.cli.input import OPTIONS, BadStdin, BadText, Options, Text, checked, given, messages
from clew.cli.misuse import not_together
from clew.cli.output import ExitStatus, note, tell_fault, tell_json
from clew.cli.turn import Turn
from clew.ports.fault import Fault
from clew.protocol.views import AgentView, Spoken, ThreadView


def chat(
    agent: str | None = None,
    /,
    *,
    in_: Annotated[str | None, Parameter(name="--in", metavar="THREAD")] = None,
    continue_: Annotated[bool, Parameter(name=("--continue", "-c"))] = False,
    project: str | None = None,
    no_project: bool = False,
    title: str = "",
    once: Text | None = None,
    options: Options = OPTIONS,
) -> ExitStatus:
    """Chat with an agent. Enter sends; the reply is shown as it arrives, and you can type meanwhile.

    A line ended by a backslash goes on, and so does Alt-Enter; a pasted text is one message. /help lists more: /diff,
    /why, /mode, /fresh, /exit. Ctrl-C interrupts the turn, Ctrl-D leaves. The chat is kept: continue it with --in or
    --continue. When the agent asks for permission, you are asked. Lines from a pipe are sent one after the other.

    For example:

        clew chat ada

        clew chat ada --project web --once "What does this repository do?"

        clew chat --in chat-1

        clew chat ada --once - < question.md

    Parameters
    ----------
    agent
        The agent; required if there are several.
    in_
        Continue this thread: chat-1, issue-3 or 3, or an id.
    continue_
        Continue the latest chat with the agent.
    project
        The project to work in, for a new chat. Default: the one whose directory you are in, else none: then the agent
        works in its own home.
    no_project
        Work in no project, wherever you are.
    title
        The title of a new chat.
    once
        Send this one message, show the reply and exit; - reads it from stdin.
    """
    not_together({"--in": in_, "--continue": continue_})
    not_together({"--project": project, "--no-project": no_project})
    for option, text in (("--project", project), ("--no-project", no_project), ("--title", title)):
        not_together({option: text, "--in" if in_ else "--continue": in_ or continue_}, f"{option} is for a new chat")
    if sys.stdin is None and once is None:
        raise BadStdin("Cannot read from stdin: it is closed.", "Pass a message with --once.")
    typing = once is None and sys.stdin.isatty() and sys.stdout.isatty()
    if typing and options.json:
        raise BadText("A conversation in a terminal is not JSON.", "Use --once, or pipe the messages in.")
    said = iter([given(once)]) if once is not None else messages()
    first = None if typing else next(said, None)
    if first is None and not typing:
        raise BadStdin("Nothing was said: stdin is empty.", "Say something with --once.")
    server = Server(options.data)
    thread = _thread(server, agent, in_, continue_, "" if no_project else project, title)
    whom = agent if in_ is not None else None
    if first is None:
        # It loads prompt_toolkit.
        from clew.cli.typed_chat import TypedChat  # noqa: PLC0415

        return TypedChat(options, thread, whom).run()
    return _Conversation(server, thread, whom, as_json=options.json).piped(chain([first], said))


def _thread(
    server: Server, agent: str | None, in_: str | None, go_on: bool, project: str | None, title: str
) -> ThreadView:
    if in_ is not None:
        return get_thread(server, in_)
    agent = agent or _only_agent(server)
    if go_on:
        query: Query = {"kind": "chat", "state": "open", "agent": agent, "limit": 1}
        latest = read_all(ThreadView, server.get("/threads", query))
        if latest:
            return latest[0]
    if project is None:
        project = project_here(server)
        if project is not None:
            note(f"Working in project {project}, because you are in its directory. --no-project works in no project.")
    new = {"agent": agent, "project": project or None, "title": title}
    return read(ThreadView, server.post("/chats", new))


def _only_agent(server: Server) -> str:
    agents = [each.name for each in read_all(AgentView, server.get("/agents"))]
    match agents:
        case []:
            raise WhichAgent("No agents.", "Add one with `clew agent add`.")
        case [one]:
            return one
        case _:
            raise WhichAgent(f"There are several agents: {', '.join(agents)}.", "Choose one: `clew chat NAME`.")


class _Conversation:
    def __init__(self, server: Server, thread: ThreadView, agent: str | None, *, as_json: bool) -> None:
        self._server = server
        self._thread = thread
        self._agent = agent
        self._json = as_json

    def say(self, text: str) -> ExitStatus:
        """Sends a message and shows its turn. Ctrl-C interrupts the agent; a second one stops watching."""
        said = send(self._server, self._thread.ref, {"text": checked(text), "agent": self._agent})
        if self._json:
            tell_json(said)
        wake = read(Spoken, said).wake
        if wake is None:
            note(nobody_woken(self._thread.ref))
            return ExitStatus.DONE
        turn = Turn(self._server, wake, answer=at_terminal(self._server, as_json=self._json), as_json=self._json)
        try:
            return turn.show()
        except KeyboardInterrupt:
            try:
                turn.stop()
            except Fault as fault:
                tell_fault(fault, as_json=self._json)
            return turn.show()

    def piped(self, lines: Iterable[str]) -> ExitStatus:
        """One line after the other, each after the reply to the one before."""
        return max(map(self.say, lines), default=ExitStatus.DONE)
