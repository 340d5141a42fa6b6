"""`clew approvals`: permissions and questions that agents ask people."""

from collections.abc import Mapping
from typing import Annotated, Literal

from cyclopts import App, Parameter

from clew.cli.answers import print_table, print_view
from clew.cli.client import Server, part, thread_part
from clew.cli.commands.thread import thread_agent
from clew.cli.input import OPTIONS, Options, Text, checked, given
from clew.cli.output import tell
from clew.cli.safe_text import one_line
from clew.cli.times import moment
from clew.protocol.views import ApprovalView, LaneView

app = App(name="approvals", help_format="markdown")

Id = Annotated[str, Parameter(metavar="APPROVAL", help="Its id, or a unique prefix.")]


State = Literal["pending", "approved", "denied", "stale", "expired", "all"]


@app.default
def approvals(*, state: State = "pending", run: str | None = None, options: Options = OPTIONS) -> None:
    """List agents' permission requests and questions. Respond with allow, deny or answer.

    For example:

        clew approvals

        clew approvals --state all

        clew approvals --run run-17 --state all

        clew approvals allow ap_4f

    Parameters
    ----------
    state
        pending, approved, denied, stale, expired or all.
    run
        Only those of this run.
    """
    said = Server(options.data).get("/approvals", {"state": state, "run": run})
    nothing = "No pending approvals." if state == "pending" else "No approvals."
    print_table(options, said, ApprovalView, _row, nothing, ("by", "kind", "asked", "state"))


def _row(approval: ApprovalView) -> dict[str, str]:
    return {
        "approval": approval.id,
        "thread": approval.thread,
        "agent": approval.agent,
        "kind": approval.kind,
        "state": approval.state,
        "by": approval.answered_by or "",
        "message": one_line(approval.words, 80) + (f" ({' / '.join(approval.choices)})" if approval.choices else ""),
        "about": one_line(approval.command or approval.file or "", 80),
        "asked": moment(approval.asked_at),
    }


@app.command
def allow(approval: Id, /, *, always: bool = False, options: Options = OPTIONS) -> None:
    """Allow what an agent asked for: once, or a command always.

    For example:

        clew approvals allow ap_4f

        clew approvals allow ap_4f --always

    Parameters
    ----------
    always
        Allow this very command to this agent in this thread from now on, until its permissions change. `clew thread
        show` lists such commands, and `clew approvals forget` takes them back.
    """
    _answer(options, approval, {"allow": True, "always": True} if always else {"allow": True, "text": ""})


@app.command
def forget(thread: str, /, *, agent: str | None = None, options: Options = OPTIONS) -> None:
    """Take back which commands an agent was allowed always in a thread. It asks again.

    For example:

        clew approvals forget issue-3

    Parameters
    ----------
    thread
        The thread: issue-3 or 3, chat-1, or an id.
    agent
        The agent it applies to. Default: the thread's agent.
    """
    server = Server(options.data)
    path = f"/threads/{thread_part(thread)}/lanes/{part(agent or thread_agent(server, thread))}/allowed"
    print_view(options, server.delete(path), LaneView, lambda lane: tell(f"{lane.agent} asks again there."))


@app.command
def deny(approval: Id, why: Text = "", /, *, options: Options = OPTIONS) -> None:
    """Deny what an agent asked for. The agent continues without it.

    For example:

        clew approvals deny ap_4f

        clew approvals deny ap_4f "Use the test database."

    Parameters
    ----------
    why
        A reason, sent to the agent.
    """
    _answer(options, approval, {"allow": False, "text": checked(why)})


@app.command
def answer(approval: Id, text: Text, /, *, options: Options = OPTIONS) -> None:
    """Answer an agent's question.

    For example:

        clew approvals answer ap_4f "The second one."

    Parameters
    ----------
    text
        The answer; - reads it from stdin.
    """
    _answer(options, approval, {"allow": True, "text": given(text)})


def _answer(options: Options, approval: str, answer: Mapping[str, object]) -> None:
    said = Server(options.data).post(f"/approvals/{part(approval)}", answer)
    print_view(options, said, ApprovalView, _tell)


def _tell(approval: ApprovalView) -> None:
    by = "" if approval.answered_by is None else f" Answered by {approval.answered_by}, {moment(approval.ended_at)}."
    tell(f"{approval.id} of {approval.agent} in {approval.thread}: {approval.state}.{by}")
