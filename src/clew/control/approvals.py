"""Approvals and questions of agents: listed, and answered once."""

import time

from clew.control.actor import Actor, name_of
from clew.control.faults import AnswerRefused, BadRequest
from clew.control.services import Services
from clew.control.validation import check_limit, check_size
from clew.kernel import Answer, Answered, ApprovalId, ApprovalReason, ApprovalState, RunId
from clew.protocol.requests import AnswerTo
from clew.protocol.views import ApprovalView
from clew.store.engine.database import Transaction
from clew.store.operations import approvals as store
from clew.store.operations.allowances import remember
from clew.store.queries import approvals as queries
from clew.store.queries.names import approval_called, run_called

ALL = "all"
_GIVEN = {Answer.APPROVE: ApprovalState.APPROVED, Answer.DENY: ApprovalState.DENIED}


async def list_approvals(
    services: Services, actor: Actor, state: str = "pending", limit: int = 100, run: str | None = None
) -> tuple[ApprovalView, ...]:
    """The pending ones, oldest first; or the ones in another state or in any (`all`), newest first. With
    `run`, only that run's."""
    most = check_limit(limit)
    if state != ALL and state not in {each.value for each in ApprovalState}:
        known = ", ".join((*ApprovalState, ALL))
        raise BadRequest(f"Unknown approval state {state!r}.", f"Use one of: {known}.")

    def read(tx: Transaction) -> tuple[ApprovalView, ...]:
        if run is None:
            found = queries.list_approvals(tx, state == ApprovalState.PENDING, most)
        else:
            found = queries.approvals_of_run(tx, run_called(tx, run))
        return tuple(each for each in found if state in (ALL, each.state))[:most]

    return await services.read(read)


async def approvals_of(services: Services, actor: Actor, run: str) -> tuple[ApprovalView, ...]:
    """All that a run has asked for, the newest first."""
    return await services.read(lambda tx: queries.approvals_of_run(tx, run_called(tx, run)))


async def answer_approval(services: Services, actor: Actor, approval: str, given: AnswerTo) -> ApprovalView:
    """The first answer counts. An answer that its run can no longer take is refused, and the approval ends as stale."""
    words = check_size(given.text, "The answer")
    answer = Answer.APPROVE if given.allow else Answer.DENY

    def write(tx: Transaction) -> tuple[ApprovalView, Answered]:
        asked = approval_called(tx, approval)
        _must_fit(tx, asked, given.allow, words)
        answered = store.answer_approval(tx, ApprovalId(asked), answer, name_of(actor), words)
        view = queries.show_approval(tx, asked)
        if given.always and answered.taken:
            remember(tx, RunId(view.run), view.tool, _command(view, given), name_of(actor))
        return view, answered

    view, answered = await services.write(write)
    said_before = view.state == _GIVEN[answer] and (view.answer or "") == words
    if not answered.taken and not said_before:
        raise AnswerRefused(_too_late(view, answered), "See what is pending with `clew approvals`.")
    return view


def _command(view: ApprovalView, given: AnswerTo) -> str:
    if not given.allow:
        raise BadRequest("A denial is for once; only what is allowed can be allowed always.", "Leave out `always`.")
    if view.command is None:
        words = f"Only a command can be allowed always, and {view.id} asks for something else."
        raise BadRequest(words, "Allow it once, or deny it.")
    return view.command


def _too_late(view: ApprovalView, answered: Answered) -> str:
    if answered.reason is not ApprovalReason.SETTLED or view.ended_at is None:
        return answered.words
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(view.ended_at))
    by = "" if view.answered_by is None else f" by {view.answered_by}"
    return f"{view.id} ended as {view.state}{by} at {when}; this answer changes nothing."


def _must_fit(tx: Transaction, approval: str, allow: bool, words: str) -> None:
    """A text answers a question. For a permission it would be unclear whether the text allows it."""
    if allow and words and queries.show_approval(tx, approval).kind != "question":
        raise BadRequest(
            f"{approval} asks for permission; it is not a question that a text can answer.", "Allow or deny it instead."
        )
