"""Names that people type: agents and projects by name, threads by number, runs, wakes and approvals by a prefix.

An unknown name is refused with the names that exist; a prefix of several ids is refused, never guessed.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Table, bindparam, select

from clew.kernel import AgentId, AgentState, ProjectId, ThreadId, own_thread, read_subject
from clew.protocol.views import ProjectView
from clew.store.engine.dialect import storable
from clew.store.engine.statement import Row, Statement
from clew.store.faults import (
    Ambiguous,
    NoRunYet,
    NoSuchAgent,
    NoSuchApproval,
    NoSuchProject,
    NoSuchRun,
    NoSuchThread,
    NoSuchWake,
)
from clew.store.queries.agents import AgentRecord, agent_record
from clew.store.queries.projects import project_view
from clew.store.queries.threads import KINDS, newest_runs
from clew.store.schema.tables import agents, approvals, projects, runs, threads, wakes

_MOST_NAMES = 1000
_SHOWN = 5
_IDS_SHOWN = 3
_MOST_DIGITS = 9
_NUMBERED = re.compile(r"(?P<kind>[a-z]+)-(?P<number>[0-9]{1,9})")
_ISSUE = re.compile(r"#?(?P<number>[1-9][0-9]{0,8})")
"""Where a thread is asked for, a number alone is an issue."""
_RUN = "run"
_OWN = "own-"


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """What a use case has to know of a thread."""

    id: ThreadId
    kind: str
    state: str
    project: ProjectId | None
    assignee: AgentId | None


_agent = Statement(lambda _: select(agents).where(agents.c.name == bindparam("name")))
_agent_names = Statement(lambda _: select(agents.c.name, agents.c.state).order_by(agents.c.name).limit(_MOST_NAMES))
_project = Statement(lambda _: select(projects).where(projects.c.name == bindparam("name")))
_project_names = Statement(lambda _: select(projects.c.name).order_by(projects.c.name).limit(_MOST_NAMES))


_by_id = select(threads).where(threads.c.id == bindparam("id"))
_by_number = select(threads).where(
    threads.c.kind == bindparam("kind"), threads.c.number == bindparam("number"), threads.c.number.is_not(None)
)
# With a lock it is FOR SHARE: several wakes may have the thread locked at once, and closing it waits for them.
thread_statements = {
    False: (Statement(lambda _: _by_id), Statement(lambda _: _by_number)),
    True: (
        Statement(lambda _: _by_id.with_for_update(read=True)),
        Statement(lambda _: _by_number.with_for_update(read=True)),
    ),
}
_newest_numbers = Statement(
    lambda _: (
        select(threads.c.number)
        .where(threads.c.kind == bindparam("kind"), threads.c.number.is_not(None))
        .order_by(threads.c.number.desc())
        .limit(1)
    )
)


def _beginning_with(table: Table) -> Statement:
    return Statement(
        lambda _: (
            select(table.c.id, *(table.c[name] for name in ("number",) if name in table.c))
            .where(table.c.id >= bindparam("first"), table.c.id < bindparam("last"))
            .order_by(table.c.id)
            .limit(_IDS_SHOWN + 1)
        )
    )


runs_beginning = _beginning_with(runs)
run_numbered = Statement(lambda _: select(runs.c.id).where(runs.c.number == bindparam("number")))
_newest_run = Statement(lambda _: select(runs.c.number).order_by(runs.c.number.desc()).limit(1))
wakes_beginning = _beginning_with(wakes)
approvals_beginning = _beginning_with(approvals)


def agent_named(connection: Connection, name: str) -> AgentRecord:
    row = _agent.first(connection, name=storable(name))
    if row is None:
        known = _agent_names.rows(connection)
        there = [each["name"] for each in known if each["state"] != AgentState.ARCHIVED]
        removed = [each["name"] for each in known if each["state"] == AgentState.ARCHIVED]
        remedy = _what_there_is(name, there, "Add one with `clew agent add`.", removed)
        raise NoSuchAgent(f"There is no agent {name!r}.", remedy)
    return agent_record(row)


def project_named(connection: Connection, name: str) -> ProjectView:
    row = _project.first(connection, name=storable(name))
    if row is None:
        there = [each["name"] for each in _project_names.rows(connection)]
        remedy = _what_there_is(name, there, "Add one with `clew project add`.")
        raise NoSuchProject(f"There is no project {name!r}.", remedy)
    return project_view(row)


def thread_called(connection: Connection, ref: str, locked: bool = False) -> ThreadRecord:
    """The thread of a reference like issue-3, chat-1 or own-ada, of an outside subject, or of an id. `locked` locks it
    FOR SHARE until the transaction ends, so that it is closed before a wake is accepted or after, never between."""
    return thread_record(_thread_row(connection, ref, locked))


def thread_record(row: Row) -> ThreadRecord:
    return ThreadRecord(
        ThreadId(row["id"]),
        row["kind"],
        row["state"],
        None if row["project_id"] is None else ProjectId(row["project_id"]),
        None if row["assignee"] is None else AgentId(row["assignee"]),
    )


def _thread_row(connection: Connection, ref: str, locked: bool) -> Row:
    by_id, by_number = thread_statements[locked]
    if ref.startswith(_OWN):
        agent = agent_named(connection, ref.removeprefix(_OWN))
        row = by_id.first(connection, id=own_thread(agent.id))
        if row is None:
            words = f"Agent {agent.name!r} has no thread of its own yet."
            raise NoSuchThread(words, f"`clew wake {agent.name}` makes it.")
        return row
    if ":" in ref:
        return _of_subject(connection, by_id, ref)
    ref = _spelled_out(ref)
    numbered = _NUMBERED.fullmatch(ref)
    if numbered is not None:
        row = by_number.first(connection, kind=numbered["kind"], number=int(numbered["number"]))
        if row is not None:
            return row
    row = by_id.first(connection, id=storable(ref))
    if row is None:
        raise _no_thread(connection, ref)
    return row


def _spelled_out(ref: str) -> str:
    """3 and #3 are issue-3."""
    issue = _ISSUE.fullmatch(ref)
    return ref if issue is None else f"issue-{issue['number']}"


