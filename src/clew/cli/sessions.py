"""`clew sessions` and `clew adopt`: conversations of agents, known to Clew or not."""

from typing import Annotated

from cyclopts import Parameter

from clew.cli.client import Server, part
from clew.cli.options import OPTIONS, Limit, Options
from clew.cli.reading import read, read_all
from clew.cli.table import table
from clew.cli.telling import tell, tell_as_is
from clew.cli.texts import BadText, given
from clew.cli.times import moment
from clew.protocol.views import FoundSessionView, SessionView, ThreadPage

_DEADLINE = 120.0
"""Every installed agent is asked for what it has."""


def sessions(
    *,
    thread: str | None = None,
    agent: str | None = None,
    found: bool = False,
    limit: Limit = 50,
    options: Options = OPTIONS,
) -> None:
    """List the sessions that Clew knows; with --found, those that the agents of this machine have.

    For example:

        clew sessions --thread issue-3

        clew sessions --found

    Parameters
    ----------
    thread
        Only those of this thread.
    agent
        Only those of this agent.
    found
        Ask the installed agents. What they have can be put under a thread with `clew adopt`.
    """
    server = Server(options.data)
    if found:
        return _found(server, options)
    said = server.get("/sessions", {"thread": thread, "agent": agent, "limit": limit})
    if options.json:
        return tell_as_is(said)
    return table(
        ("session", "thread", "agent", "gen", "provider", "state", "turns", "seen", "directory", "proven"),
        [
            (
                each.id,
                each.thread,
                each.agent,
                str(each.generation),
                each.provider,
                "superseded" if each.superseded else each.state,
                str(each.turns),
                str(each.seen),
                each.directory,
                moment(each.proven_at) or "never",
            )
            for each in read_all(SessionView, said)
        ],
        "There are no such sessions.",
    )


def _found(server: Server, options: Options) -> None:
    said = server.get("/sessions/found", deadline=_DEADLINE)
    if options.json:
        return tell_as_is(said)
    return table(
        ("session", "provider", "directory", "title", "turns", "updated", "thread"),
        [
            (
                each.native_id,
                each.provider,
                each.directory or "",
                each.title,
                "" if each.turns is None else str(each.turns),
                moment(each.updated_at),
                each.thread or "",
            )
            for each in read_all(FoundSessionView, said)
        ],
        "No agent of this machine has a session.",
    )


def adopt(
    thread: str,
    session: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    agent: str | None = None,
    runtime: str | None = None,
    options: Options = OPTIONS,
) -> None:
    """Put a session that an agent already has under a thread: the next wake goes on in it.

    For example:

        clew adopt chat-1 5f2a9c

        clew adopt issue-3 5f2a9c --agent ada

    Parameters
    ----------
    thread
        The thread: issue-3, chat-1, or an id.
    session
        The agent's own id of it, or a beginning that no other has. See `clew sessions --found`.
    agent
        Whose it is to be; the agent that has the thread without this.
    runtime
        Where it is, for one that `clew sessions --found` does not list.
    """
    server = Server(options.data)
    native = given(session, "id of the session")
    if runtime is None:
        one = _only_one(server, native)
        native, runtime = one.native_id, one.runtime
    agent = agent or read(ThreadPage, server.get(f"/threads/{part(thread)}", {"limit": 1})).thread.assignee
    if agent is None:
        raise BadText(f"{thread} has no agent.", "Say whose the session is to be, with --agent.")
    body = {"agent": agent, "runtime": runtime, "native_id": native}
    said = server.post(f"/threads/{part(thread)}/adopt", body, _DEADLINE)
    if options.json:
        return tell_as_is(said)
    kept = read(SessionView, said)
    return tell(f"{kept.thread} goes on in {kept.native_id}, in {kept.directory}, as generation {kept.generation}.")


def _only_one(server: Server, beginning: str) -> FoundSessionView:
    every = read_all(FoundSessionView, server.get("/sessions/found", deadline=_DEADLINE))
    fitting = [each for each in every if each.native_id == beginning] or [
        each for each in every if each.native_id.startswith(beginning)
    ]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise BadText(f"No agent of this machine has a session {beginning}.", "See `clew sessions --found`.")
    named = ", ".join(each.native_id for each in fitting[:5])
    raise BadText(f"{beginning} begins {len(fitting)} sessions: {named}.", "Write more of it, or name its --runtime.")
