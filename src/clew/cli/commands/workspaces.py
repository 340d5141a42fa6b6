"""`clew workspaces`: the directories agents work in."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from cyclopts import App, Parameter

from clew.cli.answers import print_table, print_view, read_all
from clew.cli.client import Server
from clew.cli.commands.thread import named
from clew.cli.input import OPTIONS, Options, absolute
from clew.cli.output import ExitStatus, counted, tell, tell_answer
from clew.cli.safe_text import one_line
from clew.cli.times import moment
from clew.protocol.work_views import CheckoutView, CleanedView, WorkspaceView

app = App(name="workspaces", help_format="markdown")


_DEADLINE = 300.0
"""Disk usage is counted, and git runs in each of them."""


@app.default
def workspaces(*, options: Options = OPTIONS) -> None:
    """List the directories agents work in, with disk usage, or clean them up.

    For example:

        clew workspaces

        clew workspaces clean
    """
    list_(options=options)


@app.command(name="list")
def list_(*, options: Options = OPTIONS) -> None:
    """List the directories agents work in, with disk usage.

    For example:

        clew workspaces list
    """
    said = Server(options.data).get("/workspaces", deadline=_DEADLINE)
    print_table(options, said, WorkspaceView, _row, "No workspaces yet.", _NARROW)
    if not options.json and (found := read_all(WorkspaceView, said)):
        for each in found:
            if each.note:
                tell(f"{each.directory}: {one_line(each.note)}")
        tell(f"{counted(len(found), 'workspace')}, {size(sum(each.bytes for each in found))}.")


_NARROW = ("branch", "project", "size", "used")


def _row(workspace: WorkspaceView) -> dict[str, str]:
    return {
        "thread": workspace.thread or "",
        "agent": workspace.agent or "",
        "state": workspace.state,
        "changes": str(workspace.changes),
        "unmerged": "?" if workspace.unmerged is None else str(workspace.unmerged),
        "size": size(workspace.bytes),
        "used": workspace.used_by or moment(workspace.last_used),
        "project": workspace.project or "",
        "branch": workspace.branch or "",
        "directory": workspace.directory,
    }


@app.command
def clean(
    *directories: str,
    dry_run: bool = False,
    with_open: Annotated[bool, Parameter(name="--open")] = False,
    options: Options = OPTIONS,
) -> ExitStatus:
    """Remove workspaces that are merged, clean and not in use.

    Those of open threads are kept until their work was merged. With names, remove exactly those, even if their work is
    not merged.

    The exit status is 1 if a named workspace is still there. If a name is not a workspace, nothing is removed.

    For example:

        clew workspaces clean --dry-run

        clew workspaces clean

        clew workspaces clean ~/.local/share/clew/workspaces/web/issue-12-ada

    Parameters
    ----------
    directories
        Workspaces to remove, with everything in them.
    dry_run
        Remove nothing; say what would be removed.
    with_open
        Also remove those of open threads, if nothing in them is unmerged.
    """
    asked = [absolute(each) for each in directories]
    switches = {name: True for name, on in (("dry", dry_run), ("with_open", with_open)) if on}
    said = Server(options.data).post("/workspaces/clean", {"asked": asked, **switches}, _DEADLINE)
    found = read_all(CleanedView, said)
    tell_answer(said, partial(_tell_cleaned, found), as_json=options.json)
    kept = {each.directory for each in found if not each.removed}
    return ExitStatus.FAILED if kept & set(asked) else ExitStatus.DONE


@app.command
def accept(
    place: Annotated[str, Parameter(metavar="THREAD|DIRECTORY")],
    /,
    *,
    agent: str | None = None,
    options: Options = OPTIONS,
) -> None:
    """Let an agent continue on the branch that it made in its worktree.

    A run that was held because of that branch starts. The former branch is kept.

    For example:

        clew workspaces accept issue-12

        clew workspaces accept ~/.local/share/clew/workspaces/web/issue-12-ada

    Parameters
    ----------
    place
        The thread, or the workspace's directory.
    agent
        Whose worktree. Default: the thread's agent, else who worked last.
    """
    name = absolute(place) if "/" in place else named(place, "issue")
    said = Server(options.data).post("/workspaces/accept", {"name": name, "agent": agent}, _DEADLINE)
    print_view(options, said, CheckoutView, _tell_accepted)


def _tell_accepted(done: CheckoutView) -> None:
    kept = f" The branch {done.former} is kept." if done.former not in (None, done.branch) else ""
    tell(f"{done.agent} works on branch {done.branch} in {done.thread}.{kept}")


def _tell_cleaned(found: Sequence[CleanedView]) -> None:
    if not found:
        tell("Nothing to clean.")
    for each in found:
        tell(f"{each.directory}\n  {one_line(each.words)}")


def size(count: int) -> str:
    left = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if left < 1024:
            return f"{left:.0f} {unit}" if unit == "B" else f"{left:.1f} {unit}"
        left /= 1024
    return f"{left:.1f} TiB"
