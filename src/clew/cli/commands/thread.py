"""`clew threads` and `clew thread`: list threads, show one, and set the policy for messages to a busy agent."""

import re
import time
from typing import Annotated, Literal

from cyclopts import App, Parameter

from clew.cli.activity import approval_lines
from clew.cli.answers import get_thread, print_table, print_view
from clew.cli.changes import changes_in
from clew.cli.client import Server, part, thread_part
from clew.cli.commands.runs import state_of
from clew.cli.commands.usage import used_words
from clew.cli.input import OPTIONS, BadText, Last, Limit, Options
from clew.cli.output import facts, tell
from clew.cli.safe_text import one_line, safe
from clew.cli.times import moment, until
from clew.ports.fault import Fault
from clew.protocol.views import EntryView, LaneView, ThreadPage, ThreadView


class WhichAgent(Fault):
    code = "cli:which-agent"


_MEANS = {
    "queue": "wait for the next turn",
    "steer": "are sent during the turn, if the agent supports it",
    "interrupt": "interrupt the turn and start the next one",
    "reject": "are rejected",
}

Ref = Annotated[
    str, Parameter(metavar="THREAD", help="The thread: issue-3 or 3, chat-1, own-ada, a subject, or an id.")
]

app = App(
    name="thread",
    help="Show a thread, or set how messages are handled while its agent is busy.",
    help_format="markdown",
)


@app.command
def show(ref: Ref, /, *, last: Last = 20, options: Options = OPTIONS) -> None:
    """Show a thread: its state, workspaces, runs and entries.

    For example:

        clew thread show chat-1

        clew thread show issue-3 --last 200

    Parameters
    ----------
    last
        How many of the latest entries to show.
    """
    show_page(options, ref, last)


@app.command
def overlap(
    ref: Ref,
    policy: Literal["queue", "steer", "interrupt", "reject"],
    /,
    *,
    agent: str | None = None,
    options: Options = OPTIONS,
) -> None:
    """Set how messages are handled while the agent is busy.

    They wait for the next turn (queue, the default), are sent during the turn (steer), interrupt it (interrupt), or are
    rejected (reject). To steer with a single message, use `clew say --steer`.

    For example:

        clew thread overlap chat-1 steer

        clew thread overlap issue-3 reject --agent reviewer

    Parameters
    ----------
    policy
        queue, steer, interrupt or reject.
    agent
        The agent it applies to. Default: the thread's agent.
    """
    server = Server(options.data)
    path = f"/threads/{thread_part(ref)}/lanes/{part(agent or thread_agent(server, ref))}"
    said = server.patch(path, {"overlap": policy})
    print_view(
        options,
        said,
        LaneView,
        lambda lane: tell(f"Messages in {named(ref)} while {lane.agent} is busy {_MEANS[lane.overlap]}."),
    )


def thread_agent(server: Server, ref: str) -> str:
    thread = get_thread(server, ref)
    if thread.assignee is None:
        raise WhichAgent(f"{thread.ref} has no agent.", "Name one: --agent NAME.")
    return thread.assignee


_STATES = ("open", "closed", "all")


def threads(
    *,
    kind: str | None = None,
    state: str = "open",
    agent: str | None = None,
    limit: Limit = 30,
    options: Options = OPTIONS,
) -> None:
    """List threads (issues, chats, agents' own, subjects), newest first.

    For example:

        clew threads

        clew threads --kind chat --agent ada --state all

    Parameters
    ----------
    kind
        Only this kind: issue, chat, own (an agent's own thread) or subject (something outside).
    state
        open, closed or all.
    agent
        Only threads of this agent.
    """
    list_threads(options, kind, state, agent, limit)


def list_threads(options: Options, kind: str | None, state: str, agent: str | None, limit: int) -> None:
    if state not in _STATES:
        raise BadText(f"Unknown thread state {state!r}.", f"Use one of: {', '.join(_STATES)}.")
    query = {"kind": kind, "state": None if state == "all" else state, "agent": agent, "limit": limit}
    nothing = "No threads." if state == "all" else f"No {state} threads."
    print_table(options, Server(options.data).get("/threads", query), ThreadView, _row, nothing, _NARROW)


_NARROW = ("entries", "opened", "project", "updated")


def _row(thread: ThreadView) -> dict[str, str]:
    return {
        "thread": thread.ref,
        "opened": moment(thread.created_at),
        "status": thread.stage or (thread.status if thread.state == "open" else thread.state),
        "title": one_line(thread.title, 60),
        "agent": thread.assignee or "",
        "project": thread.project or "",
        "entries": str(thread.entries),
        "updated": moment(thread.updated_at),
    }


def show_page(options: Options, ref: str, last: int) -> None:
    said = Server(options.data).get(f"/threads/{thread_part(ref)}", {"limit": last})
    print_view(options, said, ThreadPage, _tell_page, long=True)


def _status(thread: ThreadView) -> str:
    return thread.status if thread.until is None else f"{thread.status} {until(thread.until, time.time())}"


def _tell_page(page: ThreadPage) -> None:
    thread = page.thread
    tell(f"{thread.ref}: {one_line(thread.title)}" if thread.title else thread.ref)
    state = f"{thread.stage or thread.state}, {_status(thread)}"
    facts(
        [
            ("  state", state + (f": {one_line(thread.words)}" if thread.words else "")),
            ("  project", thread.project or ""),
            ("  agent", thread.assignee or ""),
            ("  opened", moment(thread.created_at)),
            *((f"  {lane.agent}", _place(lane, thread)) for lane in page.lanes),
            *(("  run", f"{run.ref} {state_of(run)} {run.decision or ''}") for run in page.runs[:3]),
            ("  used", used_words(page.used)),
            *((f"  {lane.agent} may", "\n".join(lane.allowed)) for lane in page.lanes if lane.allowed),
        ]
    )
    if page.earlier:
        tell("\n(There are earlier entries; show more with --last.)")
    for entry in page.entries:
        _tell_entry(entry)
    for approval in page.approvals:
        if approval.state == "pending":
            tell("")
            for line in approval_lines(approval):
                tell(line)
            tell(f"  id {approval.id}")


def _place(lane: LaneView, thread: ThreadView) -> str:
    """Where an agent works in a thread, what it changed there, and who else is there; a line each."""
    lines = [lane.directory or "no directory yet", f"branch {lane.branch}" if lane.branch else ""]
    lines.append(changes_in(lane, thread))
    lines.append(f"waits: {lane.checked_out} works there" if lane.checked_out else "")
    return "\n".join(line for line in lines if line)


def _tell_entry(entry: EntryView) -> None:
    who = entry.author if entry.author_kind == entry.author else f"{entry.author} ({entry.author_kind})"
    tell(f"\n#{entry.seq} {one_line(who)}, {moment(entry.at)}{_fate(entry)}")
    for line in () if entry.replaced_by and not entry.taken_back else safe(entry.text).splitlines():
        tell(f"  {line}".rstrip())


def _fate(entry: EntryView) -> str:
    """What became of a message that was changed while it waited."""
    if entry.taken_back:
        return ": taken back"
    if entry.replaced_by is not None:
        return f": replaced by #{entry.replaced_by}"
    if entry.replaces is not None:
        return f": in place of #{entry.replaces}" if entry.text else f": took back #{entry.replaces}"
    return ""


def named(ref: str, kind: str = "issue") -> str:
    """Expands a number for a sentence: 3 or #3 is issue-3. The server understands both."""
    number = re.fullmatch(r"#?(\d+)", ref)
    return f"{kind}-{number[1]}" if number else ref
