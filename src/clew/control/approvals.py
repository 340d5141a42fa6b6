"""Approvals and questions: what waits for an answer, and the answer, which is given once."""

import time

from sqlalchemy import Connection

from clew.control.faults import AnswerRefused, BadRequest
from clew.control.services import Services
from clew.control.showing.approvals import show_approval
from clew.control.validation import how_many, not_too_long
from clew.control.wakes import PERSON
from clew.kernel import Answer, Answered, ApprovalId, ApprovalReason, ApprovalState
from clew.protocol.requests import AnswerTo
from clew.protocol.views import ApprovalView
from clew.store.operations import approvals as store
from clew.store.queries import approvals as reading
from clew.store.queries.names import approval_called, run_called

ALL = "all"
_GIVEN = {Answer.APPROVE: ApprovalState.APPROVED, Answer.DENY: ApprovalState.DENIED}


async def list_approvals(
    services: Services, state: str = "pending", limit: int = 100, run: str | None = None
) -> tuple[ApprovalView, ...]:
    """Those that wait, the longest first; or the newest of `all`, or of those in another state. Or only a run's."""
    most = how_many(limit)
    if state != ALL and state not in {each.value for each in ApprovalState}:
        known = ", ".join((*ApprovalState, ALL))
        raise BadRequest(f"No approval is ever {state!r}.", f"Name one of {known}.")

    def look(connection: Connection) -> tuple[ApprovalView, ...]:
        if run is None:
            rows = reading.list_approvals(connection, state == ApprovalState.PENDING, most)
        else:
            rows = reading.approvals_of_run(connection, run_called(connection, run))
        return tuple(show_approval(row) for row in rows if state in (ALL, row["state"]))[:most]

    return await services.read(look)


async def approvals_of(services: Services, run: str) -> tuple[ApprovalView, ...]:
    """All that a run has asked for, the newest first."""

    def look(connection: Connection) -> tuple[ApprovalView, ...]:
        return tuple(map(show_approval, reading.approvals_of_run(connection, run_called(connection, run))))

    return await services.read(look)


async def answer_approval(services: Services, approval: str, given: AnswerTo) -> ApprovalView:
    """The first answer counts; one that nobody is left to take is refused, and what was asked ends as stale."""
    words = not_too_long(given.text, "The answer")
    answer = Answer.APPROVE if given.allow else Answer.DENY

    def do(connection: Connection) -> tuple[ApprovalView, Answered]:
        asked = approval_called(connection, approval)
        _must_fit(connection, asked, given.allow, words)
        answered = store.answer_approval(connection, ApprovalId(asked), answer, PERSON.name, words)
        return show_approval(reading.read_approval(connection, asked)), answered

    view, answered = await services.write(do)
    said_before = view.state == _GIVEN[answer] and (view.answer or "") == words
    if not answered.taken and not said_before:
        raise AnswerRefused(_too_late(view, answered), "See what waits with `clew approvals`.")
    return view


def _too_late(view: ApprovalView, answered: Answered) -> str:
    if answered.reason is not ApprovalReason.SETTLED or view.ended_at is None:
        return answered.words
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(view.ended_at))
    by = "" if view.answered_by is None else f" by {view.answered_by}"
    return f"{view.id} was settled as {view.state}{by} at {when}; this answer changes nothing."


def _must_fit(connection: Connection, approval: str, allow: bool, words: str) -> None:
    """Words are an answer to a question. Said of a permission, nobody knows whether they allow it."""
    if allow and words and show_approval(reading.read_approval(connection, approval)).kind != "question":
        raise BadRequest(
            f"{approval} asks whether the agent may do something; it is no question.", "Allow or deny it instead."
        )
