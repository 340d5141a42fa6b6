"""`clew thread show`: one thread in full; `clew thread overlap`: what becomes of words while an agent works in it."""

from typing import Literal

from cyclopts import App

from clew.cli.client import Server, part, thread_part
from clew.cli.options import OPTIONS, Last, Options
from clew.cli.reading import read
from clew.cli.telling import tell, tell_as_is
from clew.cli.threads import show_page
from clew.ports.fault import Fault
from clew.protocol.views import LaneView, ThreadPage


class WhichAgent(Fault):
    code = "cli:which-agent"


_MEANS = {
    "queue": "waits for the next turn",
    "steer": "is told within the turn that is going, where the agent takes it",
    "interrupt": "stops the turn that is going, and begins the next one",
    "reject": "is turned away",
}

app = App(name="thread", help="Show a thread, and say what becomes of words in it.", help_format="markdown")


@app.command
def show(ref: str, /, *, last: Last = 20, options: Options = OPTIONS) -> None:
    """Show a thread: what goes on in it, where its agents work, and what was said.

    For example:

        clew thread show chat-1

        clew thread show issue-3 --last 200

    Parameters
    ----------
    ref
        The thread: issue-3, chat-1, own-ada, an outside subject, or an id.
    last
        How many of the latest entries to show.
    """
    show_page(options, ref, last)


@app.command
def overlap(
    ref: str,
    policy: Literal["queue", "steer", "interrupt", "reject"],
    /,
    *,
    agent: str | None = None,
    options: Options = OPTIONS,
) -> None:
    """Say what becomes of words in a thread while an agent works there.

    They wait for the next turn (queue, unless it is set), are told within the turn that is going (steer), stop it
    (interrupt), or are turned away (reject). For one message alone there is `clew say --steer`.

    For example:

        clew thread overlap chat-1 steer

        clew thread overlap issue-3 reject --agent reviewer

    Parameters
    ----------
    ref
        The thread: issue-3, chat-1, own-ada, an outside subject, or an id.
    policy
        What becomes of them.
    agent
        The agent that works there, if it is not whose thread it is.
    """
    server = Server(options.data)
    path = f"/threads/{thread_part(ref)}/lanes/{part(agent or _whose(server, ref))}"
    said = server.patch(path, {"overlap": policy})
    if options.json:
        return tell_as_is(said)
    lane = read(LaneView, said)
    return tell(f"What is said in {ref} while {lane.agent} works there {_MEANS[lane.overlap]}.")


def _whose(server: Server, ref: str) -> str:
    thread = read(ThreadPage, server.get(f"/threads/{thread_part(ref)}", {"limit": 1})).thread
    if thread.assignee is None:
        raise WhichAgent(f"{thread.ref} is nobody's.", "Say whose work it is about: --agent NAME.")
    return thread.assignee
