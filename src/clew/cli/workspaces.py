"""`clew workspaces`: the directories that agents work in."""

from cyclopts import App

from clew.cli.client import Server
from clew.cli.ending import Ending
from clew.cli.options import OPTIONS, Options
from clew.cli.reading import read_all
from clew.cli.table import table
from clew.cli.telling import counted, tell, tell_as_is
from clew.cli.texts import place
from clew.cli.times import moment
from clew.protocol.views import CleanedView, WorkspaceView

app = App(name="workspaces", help_format="markdown")


_DEADLINE = 300.0
"""Disk use is counted, and git is asked in each of them."""


@app.default
def workspaces(*, options: Options = OPTIONS) -> None:
    """List the directories that agents work in, with their disk use, or clean up.

    For example:

        clew workspaces

        clew workspaces clean
    """
    list_(options=options)


@app.command(name="list")
def list_(*, options: Options = OPTIONS) -> None:
    """List the directories that agents work in, with their disk use.

    For example:

        clew workspaces list
    """
    said = Server(options.data).get("/workspaces", deadline=_DEADLINE)
    if options.json:
        return tell_as_is(said)
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
        "There are no workspaces yet.",
    )
    if found:
        tell(f"{counted(len(found), 'workspace')}, {size(sum(each.bytes for each in found))}.")
    return None


@app.command
def clean(*directories: str, options: Options = OPTIONS) -> Ending:
    """Remove workspaces whose work is merged and that nobody uses.

    Where some are named, those go even if their work is not merged, and no others.

    The exit status is 1 when one that was named is still there. Where one that is named is no workspace, nothing is
    removed.

    For example:

        clew workspaces clean

        clew workspaces clean ~/.local/share/clew/workspaces/pj_4f2a/ln_9c1e

    Parameters
    ----------
    directories
        Workspaces to remove with all that is in them.
    """
    asked = [place(each) for each in directories]
    said = Server(options.data).post("/workspaces/clean", {"asked": asked}, _DEADLINE)
    cleaned = read_all(CleanedView, said)
    if options.json:
        tell_as_is(said)
    else:
        table(
            ("directory", "removed", "words"),
            [(each.directory, "yes" if each.removed else "no", each.words) for each in cleaned],
            "There is nothing to clean.",
        )
    kept = {each.directory for each in cleaned if not each.removed}
    return Ending.FAILED if kept & set(asked) else Ending.DONE


def size(count: int) -> str:
    left = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if left < 1024:
            return f"{left:.0f} {unit}" if unit == "B" else f"{left:.1f} {unit}"
        left /= 1024
    return f"{left:.1f} TiB"
