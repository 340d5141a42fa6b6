"""`clew workspaces`: the directories agents work in."""

from cyclopts import App

from clew.cli.answers import read_all
from clew.cli.client import Server
from clew.cli.exit import ExitStatus
from clew.cli.input import OPTIONS, Options, absolute
from clew.cli.output import counted, table, tell, tell_json
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
    if options.json:
        return tell_json(said)
    found = read_all(WorkspaceView, said)
    table(
        ("directory", "thread", "agent", "project", "branch", "state", "size", "changes", "unmerged", "used"),
        [
            (
                each.directory,
                each.thread or "",
                each.agent or "",
                each.project or "",
                each.branch or "",
                f"{each.state} {each.note}".strip(),
                size(each.bytes),
                str(each.changes),
                "?" if each.unmerged is None else str(each.unmerged),
                each.used_by or moment(each.last_used),
            )
            for each in found
        ],
        "No workspaces yet.",
    )
    if found:
        tell(f"{counted(len(found), 'workspace')}, {size(sum(each.bytes for each in found))}.")
    return None


@app.command
def clean(*directories: str, options: Options = OPTIONS) -> ExitStatus:
    """Remove workspaces that are merged, clean and not in use.

    With names, remove exactly those, even if their work is not merged.

    The exit status is 1 if a named workspace is still there. If a name is not a workspace, nothing is removed.

    For example:

        clew workspaces clean

        clew workspaces clean ~/.local/share/clew/workspaces/pj_4f2a/ln_9c1e

    Parameters
    ----------
    directories
        Workspaces to remove, with everything in them.
    """
    asked = [absolute(each) for each in directories]
    said = Server(options.data).post("/workspaces/clean", {"asked": asked}, _DEADLINE)
    cleaned = read_all(CleanedView, said)
    if options.json:
        tell_json(said)
    else:
        table(
            ("directory", "removed", "message"),
            [(each.directory, "yes" if each.removed else "no", each.words) for each in cleaned],
            "Nothing to clean.",
        )
    kept = {each.directory for each in cleaned if not each.removed}
    return ExitStatus.FAILED if kept & set(asked) else ExitStatus.DONE


def size(count: int) -> str:
    left = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if left < 1024:
            return f"{left:.0f} {unit}" if unit == "B" else f"{left:.1f} {unit}"
        left /= 1024
    return f"{left:.1f} TiB"
