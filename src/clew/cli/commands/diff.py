"""`clew diff`: what an agent changed."""

import re
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from clew.cli.answers import read
from clew.cli.client import Server, part, thread_part
from clew.cli.commands.thread import named
from clew.cli.input import OPTIONS, Options, name_given
from clew.cli.output import note, tell_answer
from clew.cli.pager import show_diff_text
from clew.protocol.views import RunView
from clew.protocol.work_views import DiffView

_RUN = re.compile(r"run-\d+|rn_[0-9a-f]+")

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

        clew diff run-27

    Parameters
    ----------
    paths
        Only these files or directories, relative to the project.
    stat
        Only which files changed, and by how much.
    run
        Only what this run changed: run-27, its id, or a unique prefix. `clew diff run-27` is the same.
    """
    server = Server(options.data)
    if run is None and _RUN.fullmatch(thread):
        # What one run changed, in its thread.
        run, thread = thread, read(RunView, server.get(f"/runs/{part(thread)}")).thread
    query: dict[str, str | int | list[str] | None] = {"agent": agent, "run": run, "stat": str(stat).lower()}
    for path in paths:
        name_given(path, "path")
    said = server.get(f"/threads/{thread_part(named(thread, 'issue'))}/diff", {**query, "path": list(paths)}, DEADLINE)
    tell_answer(said, lambda: _tell(read(DiffView, said), paths), as_json=options.json)


def _tell(found: DiffView, paths: Sequence[str]) -> None:
    for line in found.newer:
        note(line, loud=True)
    if not found.text:
        note(f"No changes{' in ' if paths else ''}{', '.join(paths)} ({found.agent}, branch {found.branch or 'none'}).")
    else:
        show_diff_text(found.text)
    if found.words:
        note(found.words)
