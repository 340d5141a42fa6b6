"""A thread that changes hands: a new session that is handed the thread as history, and one thing to act on."""

from dataclasses import replace

import pytest

from clew.kernel import (
    Demand,
    EntrySeq,
    Floor,
    Freshness,
    Outcome,
    PlanReason,
    Policy,
    ResetPolicy,
    RunId,
    RunScope,
    SessionState,
    Wake,
    WakeReason,
    coalesce,
    decide,
    decision_to_record,
    explain,
    replay,
    to_steer,
)
from clew.kernel.plan import CatchUp
from tests.kernel.kit import FRESH_ID, LANE, OTHER_ACCOUNT, RUN, WORKTREE, codes, session, situation, wake

HANDED = wake(1, reason=WakeReason.ASSIGNMENT, freshness=Freshness.HANDOVER)
WHOLE = CatchUp(EntrySeq(0), EntrySeq(5))


def handed(*others: Wake) -> Demand:
    return coalesce([HANDED, *others])


@pytest.mark.case("W19")
def test_a_lane_that_is_new_to_the_thread_is_handed_all_of_it() -> None:
    plan = decide(situation(demand=handed()))
    assert (plan.outcome, plan.reason, plan.session) == (Outcome.RESEED, PlanReason.HANDED_OVER, None)
    assert plan.reason.code == "policy:handed-over"
    assert plan.words == "New assignment: starting a new conversation with the thread's history."
    assert (plan.catch_up, plan.kept, plan.act_on) == (WHOLE, (), (EntrySeq(5),))
    assert (plan.workspace, plan.native_id) == (WORKTREE, FRESH_ID)
    assert plan.already_told == ()
    assert "policy:handed-over" in codes(plan)
    assert explain(plan).startswith("reseed: New assignment: starting a new conversation")


@pytest.mark.case("W19", "C01")
def test_an_agent_that_had_it_before_begins_anew_with_the_history_since_its_last_fresh_start() -> None:
    # Its first session was told entry 1, by an assignment: that is where its history begins.
    floor = Floor(0, EntrySeq(1), (EntrySeq(1),))
    earlier = session(2, begins=EntrySeq(3), seen=EntrySeq(4))
    plan = decide(situation([earlier, session(1)], demand=handed(), floor=floor))
    assert (plan.outcome, plan.session, plan.reason) == (Outcome.RESEED, None, PlanReason.HANDED_OVER)
    assert (plan.catch_up, plan.kept) == (CatchUp(EntrySeq(1), EntrySeq(5)), (EntrySeq(1),))
    # From now on neither of its earlier sessions is gone back to, even when the new one is lost.
    assert plan.new_floor == Floor(2, EntrySeq(1), (EntrySeq(1),))
    lost = session(3, begins=EntrySeq(1), also=(EntrySeq(1),), seen=EntrySeq(5), state=SessionState.LOST)
    later = replace(coalesce([wake(2)]), entries=(EntrySeq(6),))
    again = decide(situation([lost, earlier, session(1)], demand=later, floor=plan.new_floor, head=EntrySeq(6)))
    assert (again.outcome, again.session) == (Outcome.RESEED, None)
    assert (again.catch_up, again.kept) == (CatchUp(EntrySeq(1), EntrySeq(6)), (EntrySeq(1),))


@pytest.mark.case("C01", "W19")
def test_a_plain_assignment_stays_blank() -> None:
    plan = decide(situation([session()], demand=coalesce([wake(1, reason=WakeReason.ASSIGNMENT)])))
    assert (plan.outcome, plan.reason) == (Outcome.BLANK, PlanReason.POLICY_ASSIGNMENT)


@pytest.mark.case("W19", "W02")
def test_a_fresh_start_that_somebody_demands_is_blank_all_the_same() -> None:
    demand = coalesce([HANDED, wake(2, freshness=Freshness.FRESH)])
    assert demand.handed_over is False
    plan = decide(situation([session()], demand=demand, head=EntrySeq(6)))
    assert (plan.outcome, plan.reason) == (Outcome.BLANK, PlanReason.FRESH_DEMANDED)


@pytest.mark.case("W19", "P09")
def test_a_handover_that_was_begun_goes_on_in_the_session_it_opened() -> None:
    retried = coalesce([replace(HANDED, began=True)])
    assert (retried.handed_over, retried.reasons) == (False, (WakeReason.RETRY,))
    opened = session(1, seen=EntrySeq(5))
    again = decide(situation([opened], demand=retried))
    assert (again.outcome, again.session, again.already_told) == (Outcome.RESUME, opened, (EntrySeq(5),))


@pytest.mark.case("W19")
def test_what_is_said_after_it_is_acted_on_too() -> None:
    plan = decide(situation(demand=handed(wake(2)), head=EntrySeq(6)))
    assert (plan.reason, plan.act_on) == (PlanReason.HANDED_OVER, (5, 6))


@pytest.mark.case("W19")
def test_a_policy_that_starts_nothing_anew_goes_on_in_the_session_there_is() -> None:
    keeps = Policy(reset=ResetPolicy(frozenset()))
    plan = decide(situation([session()], demand=handed(), policy=keeps))
    assert (plan.outcome, plan.catch_up) == (Outcome.RESUME, CatchUp(EntrySeq(3), EntrySeq(5)))
    first = decide(situation(demand=handed(), policy=keeps))
    assert (first.outcome, first.catch_up) == (Outcome.RESEED, WHOLE)


@pytest.mark.case("W19")
def test_an_isolated_run_is_told_only_what_the_wake_says() -> None:
    plan = decide(situation(demand=handed(), scope=RunScope(LANE, RUN)))
    assert (plan.outcome, plan.catch_up, plan.new_floor) == (Outcome.BLANK, CatchUp(EntrySeq(5), EntrySeq(5)), None)


@pytest.mark.case("W19", "C05")
def test_a_person_who_asks_for_an_earlier_run_gets_it() -> None:
    asked = replace(coalesce([HANDED]), resume_run=RunId("run-1"))
    assert decide(situation([session()], demand=asked)).outcome is Outcome.RESUME


@pytest.mark.case("W19", "C29")
def test_what_another_account_wrote_is_left_to_the_reader_of_the_plan() -> None:
    plan = decide(situation([session(account=OTHER_ACCOUNT)], demand=handed()))
    assert (plan.reason, plan.reader.across_accounts) == (PlanReason.HANDED_OVER, False)


@pytest.mark.case("W19", "C33")
def test_it_is_kept_and_made_again() -> None:
    record = decision_to_record(decide(situation([session()], demand=handed())))
    assert replay(record).same
    other = replay(record, Policy(reset=ResetPolicy(frozenset())))
    assert (other.plan.outcome, other.plan.session) == (Outcome.RESUME, session())
    # What an earlier release wrote knows nothing of it.
    known = record["situation"]
    assert isinstance(known, dict)
    assert isinstance(known["demand"], dict)
    del known["demand"]["handed_over"]
    assert replay(record).plan.reason is PlanReason.POLICY_ASSIGNMENT


@pytest.mark.case("W19")
def test_it_is_never_told_within_a_turn() -> None:
    comment = wake(2)
    assert to_steer([HANDED, comment], {comment.id}, EntrySeq(4), 10.0) == (comment,)
