"""`clew issue`: work that is given to agents."""

from typing import Annotated, Any

from cyclopts import App, Parameter

from clew.cli.client import Server, part
from clew.cli.ending import Ending
from clew.cli.options import OPTIONS, Last, Limit, Options, Text, Wait
from clew.cli.reading import read
from clew.cli.saying import say_in
from clew.cli.telling import tell, tell_as_is
from clew.cli.texts import BadText, checked, given, piped
from clew.cli.threads import list_threads, named, show_page
from clew.cli.watching import watch_thread
from clew.protocol.views import ThreadPage, ThreadView

app = App(name="issue", help="Open, assign, discuss and close issues.", help_format="markdown")

Issue = Annotated[str, Parameter(help="The issue: 3 or issue-3.")]


@app.command
def new(
    title: Text,
    /,
    *,
    body: Text = "",
    project: str | None = None,
    assign: str | None = None,
    wait: Wait = False,
    options: Options = OPTIONS,
) -> Ending:
    """Open an issue. Assigned to an agent, it is begun at once.

    For example:

        clew issue new "The login page is blank" --project web --assign ada

        clew issue new "Crash at start" --body - --assign ada -w < trace.txt

    Parameters
    ----------
    title
        What it is about, in one line.
    body
        The details; - reads them from stdin.
    project
        Where it is to be worked on.
    assign
        The agent that is to do it.
    """
    issue: dict[str, Any] = {
        "title": given(title, "title"),
        "body": checked(piped() if body == "-" else body, "body"),
        "project": project,
        "assignee": assign,
    }
    server = Server(options.data)
    said = server.post("/issues", issue)
    thread = read(ThreadPage, said).thread
    ref = thread.ref
    if options.json:
        tell_as_is(said)
    elif thread.assignee:
        tell(f"{ref} is open, and {thread.assignee} is woken. See `clew issue show {ref}`.")
    else:
        tell(f"{ref} is open, and nobody's yet. Give it to somebody with `clew issue assign {ref} AGENT`.")
    if not (wait and thread.assignee):
        return Ending.DONE
    return watch_thread(server, ref, as_json=options.json)


@app.command(name="list")
def list_(*, state: str = "open", agent: str | None = None, limit: Limit = 30, options: Options = OPTIONS) -> None:
    """List issues, those that were opened last first.

    For example:

        clew issue list

        clew issue list --agent ada --state closed

    Parameters
    ----------
    state
        open, closed or all.
    agent
        Only those of this agent.
    """
    list_threads(options, "issue", state, agent, limit)


@app.command
def show(issue: Issue, /, *, last: Last = 20, options: Options = OPTIONS) -> None:
    """Show an issue: what goes on, where it is worked on, and what was said.

    For example:

        clew issue show 3

    Parameters
    ----------
    last
        How many of the latest entries to show.
    """
    show_page(options, named(issue, "issue"), last)


@app.command
def assign(
    issue: Issue,
    agent: str | None = None,
    /,
    *,
    nobody: bool = False,
    wait: Wait = False,
    options: Options = OPTIONS,
) -> Ending:
    """Give an issue to an agent, which begins at once; or to nobody.

    For example:

        clew issue assign 3 ada

        clew issue assign 3 --nobody

    Parameters
    ----------
    agent
        Who is to do it.
    nobody
        Take it from whoever has it.
    """
    if (agent is None) is not nobody:
        raise BadText("An issue is given to one agent, or to nobody.", "Name the agent, or say --nobody.")
    server, ref = Server(options.data), named(issue, "issue")
    thread = _tell(options, server.post(f"/threads/{part(ref)}/assign", {"agent": agent}))
    if not wait or nobody:
        return Ending.DONE
    return watch_thread(server, thread.ref, as_json=options.json)


@app.command
def comment(
    issue: Issue,
    text: Text,
    /,
    *,
    to: str | None = None,
    silent: bool = False,
    wait: Wait = False,
    options: Options = OPTIONS,
) -> Ending:
    """Say something about an issue. It wakes the agent that has it.

    For example:

        clew issue comment 3 "It happens on Firefox only." -w

        clew issue comment 3 - --silent < notes.txt

    Parameters
    ----------
    text
        What to say; - reads it from stdin.
    to
        Another agent to wake by it.
    silent
        Wake nobody.
    """
    return say_in(options, named(issue, "issue"), text, agent=to, wakes=not silent, wait=wait)


@app.command
def close(issue: Issue, /, *, options: Options = OPTIONS) -> None:
    """Close an issue. What is queued for it is cancelled.

    For example:

        clew issue close 3
    """
    _tell(options, Server(options.data).post(f"/threads/{part(named(issue, 'issue'))}/close"))


@app.command
def reopen(issue: Issue, /, *, options: Options = OPTIONS) -> None:
    """Open a closed issue again.

    For example:

        clew issue reopen 3
    """
    _tell(options, Server(options.data).post(f"/threads/{part(named(issue, 'issue'))}/reopen"))


def _tell(options: Options, said: bytes) -> ThreadView:
    thread = read(ThreadView, said)
    if options.json:
        tell_as_is(said)
    else:
        whose = f"{thread.assignee} has it" if thread.assignee else "nobody has it"
        tell(f"{thread.ref} is {thread.state}, and {whose}.")
    return thread
