"""`clew status` and `clew stop`, and `clew` alone: the server, what needs you, what runs, and the next step."""

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from clew.cli.activity import approval_lines
from clew.cli.answers import read
from clew.cli.client import NotRunning, Server
from clew.cli.commands.runs import state_of
from clew.cli.input import OPTIONS, Options
from clew.cli.local_server import Process, address_of, running
from clew.cli.local_server import stop as stop_process
from clew.cli.output import ExitStatus, counted, tell, tell_answer, tell_json
from clew.cli.safe_text import one_line
from clew.cli.times import lasted, moment
from clew.protocol.overview import OverviewView
from clew.protocol.views import RunView, ThreadView
from clew.server.data_dir import DataDirectory

GUIDE = "guide"


def status(*, options: Options = OPTIONS) -> ExitStatus:
    """Show whether Clew runs, what needs you, what the agents do, and the next step. `clew` alone does the same.

    The exit status is 1 if Clew is not running.

    For example:

        clew status
    """
    data = DataDirectory(options.data)
    process = running(data)
    try:
        found = None if process is None else Server(options.data).get("/overview")
    except NotRunning:
        # It has the lock and is not ready yet.
        found = None
    if options.json:
        tell_json(
            {
                "running": process is not None,
                "ready": found is not None,
                "address": None if process is None else address_of(data),
                "pid": None if process is None else process.pid,
                "data": str(options.data),
                "overview": None if found is None else read(OverviewView, found),
            }
        )
    elif process is None:
        tell(f"Clew is not running ({options.data}).")
        tell("Start it with `clew up -d`; or with `clew up`, in a terminal of its own.")
    elif found is None:
        tell(f"Clew is starting or stopping (process {process.pid}).")
    else:
        for line in _lines(data, process, read(OverviewView, found)):
            tell(line)
    return ExitStatus.DONE if process is not None else ExitStatus.FAILED


def _lines(data: DataDirectory, process: Process, found: OverviewView) -> Iterator[str]:
    yield f"Clew is running at {address_of(data)} (process {process.pid}, started {moment(process.since)})."
    stopped = ((run, run.words or state_of(run)) for run in (*found.held, *found.failed))
    needs = [*_asked(found), *(f"  {_run(run)}: {one_line(words)}" for run, words in stopped)]
    if needs:
        yield from ("", "Needs you", *needs)
    going = [f"  {_run(run)} {state_of(run)} for {lasted(run.started_at or run.queued_at, None)}" for run in found.live]
    if going:
        yield from ("", "Running", *going)
    if found.queued:
        yield from ("", "Waiting")
        for run in found.queued:
            held = f" {state_of(run)}" if run.held else ""
            yield f"  {_run(run)}{held}" + (f": {one_line(run.words)}" if run.words else "")
    if found.ready:
        yield from ("", "Ready for review")
        yield from (f"  {issue.ref} {issue.assignee or ''}: {one_line(issue.title)}" for issue in found.ready)
    if found.unread:
        yield from ("", "Unread")
        yield from (_unread(thread) for thread in found.unread)
    if not (needs or going or found.queued or found.ready):
        yield from ("", "Nothing needs you, and nothing runs.")
    yield from ("", f"Next: {next_step(found)}")


def _asked(found: OverviewView) -> Iterator[str]:
    for approval in found.approvals:
        first, *more = approval_lines(approval)
        yield f"  {approval.thread}: {first}"
        yield from (f"  {line}" for line in more)


def _run(run: RunView) -> str:
    return f"{run.ref} {run.thread} {run.agent}"


def next_step(found: OverviewView) -> str:
    """The one command that is most likely wanted now."""
    if found.approvals:
        first = found.approvals[0]
        how = "answer" if first.kind == "question" else "allow"
        said = " TEXT" if how == "answer" else ""
        return f"`clew approvals {how} {first.id}{said}`; all of them: `clew approvals`."
    if found.held:
        return f"`clew why {found.held[0].ref}` says what to do."
    if found.failed:
        failed = found.failed[0].ref
        return f"`clew why {failed}` says why it failed; `clew retry {failed}` tries it again."
    if found.live:
        return f"`clew logs {found.live[0].thread} -f` follows it."
    waits = next((run for run in found.queued if run.held), None)
    if waits is not None and not found.ready:
        return f"nothing is needed: {waits.ref} goes on by itself. `clew retry {waits.ref}` tries it now."
    if found.ready:
        issue = found.ready[0]
        changed = f", `clew diff {issue.ref}` what changed" if issue.project else ""
        return f"`clew issue show {issue.ref}` has the reply{changed}."
    if found.unread:
        return f"`clew thread show {found.unread[0].ref}` has what is new."
    if not set(found.agents) - {GUIDE}:
        return (
            "`clew chat guide` to try it, or add an agent: `clew agent add ada --provider claude` (see `clew doctor`)."
        )
    if not found.threads and found.archived:
        return "nothing is needed. `clew threads --only archived` lists what you put away."
    if not found.threads:
        agent = next(name for name in found.agents if name != GUIDE)
        return f'`clew chat {agent}`, or `clew issue new "TITLE" --assign {agent}`.'
    return "`clew threads` lists what is open."


def stop(*, now: Annotated[bool, Parameter()] = False, options: Options = OPTIONS) -> ExitStatus:
    """Stop the server, however it was started. Live turns finish or are interrupted, as `clew up` was told.

    Returns when it has stopped. What was interrupted continues at the next start.

    For example:

        clew stop

        clew stop --now

    Parameters
    ----------
    now
        Interrupt live turns instead of letting them finish.
    """
    data = DataDirectory(options.data)
    process = running(data)
    if process is None:
        tell_answer({"stopped": False}, lambda: tell("Clew is not running."), as_json=options.json)
        return ExitStatus.DONE
    live = _live(options)
    if live and not options.json:
        tell(f"Stopping; {counted(live, 'run')} still live.")
    stop_process(data, process, now=now)
    answer = {"stopped": True, "pid": process.pid}
    tell_answer(answer, lambda: tell(f"Stopped (process {process.pid})."), as_json=options.json)
    return ExitStatus.DONE


def _live(options: Options) -> int:
    try:
        return len(read(OverviewView, Server(options.data).get("/overview")).live)
    except NotRunning:
        return 0


def _unread(thread: ThreadView) -> str:
    """A chat has no title before somebody gives it one."""
    words = f"  {thread.ref} {thread.assignee or ''}".rstrip()
    return f"{words}: {one_line(thread.title)}" if thread.title else words