def _of_subject(connection: Connection, by_id: Statement, ref: str) -> Row:
    try:
        row = by_id.first(connection, id=read_subject(ref).thread)
    except ValueError as fault:
        raise NoSuchThread(str(fault), "Write it as source:name, as in github:acme/app#12.") from fault
    if row is None:
        raise NoSuchThread(
            f"There is no thread for {ref} yet.", f"Its first event makes one: `clew wake AGENT TEXT --subject {ref}`."
        )
    return row


def run_called(connection: Connection, text: str) -> str:
    """The full id of a run, given its number (run-17), the id, a prefix that only one run has, or a thread: its latest
    run, where one that has not ended goes first."""
    numbered = _NUMBERED.fullmatch(_spelled_out(text))
    if numbered is not None and numbered["kind"] == _RUN:
        row = run_numbered.first(connection, number=int(numbered["number"]))
        if row is not None:
            return str(row["id"])
    elif (numbered is not None and numbered["kind"] in KINDS) or text.startswith(_OWN) or ":" in text:
        return _latest_run(connection, text)
    try:
        return _unique(connection, runs_beginning, "rn_", text, NoSuchRun, "run", "", ", or its number")
    except NoSuchRun as fault:
        # A subject is asked for by its thread's id.
        if thread_statements[False][0].first(connection, id=storable(text)) is not None:
            return _latest_run(connection, text)
        raise NoSuchRun(fault.words, _run_numbers(connection)) from fault


