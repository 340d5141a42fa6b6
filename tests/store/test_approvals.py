"""Approvals: requested by a live run, answered once, and never for a run that has ended."""

from typing import Any

import pytest

from clew.kernel import Answer, Answered, ApprovalId, ApprovalState, RunState
from clew.protocol.orders import Order
from clew.protocol.reports import Asked, Completed
from clew.store.engine.dialect import read_clock
from clew.store.faults import NoSuchApproval
from clew.store.operations.approvals import answer_approval
from clew.store.operations.leases import end_orphans
from clew.store.schema.tables import approvals
from tests.store.kit import RUNTIME, Daemon

ONE, TWO = ApprovalId("ap-1"), ApprovalId("ap-2")


@pytest.fixture
def order(daemon: Daemon) -> Order:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    return order


def answer(daemon: Daemon, approval: ApprovalId, given: Answer = Answer.APPROVE) -> Answered:
    return daemon.write(lambda connection: answer_approval(connection, approval, given, "a person"))


def approval(daemon: Daemon, name: ApprovalId = ONE) -> Any:
    (row,) = daemon.rows(approvals, id=name)
    return row


@pytest.mark.case("A03")
def test_an_approval_is_asked_answered_once_and_the_daemon_is_told(daemon: Daemon, order: Order) -> None:
    asked = daemon.report(order, asks=(Asked(ONE, "May I delete it?"),))
    assert (asked.state, asked.answers) == (RunState.WAITING, ())
    row = approval(daemon)
    assert (row.run_id, row.attempt, row.question, row.state) == (order.run, 1, "May I delete it?", "pending")
    first = answer(daemon, ONE, Answer.DENY)
    assert (first.taken, first.approval.state) == (True, ApprovalState.DENIED)
    second = answer(daemon, ONE, Answer.APPROVE)
    assert (second.taken, second.words) == (False, "It was already denied; this answer changes nothing.")
    row = approval(daemon)
    assert (row.state, row.answered_by, row.ended_at is not None) == ("denied", "a person", True)
    told = daemon.report(order)
    assert [(each.approval, each.state) for each in told.answers] == [(ONE, "denied")]
    assert daemon.report(order, answered=True).state is RunState.RUNNING


@pytest.mark.case("A03")
def test_of_many_answers_at_once_one_counts(daemon: Daemon, order: Order) -> None:
    daemon.report(order, asks=(Asked(ONE, "May I?"),))
    given = [Answer.APPROVE, Answer.DENY] * 4
    answers = [
        daemon.database.write(lambda connection, each=each: answer_approval(connection, ONE, each, each.value))  # type: ignore[misc]
        for each in given
    ]
    results = [each.result(30) for each in answers]
    (taken,) = [result for result in results if result.taken]
    row = approval(daemon)
    assert row.state == taken.approval.state
    assert {result.approval.state for result in results} == {taken.approval.state}
    assert (row.answered_by == "approve") == (row.state == "approved")


@pytest.mark.case("A03")
def test_an_approval_of_a_run_that_has_ended_is_stale_and_approves_nothing(daemon: Daemon, order: Order) -> None:
    daemon.report(order, asks=(Asked(ONE, "May I?"),))
    daemon.finish(order, Completed("never mind"))
    assert approval(daemon).state == "stale"
    late = answer(daemon, ONE)
    assert (late.taken, late.approval.state) == (False, ApprovalState.STALE)
    assert approval(daemon).answered_by is None


@pytest.mark.case("A03")
def test_an_approval_of_a_run_whose_daemon_died_is_stale(daemon: Daemon, order: Order) -> None:
    daemon.report(order, asks=(Asked(ONE, "May I?"),))
    daemon.write(lambda connection: end_orphans(connection, "daemon-1", [RUNTIME]))
    assert approval(daemon).state == "stale"


@pytest.mark.case("A03")
def test_a_question_that_comes_after_the_end_is_not_put_to_anybody(daemon: Daemon, order: Order) -> None:
    daemon.finish(order)
    late = daemon.report(order, asks=(Asked(ONE, "May I?"),))
    assert not late.held
    assert daemon.rows(approvals) == []


def test_an_answer_after_the_questions_time_is_expired(daemon: Daemon, order: Order) -> None:
    soon = daemon.database.read(read_clock) - 1
    daemon.report(order, asks=(Asked(ONE, "May I?", soon),))
    late = answer(daemon, ONE)
    assert (late.taken, late.approval.state) == (False, ApprovalState.EXPIRED)
    assert late.words == "The question had timed out before the answer came."


def test_a_question_that_follows_an_answer_is_still_open(daemon: Daemon, order: Order) -> None:
    daemon.report(order, asks=(Asked(ONE, "May I?"),))
    answer(daemon, ONE)
    both = daemon.report(order, answered=True, asks=(Asked(TWO, "And this?"),))
    assert both.state is RunState.WAITING
    assert [(row.id, row.state) for row in daemon.rows(approvals)] == [(ONE, "approved"), (TWO, "pending")]


def test_a_question_that_is_put_twice_is_one(daemon: Daemon, order: Order) -> None:
    for _ in range(2):
        daemon.report(order, asks=(Asked(ONE, "May I?"),))
    assert len(daemon.rows(approvals)) == 1


def test_an_approval_that_is_not_there_is_named(daemon: Daemon) -> None:
    with pytest.raises(NoSuchApproval, match="There is no approval ap-1"):
        answer(daemon, ONE)
