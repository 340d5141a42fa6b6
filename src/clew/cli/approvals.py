"""`clew approvals`: what agents ask of people."""

from typing import Annotated

from cyclopts import App, Parameter

from clew.cli.client import Server, part
from clew.cli.harmless import one_line
from clew.cli.options import OPTIONS, Options, Text
from clew.cli.reading import read, read_all
from clew.cli.table import table
from clew.cli.telling import tell, tell_as_is
from clew.cli.texts import checked, given
from clew.cli.times import moment
from clew.protocol.views import ApprovalView

app = App(name="approvals", help_format="markdown")

Id = Annotated[str, Parameter(metavar="APPROVAL", help="Its id, or a beginning of it that no other has.")]


@app.default
def approvals(*, state: str = "pending", run: str | None = None, options: Options = OPTIONS) -> None:
    """List what agents ask: whether they may, and questions. Answer with allow, deny or answer.

    For example:

        clew approvals

        clew approvals --state all

        clew approvals --run rn_01a1 --state all

        clew approvals allow ap_4f

    Parameters
    ----------
    state
        pending, approved, denied, stale, expired or all.
    run
        Only what this run asked.
    """
    said = Server(options.data).get("/approvals", {"state": state, "run": run})
    if options.json:
        return tell_as_is(said)
    return table(
        ("approval", "thread", "agent", "kind", "state", "by", "words", "about", "asked"),
        [
            (
                each.id,
                each.thread,
                each.agent,
                each.kind,
                each.state,
                each.answered_by or "",
                one_line(each.words, 80) + (f" ({' / '.join(each.choices)})" if each.choices else ""),
                one_line(each.command or each.file or "", 80),
                moment(each.asked_at),
            )
            for each in read_all(ApprovalView, said)
        ],
        "Nobody waits for an answer." if state == "pending" else "There are none.",
    )


@app.command
def allow(approval: Id, /, *, options: Options = OPTIONS) -> None:
    """Let an agent do what it asked for, this once.

    For example:

        clew approvals allow ap_4f
    """
    _answer(options, approval, allow=True, text="")


@app.command
def deny(approval: Id, why: Text = "", /, *, options: Options = OPTIONS) -> None:
    """Do not let an agent do what it asked for. It goes on without.

    For example:

        clew approvals deny ap_4f

        clew approvals deny ap_4f "Use the test database."

    Parameters
    ----------
    why
        What to tell the agent about it.
    """
    _answer(options, approval, allow=False, text=checked(why))


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
    _answer(options, approval, allow=True, text=given(text))


def _answer(options: Options, approval: str, *, allow: bool, text: str) -> None:
    said = Server(options.data).post(f"/approvals/{part(approval)}", {"allow": allow, "text": text})
    if options.json:
        return tell_as_is(said)
    found = read(ApprovalView, said)
    by = "" if found.answered_by is None else f" Answered by {found.answered_by}, {moment(found.ended_at)}."
    return tell(f"{found.id} of {found.agent} in {found.thread} is {found.state}.{by}")
