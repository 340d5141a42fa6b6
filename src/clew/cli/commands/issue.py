"""`clew issue`: open, assign, edit, comment on and close issues."""

from typing import Annotated, Any

from cyclopts import App, Parameter

from clew.cli.answers import get_thread, read
from clew.cli.changes import unmerged
from clew.cli.client import Server, thread_part
from clew.cli.commands.say import say_in
from clew.cli.commands.thread import State, list_threads, named, show_page
from clew.cli.input import OPTIONS, Last, Limit, Options, Text, Wait, given, name_given, optional
from clew.cli.misuse import Misused, needs, not_together
from clew.cli.output import ExitStatus, tell, tell_answer
from clew.cli.safe_text import one_line
from clew.cli.turn import watch_thread
from clew.protocol.views import ThreadPage, ThreadView

app = App(name="issue", help="Open, assign, comment on and close issues.", help_format="markdown")

From = Annotated[
    str | None,
    Parameter(
        name="--from",
        metavar="BRANCH|AGENT|base",
        help="Where the branch of an agent that is new here begins. Default: the newest branch of the thread.",
    ),
]

Issue = Annotated[str, Parameter(help="The issue: 3 or issue-3.")]


_ALREADY = (
    "{ref} is {assigned} already; it was not woken again. Tell it what to do with `clew issue comment {ref} TEXT`."
)


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
) -> ExitStatus:
    """Open an issue. An assigned agent starts at once.

    For example:

        clew issue new "The login page is blank" --project web --assign ada

        clew issue new "Crash at start" --body - --assign ada -w < trace.txt

    Parameters
    ----------
    title
        The title, in one line.
    body
        The description; - reads it from stdin.
    project
        The project to work in.
    assign
        The agent to assign it to.
    """
    needs({"--wait": wait}, "--assign: no agent is woken", assign is not None, "Add --assign AGENT.")
    issue: dict[str, Any] = {
        "title": given(title, "title"),
        "body": optional(body, "body"),
        "project": project,
        "assignee": assign,
    }
    server = Server(options.data)
    said = server.post("/issues", issue)
    thread = read(ThreadPage, said).thread
    ref = thread.ref
    text = (
        f"Opened {ref}; {thread.assignee} is woken. See `clew issue show {ref}`."
        if thread.assignee
        else f"Opened {ref}, not assigned. Assign it with `clew issue assign {ref} AGENT`."
    )
    tell_answer(said, lambda: tell(text), as_json=options.json)
    if not (wait and thread.assignee):
        return ExitStatus.DONE
    return watch_thread(server, ref, as_json=options.json)


@app.command(name="list")
def list_(*, state: State = "open", agent: str | None = None, limit: Limit = 30, options: Options = OPTIONS) -> None:
    """List issues, newest first.

    For example:

        clew issue list

        clew issue list --agent ada --state closed

    Parameters
    ----------
    state
        open, closed or all.
    agent
        Only issues of this agent.
    """
    list_threads(options, "issue", state, agent, limit)


