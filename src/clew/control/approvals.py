"""Approvals and questions: what waits for an answer, and the answer, which is given once."""

from sqlalchemy import Connection

from clew.control.bounds import how_many, not_too_long
from clew.control.desk import Desk
from clew.control.faults import AnswerRefused, BadRequest
from clew.control.showing.approvals import show_approval
from clew.control.waking import PERSON
from clew.kernel import Answer, Answered, ApprovalId, ApprovalState
from clew.store import approvals as store
from clew.store.reading import approvals as reading
from clew.store.reading.names import run_called
from clew.store.texts import keepable
from clew.wire.asks import AnswerTo
from clew.wire.views import ApprovalView

ALL = "all"
_GIVEN = {Answer.APPROVE: ApprovalState.APPROVED, Answer.DENY: ApprovalState.DENIED}


async def list_approvals(desk: Desk, state: str = "pending", limit: int = 100) -> tuple[ApprovalView, ...]:
    """Those that wait, the longest first; or the newest of `all`, or of those in another state."""
    most = how_many(limit)
    if state != ALL and state not in {each.value for each in ApprovalState}:
        known = ", ".join((*ApprovalState, ALL))
        raise BadRequest(f"No approval is ever {state!r}.", f"Name one of {known}.")

    def look(connection: Connection) -> tuple[ApprovalView, ...]:
        rows = reading.list_approvals(connection, state == ApprovalState.PENDING, most)
        return tuple(show_approval(row) for row in rows if state in (ALL, row["state"]))

    return await desk.read(look)


async def approvals_of(desk: Desk, run: str) -> tuple[ApprovalView, ...]:
    """All that a run has asked for, the newest first."""

    def look(connection: Connection) -> tuple[ApprovalView, ...]:
        return tuple(map(show_approval, reading.approvals_of_run(connection, run_called(connection, run))))

    return await desk.read(look)


async def answer_approval(desk: Desk, approval: str, given: AnswerTo) -> ApprovalView:
    """The first answer counts; one that nobody is left to take is refused, and what was asked ends as stale."""
    words, approval = not_too_long(given.text, "The answer"), keepable(approval)
    answer = Answer.APPROVE if given.allow else Answer.DENY

    def do(connection: Connection) -> tuple[ApprovalView, Answered]:
        _must_fit(connection, approval, given.allow, words)
        answered = store.answer_approval(connection, ApprovalId(approval), answer, PERSON.name, words)
        return show_approval(reading.read_approval(connection, approval)), answered

    view, answered = await desk.write(do)
    said_before = view.state == _GIVEN[answer] and (view.answer or "") == words
    if not answered.taken and not said_before:
        raise AnswerRefused(f"{answered.words}", "See what waits with `clew approvals`.")
    return view


def _must_fit(connection: Connection, approval: str, allow: bool, words: str) -> None:
    """Words are an answer to a question. Said of a permission, nobody knows whether they allow it."""
    if allow and words and show_approval(reading.read_approval(connection, approval)).kind != "question":
        raise BadRequest(
            f"{approval} asks whether the agent may do something; it is no question.", "Allow or deny it instead."
        )
