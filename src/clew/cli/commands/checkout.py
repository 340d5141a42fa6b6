"""`clew checkout`: a person works in an agent's worktree."""

from clew.cli.answers import print_view
from clew.cli.client import Server, thread_part
from clew.cli.commands.diff import DEADLINE, WorkAgent, WorkThread
from clew.cli.commands.thread import named
from clew.cli.input import OPTIONS, Options
from clew.cli.output import note, tell
from clew.protocol.work_views import CheckoutView


def checkout(thread: WorkThread, /, *, done: bool = False, agent: WorkAgent = None, options: Options = OPTIONS) -> None:
    """Work in an agent's worktree yourself. Prints its directory.

    Messages to the agent wait, and say why, until you are done.

    For example:

        cd "$(clew checkout issue-12)"

        clew checkout issue-12 --done

    Parameters
    ----------
    done
        You are done: what waited starts.
    """
    path = f"/threads/{thread_part(named(thread, 'issue'))}/checkout"
    said = Server(options.data).post(path, {"done": done, "agent": agent}, DEADLINE)
    print_view(options, said, CheckoutView, _tell)


def _tell(view: CheckoutView) -> None:
    """The directory alone goes to stdout, so that `cd` can take it."""
    if not view.checked_out:
        tell(f"{view.agent} has {view.directory} again.")
        return
    tell(view.directory)
    note(f"On branch {view.branch or 'none'}. Messages to {view.agent} wait until `{view.hand_back}`.")
