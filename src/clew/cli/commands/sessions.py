"""`clew sessions` and `clew adopt`: agents' own conversations, recorded in Clew or not."""

from typing import Annotated

from cyclopts import Parameter

from clew.cli.answers import get_thread, print_table, print_view, read, read_all
from clew.cli.client import Server, thread_part
from clew.cli.commands.thread import WhichAgent
from clew.cli.input import OPTIONS, Limit, Options, name_given
from clew.cli.misuse import not_together
from clew.cli.output import ExitStatus, tell, tell_answer
from clew.cli.times import moment
from clew.ports.fault import Fault
from clew.protocol.checks import ReleasedView
from clew.protocol.views import FoundSessionView, SessionView, ThreadPage

_DEADLINE = 120.0
"""Every installed agent is asked for its sessions."""


class NoSuchSession(Fault):
    code = "cli:no-such-session"


_MOST = 50


def sessions(
    *,
    thread: str | None = None,
    agent: str | None = None,
    found: bool = False,
    limit: Annotated[Limit | None, Parameter(show_default=lambda _: str(_MOST))] = None,
    options: Options = OPTIONS,
) -> None:
    """List sessions recorded in Clew, or with --found those that the agents on this machine have.

    For example:

        clew sessions --thread issue-3

        clew sessions --found

    Parameters
    ----------
    thread
        Only sessions of this thread.
    agent
        Only sessions of this agent; with --found, those in its home.
    found
        Ask the installed agents for their sessions. Continue one in a thread with `clew adopt`.
    """
    not_together({"--found": found, "--thread": thread}, "what an agent has itself is in no thread")
    not_together({"--found": found, "--limit": limit}, "all that there are are listed")
    server = Server(options.data)
    if found:
        said = server.get("/sessions/found", {"agent": agent}, deadline=_DEADLINE)
        print_table(options, said, FoundSessionView, _found_row, "No agent on this machine has a session.")
    else:
        said = server.get("/sessions", {"thread": thread, "agent": agent, "limit": limit or _MOST})
        print_table(options, said, SessionView, _row, "No sessions.", ("seen", "turns", "gen", "proven", "provider"))


def _row(session: SessionView) -> dict[str, str]:
    return {
        "session": session.id,
        "thread": session.thread,
        "agent": session.agent,
        "gen": str(session.generation),
        "provider": session.provider,
        "state": "superseded" if session.superseded else session.state,
        "turns": str(session.turns),
        "seen": str(session.seen),
        "directory": session.directory,
        "proven": moment(session.proven_at) or "never",
    }


def _found_row(session: FoundSessionView) -> dict[str, str]:
    return {
        "session": session.native_id,
        "provider": session.provider,
        "directory": session.directory or "",
        "title": session.title,
        "turns": "" if session.turns is None else str(session.turns),
        "updated": moment(session.updated_at),
        "thread": session.thread or "",
    }


def adopt(
    thread: str,
    session: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    agent: str | None = None,
    runtime: str | None = None,
    options: Options = OPTIONS,
) -> None:
    """Continue a session that an agent already has in a thread: the next wake resumes it.

    For example:

        clew adopt chat-1 5f2a9c

        clew adopt issue-3 5f2a9c --agent ada

    Parameters
    ----------
    thread
        The thread: issue-3 or 3, chat-1, or an id.
    session
        The agent's own session id, or a unique prefix. See `clew sessions --found`.
    agent
        The agent that continues it. Default: the thread's agent.
    runtime
        The runtime it is on, for a session that `clew sessions --found` does not list.
    """
    server = Server(options.data)
    native = name_given(session, "session id")
    if runtime is None:
        one = _only_one(server, native)
        native, runtime = one.native_id, one.runtime
    agent = agent or get_thread(server, thread).assignee
    if agent is None:
        raise WhichAgent(f"{thread} has no agent.", "Name one: --agent NAME.")
    body = {"agent": agent, "runtime": runtime, "native_id": native}
    said = server.post(f"/threads/{thread_part(thread)}/adopt", body, _DEADLINE)
    print_view(options, said, SessionView, lambda kept: _tell_adopted(server, kept))


def release(thread: str, /, *, options: Options = OPTIONS) -> ExitStatus:
    """Let go of a thread's sessions, so that you can open them in the agent itself.

    After a turn, Clew keeps an agent's session open for ten minutes. This ends that at once. Nothing is lost: the next
    message opens the session again. A session that an agent is working in is not let go.

    For example:

        clew release issue-3

    Parameters
    ----------
    thread
        The thread: issue-3, chat-1, own-ada, a subject, or an id.
    """
    said = Server(options.data).post(f"/threads/{thread_part(thread)}/release", deadline=_DEADLINE)
    found = read(ReleasedView, said)
    tell_answer(said, lambda: tell("\n".join(_released(found))), as_json=options.json)
    return ExitStatus.FAILED if found.busy and not found.released else ExitStatus.DONE


def _released(found: ReleasedView) -> list[str]:
    lines = [f"Let go of session {native}; you can open it now." for native in found.released]
    lines += [
        f"{run} works in {found.thread}, so its session stays open. Stop it with `clew interrupt {run}`."
        for run in found.busy
    ]
    return lines or [f"No session of {found.thread} is kept open."]


def _tell_adopted(server: Server, kept: SessionView) -> None:
    """The directory is the one the agent will work in: that of the session, or the thread's own."""
    page = read(ThreadPage, server.get(f"/threads/{thread_part(kept.thread)}", {"limit": 1}))
    lane = next((lane for lane in page.lanes if lane.agent == kept.agent), None)
    there = None if lane is None else lane.directory
    project = page.thread.project
    if there == kept.directory or (there is None and project is None):
        where = f"and works in {kept.directory}"
    else:
        place = there or f"a new worktree of {project}"
        where = f"and works in {place}: its history is copied there, and the session in {kept.directory} stays as it is"
    tell(f"{kept.thread} continues session {kept.native_id} with {kept.agent}, {where}.")
    if page.thread.assignee != kept.agent:
        how = f"`clew say {kept.thread} TEXT --to {kept.agent}`"
        tell(f"Messages there wake {page.thread.assignee}; wake {kept.agent} with {how}.")


def _only_one(server: Server, prefix: str) -> FoundSessionView:
    every = read_all(FoundSessionView, server.get("/sessions/found", deadline=_DEADLINE))
    matching = [each for each in every if each.native_id == prefix] or [
        each for each in every if each.native_id.startswith(prefix)
    ]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise NoSuchSession(f"No agent on this machine has a session {prefix!r}.", "See `clew sessions --found`.")
    named = ", ".join(each.native_id for each in matching[:5])
    raise NoSuchSession(
        f"{prefix!r} matches {len(matching)} sessions: {named}.", "Type more of the id, or name its --runtime."
    )
