"""`clew threads` and `clew thread`: list threads, show and mark one, and set how a busy agent takes messages."""

import re
import time
from typing import Annotated, Literal

from cyclopts import App, Parameter

from clew.cli.activity import approval_lines
from clew.cli.answers import get_thread, print_table, print_view
from clew.cli.answers import read as read_view
from clew.cli.changes import changes_in
from clew.cli.client import Server, part, thread_part
from clew.cli.commands.runs import ends_as_usual, state_of
from clew.cli.commands.usage import used_words
from clew.cli.input import OPTIONS, Exact, Last, Limit, Options
from clew.cli.marks import mark_page
from clew.cli.output import facts, tell
from clew.cli.safe_text import one_line, safe
from clew.cli.times import moment, until
from clew.ports.fault import Fault
from clew.protocol.views import EntryView, LaneView, RunView, ThreadPage, ThreadView


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
    help="Show a thread, pin or archive it, or set how messages are handled while its agent is busy.",
    help_format="markdown",
)


@app.command
def show(ref: Ref, /, *, last: Last = 20, options: Options = OPTIONS) -> None:
    """Show a thread: its state, workspaces, runs and entries. What was shown counts as read, except with --json.

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


@app.command
def read(ref: Ref, /, *, options: Options = OPTIONS) -> None:
    """Mark a thread as read. `clew thread show` and its page do so too.

    For example:

        clew thread read issue-3
    """
    _mark(options, ref, "read", "Marked {} as read.")


@app.command
def unread(ref: Ref, /, *, options: Options = OPTIONS) -> None:
    """Mark a thread as unread.

    For example:

        clew thread unread issue-3
    """
    _mark(options, ref, "unread", "Marked {} as unread.")


@app.command
def pin(ref: Ref, /, *, options: Options = OPTIONS) -> None:
    """Pin a thread: it stands first on the home page.

    For example:

        clew thread pin issue-3
    """
    _mark(options, ref, "pin", "Pinned {}.")


@app.command
def unpin(ref: Ref, /, *, options: Options = OPTIONS) -> None:
    """Unpin a thread.

    For example:

        clew thread unpin issue-3
    """
    _mark(options, ref, "unpin", "Unpinned {}.")


@app.command
def archive(ref: Ref, /, *, options: Options = OPTIONS) -> None:
    """Archive a thread: it is no longer listed.

    It stays in `clew threads --only archived` and in the search, and comes back when somebody speaks in it or something
    in it needs you. Refused while one of its runs is queued, live or waits for an answer.

    For example:

        clew thread archive issue-3
    """
    _mark(options, ref, "archive", "Archived {}. It comes back when something new is in it.")


@app.command
def unarchive(ref: Ref, /, *, options: Options = OPTIONS) -> None:
    """Bring an archived thread back into the lists.

    For example:

        clew thread unarchive issue-3
    """
    _mark(options, ref, "unarchive", "{} is listed again.")


def _mark(options: Options, ref: str, mark: str, words: str) -> None:
    said = Server(options.data).post(f"/threads/{thread_part(ref)}/{mark}")
    print_view(options, said, ThreadView, lambda thread: tell(words.format(thread.ref)))


def thread_agent(server: Server, ref: str) -> str:
    thread = get_thread(server, ref)
    if thread.assignee is None:
        raise WhichAgent(f"{thread.ref} has no agent.", "Name one: --agent NAME.")
    return thread.assignee


State = Literal["open", "closed", "all"]


def threads(
    *,
    kind: Annotated[Literal["issue", "chat", "own", "subject"] | None, Exact] = None,
    state: Annotated[State | None, Exact] = None,
    agent: str | None = None,
    only: Literal["unread", "pinned", "archived"] | None = None,
    limit: Limit = 30,
    options: Options = OPTIONS,
) -> None:
    """List threads (issues, chats, agents' own, subjects), newest first, without those that are archived.

    For example:

        clew threads

        clew threads --kind chat --agent ada --state all

        clew threads --only unread

    Parameters
    ----------
    kind
        Only this kind: issue, chat, own (an agent's own thread) or subject (something outside).
    state
        open, closed or all. Default: open; with --only archived, all.
    agent
        Only threads of this agent.
    only
        Only those that are unread, pinned (the last pinned first) or archived.
    """
    of: State = "all" if only == "archived" else "open"
    list_threads(options, kind, of if state is None else state, agent, limit, only)


def list_threads(
    options: Options, kind: str | None, state: State, agent: str | None, limit: int, only: str | None = None
) -> None:
    query = {"kind": kind, "state": None if state == "all" else state, "agent": agent, "limit": limit, "only": only}
    nothing = "No {}threads.".format("".join(f"{word} " for word in (only, state) if word and word != "all"))
    print_table(options, Server(options.data).get("/threads", query), ThreadView, _row, nothing, _NARROW)


_NARROW = ("entries", "opened", "project", "updated")


def marks_of(thread: ThreadView) -> str:
    """Its marks in words, as: unread, pinned."""
    marks = thread.marks
    set_ = ("unread", marks is not None and marks.unread), ("pinned", marks is not None and marks.pinned)
    return ", ".join(name for name, on in (*set_, ("archived", thread.archived)) if on)


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
        "marks": marks_of(thread),
    }


def show_page(options: Options, ref: str, last: int) -> None:
    server = Server(options.data)
    said = server.get(f"/threads/{thread_part(ref)}", {"limit": last})
    print_view(options, said, ThreadPage, _tell_page, long=True)
    if not options.json:
        mark_page(server, read_view(ThreadPage, said))


def _status(thread: ThreadView) -> str:
    return thread.status if thread.until is None else f"{thread.status} {until(thread.until, time.time())}"


def _tell_page(page: ThreadPage) -> None:
    thread = page.thread
    tell(f"{thread.ref}: {one_line(thread.title)}" if thread.title else thread.ref)
    state = f"{thread.stage or thread.state}, {_status(thread)}"
    facts(
        [
            ("  state", state + (f": {one_line(thread.words)}" if thread.words else "")),
            ("  marks", marks_of(thread)),
            ("  project", thread.project or ""),
            ("  agent", thread.assignee or ""),
            ("  opened", moment(thread.created_at)),
            *((f"  {lane.agent}", _place(lane, thread)) for lane in page.lanes),
            *(("  run", _run_words(run)) for run in page.runs[:3]),
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


def _run_words(run: RunView) -> str:
    words = f"{run.ref} {state_of(run)} {run.decision or ''}".strip()
    return words if ends_as_usual(run) or run.state != "succeeded" else f"{words}, without a reply"


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
