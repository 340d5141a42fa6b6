"""`clew commit`, `clew merge` and `clew pr`: what an agent did becomes part of the project."""

import shlex
from typing import Annotated

from cyclopts import Parameter

from clew.cli.answers import print_view
from clew.cli.client import Server, thread_part
from clew.cli.commands.diff import DEADLINE, WorkAgent, WorkThread
from clew.cli.commands.thread import named
from clew.cli.input import OPTIONS, Options, Text, checked, given, piped
from clew.cli.output import counted, note, tell
from clew.protocol.work_views import CommitView, MergeView, ProposalView

_PUSHING = 1800.0


def commit(
    thread: WorkThread,
    /,
    *,
    message: Annotated[Text, Parameter(name=["--message", "-m"])],
    agent: WorkAgent = None,
    options: Options = OPTIONS,
) -> None:
    """Commit what an agent left uncommitted, on its branch: everything that git does not ignore.

    No hooks of the repository are run.

    For example:

        clew commit issue-12 -m "Show the login form"

    Parameters
    ----------
    message
        The commit message; - reads it from stdin.
    """
    said = _post(options, thread, "commit", {"message": given(message, "message"), "agent": agent})
    print_view(options, said, CommitView, _tell_commit)


def _tell_commit(done: CommitView) -> None:
    for line in done.newer:
        note(line, loud=True)
    tell(done.words)


def merge(
    thread: WorkThread,
    /,
    *,
    into: str | None = None,
    agent: WorkAgent = None,
    options: Options = OPTIONS,
) -> None:
    """Merge an agent's branch into the branch that it started from, or into another.

    It always makes a merge commit. If that branch is checked out, its files are updated too. A conflict, or changes
    that are in no commit on either side, refuse the merge, and everything stays as it was. So does later work of
    another agent that the branch does not have: say with --agent whose is meant.

    For example:

        clew merge issue-12

        clew merge 12 --into release

    Parameters
    ----------
    into
        The branch to merge into. Default: the base.
    """
    said = _post(options, thread, "merge", {"into": into, "agent": agent})
    print_view(options, said, MergeView, _tell_merge)


def _tell_merge(done: MergeView) -> None:
    tell(done.words)
    for line in done.left:
        tell(line)
    places = [done.directory, *done.copies]
    tell(f"Not needed any more: {counted(len(places), 'worktree')}. Remove with:")
    tell(f"  clew workspaces clean {shlex.join(places)}")


def pr(
    thread: WorkThread,
    /,
    *,
    title: Text = "",
    body: Text = "",
    agent: WorkAgent = None,
    options: Options = OPTIONS,
) -> None:
    """Open a pull request of an agent's branch.

    If `gh` is installed where the worktree is, it pushes the branch to GitHub and opens the pull request. Otherwise it
    prints the command that pushes the branch, and the address where you open it.

    For example:

        clew pr issue-12

        clew pr 12 --title "Show the login form" --body - < text.md

    Parameters
    ----------
    title
        Its title. Default: the thread's.
    body
        Its text; - reads it from stdin.
    """
    text = checked(piped() if body == "-" else body, "body")
    said = _post(options, thread, "propose", {"title": title, "body": text, "agent": agent}, _PUSHING)
    print_view(options, said, ProposalView, _tell_proposal)


def _tell_proposal(proposed: ProposalView) -> None:
    if proposed.url is not None:
        tell(f"Opened {proposed.url}")
        return
    tell(f"Push the branch:\n  {proposed.push}")
    if proposed.address is not None:
        tell(f"Then open the pull request at:\n  {proposed.address}")


def _post(options: Options, thread: str, action: str, body: dict[str, str | None], deadline: float = DEADLINE) -> bytes:
    return Server(options.data).post(f"/threads/{thread_part(named(thread, 'issue'))}/{action}", body, deadline)
