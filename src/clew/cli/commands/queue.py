"""`clew queue`: messages that wait, and what may be done with them until an agent has them."""

from typing import Annotated, Any

from cyclopts import App, Parameter

from clew.cli.answers import print_table, print_view, read, read_all
from clew.cli.client import Server, part, thread_part
from clew.cli.input import OPTIONS, Options, Text, given
from clew.cli.misuse import Misused, not_together
from clew.cli.output import ExitStatus, table, tell, tell_answer
from clew.cli.safe_text import one_line
from clew.cli.times import moment
from clew.protocol.views import Cancelled, WakeView
from clew.protocol.waiting import WaitingView

app = App(name="queue", help_format="markdown")

Id = Annotated[str, Parameter(metavar="WAKE", help="Its wake, as `clew queue` lists it: the id or a unique prefix.")]


@app.default
def queue(thread: str, /, *, options: Options = OPTIONS) -> None:
    """List the messages that wait in a thread, in the order in which the agent is told, and why each waits.

    Until an agent has a message it can be edited, moved, told during the running turn, and taken back.

    For example:

        clew queue chat-1

        clew queue edit wk_01a8 "On Firefox only."

        clew queue move wk_01a8 --first

        clew queue steer wk_01a8

        clew queue take-back wk_01a8

    Parameters
    ----------
    thread
        The thread: issue-3 or 3, chat-1, own-ada, a subject, or an id.
    """
    said = Server(options.data).get(f"/threads/{thread_part(thread)}/queue")
    print_table(options, said, WaitingView, _row, "Nothing waits.", _NARROW)


_NARROW = ("sent", "entry", "agent")


def _row(waiting: WaitingView) -> dict[str, str]:
    return {
        "wake": waiting.wake,
        "agent": waiting.agent,
        "entry": "" if waiting.entry is None else f"#{waiting.entry}",
        "sent": moment(waiting.accepted_at),
        "message": one_line(waiting.text, 60) or f"({waiting.reason})",
        "waits": one_line(waiting.words),
    }


@app.command
def edit(wake: Id, text: Text, /, *, options: Options = OPTIONS) -> None:
    """Give a message that waits another text. It keeps its place, and the journal keeps the former text, too.

    For example:

        clew queue edit wk_01a8 "On Firefox only."

    Parameters
    ----------
    text
        The new text; - reads it from stdin.
    """
    said = Server(options.data).patch(f"/wakes/{part(wake)}", {"text": given(text)})
    _changed(options, said, "Edited.")


@app.command
def move(
    wake: Id,
    /,
    *,
    before: str | None = None,
    after: str | None = None,
    first: bool = False,
    last: bool = False,
    options: Options = OPTIONS,
) -> None:
    """Move a message that waits among those of the same agent.

    For example:

        clew queue move wk_01a8 --first

        clew queue move wk_01a8 --before wk_01b2

    Parameters
    ----------
    before
        The wake to move it before.
    after
        The wake to move it after.
    first
        Move it before all others.
    last
        Move it after all others.
    """
    where = {"--before": before, "--after": after, "--first": first, "--last": last}
    not_together(where)
    if not any(where.values()):
        raise Misused("Where to is not said.", "Give one of --before WAKE, --after WAKE, --first and --last.")
    server = Server(options.data)
    moved = read(WakeView, server.get(f"/wakes/{part(wake)}"))
    beside = before or after
    fixed = None if beside is None else read(WakeView, server.get(f"/wakes/{part(beside)}")).id
    path = f"/threads/{thread_part(moved.thread)}/queue"
    waiting = read_all(WaitingView, server.get(path))
    order = [each.wake for each in waiting if each.agent == moved.agent and "move" in each.can]
    # One that does not wait any more is named all the same: the server says who has it.
    order = [wake for wake in order if wake != moved.id]
    order.insert(_place(order, fixed, after is not None, first), moved.id)
    _changed(options, server.post(path, {"wakes": order}), "Moved.")


def _place(order: list[str], beside: str | None, after: bool, first: bool) -> int:
    if beside is None:
        return 0 if first else len(order)
    if beside not in order:
        raise Misused(f"{beside} does not wait for the same agent.", "`clew queue THREAD` lists what waits.")
    return order.index(beside) + int(after)


@app.command
def steer(wake: Id, /, *, options: Options = OPTIONS) -> None:
    """Have the agent told of a message that waits during its running turn, before the others.

    For example:

        clew queue steer wk_01a8
    """
    said = Server(options.data).post(f"/wakes/{part(wake)}/steer")
    _changed(options, said, "The running turn is told of it, or else the next one.")


@app.command
def take_back(wake: Id, /, *, options: Options = OPTIONS) -> ExitStatus:
    """Take a message back: no agent is told of it. The journal shows that it was taken back.

    For example:

        clew queue take-back wk_01a8
    """
    said = Server(options.data).delete(f"/wakes/{part(wake)}")
    print_view(options, said, Cancelled, lambda done: tell(one_line(done.words)))
    return ExitStatus.DONE


def _changed(options: Options, said: bytes, words: str) -> None:
    def show() -> None:
        tell(words)
        rows: list[dict[str, Any]] = [_row(waiting) for waiting in read_all(WaitingView, said)]
        table(rows, "Nothing waits any more.", _NARROW)

    tell_answer(said, show, as_json=options.json)
