"""`clew workspaces`: the directories agents work in."""

from cyclopts import App

from clew.cli.answers import print_table, read_all
from clew.cli.client import Server
from clew.cli.input import OPTIONS, Options, absolute
from clew.cli.output import ExitStatus, counted, tell
from clew.cli.times import moment
from clew.protocol.views import CleanedView, WorkspaceView

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
        tell(f"{counted(len(found), 'workspace')}, {size(sum(each.bytes for each in found))}.")


_NARROW = ("size", "used", "project", "agent", "branch")


def _row(workspace: WorkspaceView) -> dict[str, str]:
    return {
        "directory": workspace.directory,
        "thread": workspace.thread or "",
        "agent": workspace.agent or "",
        "project": workspace.project or "",
        "branch": workspace.branch or "",
        "state": f"{workspace.state} {workspace.note}".strip(),
        "size": size(workspace.bytes),
        "changes": str(workspace.changes),
        "unmerged": "?" if workspace.unmerged is None else str(workspace.unmerged),
        "used": workspace.used_by or moment(workspace.last_used),
    }


@app.command
def clean(*directories: str, options: Options = OPTIONS) -> ExitStatus:
    """Remove workspaces that are merged, clean and not in use.

    With names, remove exactly those, even if their work is not merged.

    The exit status is 1 if a named workspace is still there. If a name is not a workspace, nothing is removed.

    For example:

        clew workspaces clean

        clew workspaces clean ~/.local/share/clew/workspaces/web/issue-12-ada

    Parameters
    ----------
    directories
        Workspaces to remove, with everything in them.
    """
    asked = [absolute(each) for each in directories]
    said = Server(options.data).post("/workspaces/clean", {"asked": asked}, _DEADLINE)
    print_table(options, said, CleanedView, _cleaned_row, "Nothing to clean.")
    kept = {each.directory for each in read_all(CleanedView, said) if not each.removed}
    return ExitStatus.FAILED if kept & set(asked) else ExitStatus.DONE


def _cleaned_row(cleaned: CleanedView) -> dict[str, str]:
    return {"directory": cleaned.directory, "removed": "yes" if cleaned.removed else "no", "message": cleaned.words}


def size(count: int) -> str:
    left = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if left < 1024:
            return f"{left:.0f} {unit}" if unit == "B" else f"{left:.1f} {unit}"
        left /= 1024
    return f"{left:.1f} TiB"
