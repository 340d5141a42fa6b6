"""`clew approvals`: what agents ask of people."""

from typing import Annotated

from cyclopts import App, Parameter

from clew.cli.client import NOT_FOUND, Refused, Server, part
from clew.cli.harmless import one_line
from clew.cli.options import OPTIONS, Options, Text
from clew.cli.reading import read, read_all
from clew.cli.table import table
from clew.cli.telling import tell, tell_as_is
from clew.cli.texts import BadText, checked, given
from clew.cli.times import moment
from clew.wire.views import ApprovalView

app = App(name="approvals", help_format="markdown")

Id = Annotated[str, Parameter(metavar="APPROVAL", help="Its id, or a beginning of it that no other has.")]


@app.default
def approvals(*, state: str = "pending", options: Options = OPTIONS) -> None:
    """List what agents ask: whether they may, and questions. Answer with allow, deny or answer.

    For example:

        clew approvals

        clew approvals --state all

        clew approvals allow ap_4f

    Parameters
    ----------
    state
        pending, approved, denied, stale, expired or all.
    """
    said = Server(options.data).get("/approvals", {"state": state})
    if options.json:
        return tell_as_is(said)
    return table(
        ("approval", "thread", "agent", "kind", "state", "words", "about", "asked"),
        [
            (
                each.id,
                each.thread,
                each.agent,
                each.kind,
                each.state,
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
    server, body = Server(options.data), {"allow": allow, "text": text}
    try:
        said = server.post(f"/approvals/{part(approval)}", body)
    except Refused as fault:
        begun = _begun_with(server, approval) if fault.status == NOT_FOUND else None
        if begun is None:
            raise
        said = server.post(f"/approvals/{part(begun)}", body)
    if options.json:
        return tell_as_is(said)
    found = read(ApprovalView, said)
    return tell(f"{found.id} of {found.agent} in {found.thread} is {found.state}.")


def _begun_with(server: Server, beginning: str) -> str | None:
    """The one that waits for an answer and begins so. What begins several is never guessed."""
    waiting = read_all(ApprovalView, server.get("/approvals", {"state": "pending"}))
    begun = [each.id for each in waiting if each.id.startswith(beginning)]
    if len(begun) > 1:
        raise BadText(f"{beginning} begins {len(begun)} approvals: {', '.join(begun[:5])}.", "Write more of it.")
    return begun[0] if begun else None