@app.command
def show(issue: Issue, /, *, last: Last = 20, options: Options = OPTIONS) -> None:
    """Show an issue: its state, workspaces, runs and entries.

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
    from_: From = None,
    wait: Wait = False,
    options: Options = OPTIONS,
) -> ExitStatus:
    """Assign an issue to an agent, which starts at once; or unassign it.

    An agent that has the issue already is not woken again; `clew issue comment` tells it what to do.
    An agent that is new in the issue begins from its newest branch, and is told whose work it is and what changed.

    For example:

        clew issue assign 3 ada

        clew issue assign 3 --nobody

        clew issue assign 3 cody --from base

    Parameters
    ----------
    agent
        The agent to assign it to.
    nobody
        Unassign it.
    """
    if (agent is None) is not nobody:
        raise Misused("Name either an agent or --nobody.", "For example: `clew issue assign 3 ada`.")
    for option, value in {"--wait": wait, "--from": from_}.items():
        not_together({"--nobody": nobody, option: value}, "no agent is woken")
    server, ref = Server(options.data), named(issue, "issue")
    before = get_thread(server, ref)
    same = agent is not None and before.assignee == agent
    body = {"agent": agent} | ({} if from_ is None else {"begin_from": from_})
    said = server.post(f"/threads/{thread_part(ref)}/assign", body)
    thread = _tell(options, _ALREADY if same else "{ref} is {assigned}.", said)
    # An agent that has the issue already is not woken again; what it did last is not shown as if it were new.
    if not wait or nobody or (same and before.status == "idle"):
        return ExitStatus.DONE
    return watch_thread(server, thread.ref, as_json=options.json)


@app.command
def edit(
    issue: Issue,
    /,
    *,
    title: Text | None = None,
    body: Text | None = None,
    project: str | None = None,
    options: Options = OPTIONS,
) -> None:
    """Change an issue's title, description or project. It wakes no agent.

    A new description is added to the thread; earlier entries stay. In another project, each agent gets a new worktree
    with its next run, and its conversation goes on there. What it left in the old directory stays where it is.

    For example:

        clew issue edit 3 --title "The login page is blank on Firefox"

        clew issue edit 3 --project web

    Parameters
    ----------
    title
        The title, in one line.
    body
        The description; - reads it from stdin.
    project
        The project to work in.
    """
    check = {"title": (given, title), "body": (given, body), "project": (name_given, project)}
    change = {name: checked(text, name) for name, (checked, text) in check.items() if text is not None}
    if not change:
        raise Misused("Nothing to change.", "Give --title, --body or --project.")
    server, ref = Server(options.data), named(issue, "issue")
    said = server.patch(f"/threads/{thread_part(ref)}", change)
    tell_answer(said, lambda: _tell_edited(read(ThreadPage, said), project), as_json=options.json)


def _tell_edited(page: ThreadPage, project: str | None) -> None:
    title = f": {one_line(page.thread.title)}" if page.thread.title else ""
    tell(f"Changed {page.thread.ref}{title}" + (f" ({project})" if project else "") + ".")
    for lane in page.lanes if project else ():
        if lane.directory is not None:
            tell(f"{lane.agent}'s next run works in {project}. What it left in {lane.directory} stays there.")


@app.command
def comment(
    issue: Issue,
    text: Text,
    /,
    *,
    to: str | None = None,
    from_: From = None,
    silent: bool = False,
    wait: Wait = False,
    options: Options = OPTIONS,
) -> ExitStatus:
    """Comment on an issue. This wakes its agent.

    For example:

        clew issue comment 3 "It happens on Firefox only." -w

        clew issue comment 3 - --silent < notes.txt

        clew issue comment 3 "Review this, please." --to cody -w

    Parameters
    ----------
    text
        The comment; - reads it from stdin.
    to
        Wake this agent instead.
    silent
        Wake no agent.
    """
    return say_in(options, named(issue, "issue"), text, agent=to, wakes=not silent, wait=wait, begin=from_)


@app.command
def close(issue: Issue, /, *, options: Options = OPTIONS) -> None:
    """Close an issue. Its pending wakes are cancelled. Work that is not merged is kept, and named.

    For example:

        clew issue close 3
    """
    was, said = _post(options, issue, "close")
    thread = _tell(options, "{ref} is closed already." if was == "closed" else "Closed {ref} ({assigned}).", said)
    if not options.json:
        for line in unmerged(Server(options.data), thread.ref):
            tell(line)


@app.command
def reopen(issue: Issue, /, *, options: Options = OPTIONS) -> None:
    """Reopen a closed issue.

    For example:

        clew issue reopen 3
    """
    was, said = _post(options, issue, "reopen")
    _tell(options, "{ref} is open already." if was == "open" else "Reopened {ref} ({assigned}).", said)


def _post(options: Options, issue: str, action: str) -> tuple[str, bytes]:
    """The state that it had before, and the answer."""
    server, ref = Server(options.data), named(issue, "issue")
    was = get_thread(server, ref).state
    return was, server.post(f"/threads/{thread_part(ref)}/{action}")


def _tell(options: Options, sentence: str, said: bytes) -> ThreadView:
    """`sentence` names the thread as {ref} and its agent as {assigned}."""
    thread = read(ThreadView, said)
    assigned = f"assigned to {thread.assignee}" if thread.assignee else "not assigned"
    text = sentence.format(ref=thread.ref, assigned=assigned)
    tell_answer(said, lambda: tell(text), as_json=options.json)
    return thread
