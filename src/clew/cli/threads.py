"""`clew threads`, and what other commands show of a thread."""

import re

from clew.cli.activity import asking
from clew.cli.client import Server, thread_part
from clew.cli.harmless import harmless, one_line
from clew.cli.options import OPTIONS, Limit, Options
from clew.cli.reading import read, read_all
from clew.cli.runs import state_of
from clew.cli.table import facts, table
from clew.cli.telling import tell, tell_as_is
from clew.cli.texts import BadText
from clew.cli.times import moment
from clew.protocol.views import EntryView, ThreadPage, ThreadView

_STATES = ("open", "closed", "all")


def threads(
    *,
    kind: str | None = None,
    state: str = "open",
    agent: str | None = None,
    limit: Limit = 30,
    options: Options = OPTIONS,
) -> None:
    """List threads: issues, chats and the agents' own, those that were opened last first.

    For example:

        clew threads

        clew threads --kind chat --agent ada --state all

    Parameters
    ----------
    kind
        Only issues (issue), chats (chat), the agents' own (own) or those of outside subjects (subject).
    state
        open, closed or all.
    agent
        Only those of this agent.
    """
    list_threads(options, kind, state, agent, limit)


def list_threads(options: Options, kind: str | None, state: str, agent: str | None, limit: int) -> None:
    if state not in _STATES:
        raise BadText(f"No thread is ever {state!r}.", f"Name one of {', '.join(_STATES)}.")
    query = {"kind": kind, "state": None if state == "all" else state, "agent": agent, "limit": limit}
    said = Server(options.data).get("/threads", query)
    if options.json:
        return tell_as_is(said)
    found = read_all(ThreadView, said)
    return table(
        ("thread", "opened", "status", "title", "agent", "project", "entries", "updated"),
        [
            (
                each.ref,
                moment(each.created_at),
                each.status if each.state == "open" else each.state,
                one_line(each.title, 60),
                each.assignee or "",
                each.project or "",
                str(each.entries),
                moment(each.updated_at),
            )
            for each in found
        ],
        "There are none." if state == "all" else f"There are none that are {state}.",
    )


def show_page(options: Options, ref: str, last: int) -> None:
    said = Server(options.data).get(f"/threads/{thread_part(ref)}", {"limit": last})
    if options.json:
        return tell_as_is(said)
    return tell_page(read(ThreadPage, said))


def tell_page(page: ThreadPage) -> None:
    thread = page.thread
    tell(f"{thread.ref}: {one_line(thread.title)}" if thread.title else thread.ref)
    facts(
        [
            ("  state", f"{thread.state}, {thread.status}" + (f": {one_line(thread.words)}" if thread.words else "")),
            ("  project", thread.project or ""),
            ("  agent", thread.assignee or ""),
            ("  begun", moment(thread.created_at)),
            *(
                (f"  {lane.agent}", f"{lane.directory or 'no directory yet'} {lane.branch or ''}")
                for lane in page.lanes
            ),
            *(("  run", f"{run.id} {state_of(run)} {run.decision or ''}") for run in page.runs[:3]),
        ]
    )
    if page.earlier:
        tell("\n(There are earlier entries; see them with --last.)")
    for entry in page.entries:
        tell_entry(entry)
    for approval in page.approvals:
        if approval.state == "pending":
            tell("")
            for line in asking(approval):
                tell(line)
            tell(f"  id {approval.id}")


def tell_entry(entry: EntryView) -> None:
    who = entry.author if entry.author_kind == entry.author else f"{entry.author} ({entry.author_kind})"
    tell(f"\n#{entry.seq} {one_line(who)}, {moment(entry.at)}")
    for line in harmless(entry.text).splitlines():
        tell(f"  {line}".rstrip())


def named(ref: str, kind: str) -> str:
    """Within its kind a thread may be called by its number: 3 or #3 is issue-3."""
    number = re.fullmatch(r"#?(\d+)", ref)
    return f"{kind}-{number[1]}" if number else ref
