"""`clew diff`: what an agent changed."""

from typing import Annotated

from cyclopts import Parameter

from clew.cli.answers import read
from clew.cli.client import Server, thread_part
from clew.cli.commands.thread import named
from clew.cli.input import OPTIONS, Options
from clew.cli.output import note, tell_answer
from clew.cli.pager import show_diff_text
from clew.protocol.views import DiffView

DEADLINE = 180.0
"""Git may take long in a large repository."""

WorkThread = Annotated[str, Parameter(metavar="THREAD", help="The thread: issue-3, 3, chat-1, or an id.")]

WorkAgent = Annotated[
    str | None, Parameter(name="--agent", help="Whose work. Default: the thread's agent, else who worked last.")
]


def diff(
    thread: WorkThread,
    /,
    *paths: str,
    stat: bool = False,
    run: str | None = None,
    agent: WorkAgent = None,
    options: Options = OPTIONS,
) -> None:
    """Show what an agent changed in a thread: everything that the base branch does not have, committed or not.

    On a terminal it is shown in colour and through $PAGER.

    For example:

        clew diff issue-12

        clew diff 12 --stat

        clew diff 12 -- src/login.py

        clew diff 12 --run rn_01a1

    Parameters
    ----------
    paths
        Only these files or directories, relative to the project.
    stat
        Only which files changed, and by how much.
    run
        Only what this run changed: its id, or a unique prefix.
    """
    query: dict[str, str | int | list[str] | None] = {"agent": agent, "run": run, "stat": str(stat).lower()}
    said = Server(options.data).get(
        f"/threads/{thread_part(named(thread, 'issue'))}/diff", {**query, "path": list(paths)}, DEADLINE
    )
    tell_answer(said, lambda: _tell(read(DiffView, said)), as_json=options.json)


def _tell(found: DiffView) -> None:
    if not found.text:
        note(f"No changes ({found.agent}, branch {found.branch or 'none'}).")
    else:
        show_diff_text(found.text)
    if found.words:
        note(found.words)