def _latest_run(connection: Connection, ref: str) -> str:
    found = newest_runs.rows(connection, threads=[thread_called(connection, ref).id])
    if not found:
        raise NoRunYet(f"{_spelled_out(ref)} has no runs yet.", f"Send a message: `clew say {_spelled_out(ref)} TEXT`.")
    return str(max(found, key=lambda run: (run["ended_at"] is None, run["queued_at"], run["id"]))["id"])


def wake_called(connection: Connection, text: str) -> str:
    return _unique(
        connection, wakes_beginning, "wk_", text, NoSuchWake, "wake", "`clew queue THREAD` lists those that wait."
    )


def approval_called(connection: Connection, text: str) -> str:
    """Answered approvals are found too: one that another person answered is not missing."""
    remedy = "See them with `clew approvals`."
    return _unique(connection, approvals_beginning, "ap_", text, NoSuchApproval, "approval", remedy)


def _unique(
    connection: Connection,
    statement: Statement,
    prefix: str,
    text: str,
    missing: type[NoSuchRun] | type[NoSuchWake] | type[NoSuchApproval],
    noun: str,
    remedy: str,
    instead: str = "",
) -> str:
    text = storable(text)
    for first in (text, f"{prefix}{text}"):
        # "zz" sorts after every character that ids are made of, in every collation.
        found = statement.rows(connection, first=first, last=f"{first}zz") if text else []
        if found and (found[0]["id"] == first or len(found) == 1):
            # An id that was given in full comes before all that begin with it.
            return str(found[0]["id"])
        if found:
            names = [f"{noun}-{row['number']}" if "number" in row else row["id"] for row in found]
            some = ", ".join(names[:_IDS_SHOWN]) + (" and others" if len(names) > _IDS_SHOWN else "")
            raise Ambiguous(f"Several {noun}s begin with {text!r}: {some}.", f"Give more of the id{instead}.")
    raise missing(f"There is no {noun} {text!r}.", remedy)


def _no_thread(connection: Connection, ref: str) -> NoSuchThread:
    words, kind, number = f"There is no thread {ref!r}.", *_parted(ref)
    if kind == _RUN:
        return NoSuchThread(f"{ref} is a run, not a thread.", f"`clew runs show {ref}` shows its thread.")
    newest = None if kind is None else _newest_numbers.first(connection, kind=kind)
    if newest is None:
        return NoSuchThread(words, "Name one like issue-3, chat-1 or own-ada; see them with `clew threads`.")
    if f"{kind}-{number}" != ref and int(number) <= newest["number"]:
        return NoSuchThread(words, f"Did you mean {kind}-{number}?")
    return NoSuchThread(words, f"The newest is {kind}-{newest['number']}; see them with `clew threads`.")


def _parted(ref: str) -> tuple[str | None, str]:
    """The kind and the number that were probably meant: Isue-3 is issue-3."""
    typed, dash, number = ref.strip().lower().rpartition("-")
    if not (typed and dash and number.isdecimal() and number.isascii()):
        return None, ""
    kinds = (_RUN, *KINDS)
    near = [typed] if typed in kinds else difflib.get_close_matches(typed, kinds, n=1)
    return (near[0], str(int(number[:_MOST_DIGITS]))) if near else (None, "")


def _run_numbers(connection: Connection) -> str:
    newest = _newest_run.first(connection)
    return f"The newest is run-{newest['number']}; see them with `clew runs`." if newest else "There are no runs yet."


def _what_there_is(name: str, there: Sequence[str], otherwise: str, hidden: Sequence[str] = ()) -> str:
    """Names that are close; else some of those that there are. `hidden` ones are only named if they are close."""
    meant = name.strip().lower()
    close = [meant] if meant in there else difflib.get_close_matches(meant, (*there, *hidden), n=3, cutoff=0.5)
    if not there and not close:
        return otherwise
    if close:
        return f"Did you mean {' or '.join(close)}?"
    listed = ", ".join(there[:_SHOWN]) + (" and others" if len(there) > _SHOWN else "")
    return f"There is {listed}."
