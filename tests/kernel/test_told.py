"""What a session is told: all it has not seen, nothing twice, nothing that is not its own."""

from dataclasses import replace
from typing import Any

import pytest

from clew.kernel import (
    Audience,
    EntrySeq,
    Floor,
    LaneScope,
    Outcome,
    PlanReason,
    RuleReason,
    RunId,
    RunScope,
    WakeReason,
    decide,
)
from clew.kernel.plan import CatchUp
from tests.kernel.kit import LANE, OTHER_ACCOUNT, OTHER_LANE, RUN, demand, finding, session, situation


def test_the_first_wake_of_a_lane_is_blank_unless_the_thread_has_a_history() -> None:
    alone = decide(situation(head=EntrySeq(2), demand=replace(demand(), entries=(EntrySeq(1), EntrySeq(2)))))
    assert (alone.outcome, alone.reason, alone.words) == (
        Outcome.BLANK,
        PlanReason.FIRST,
        "New conversation.",
    )
    joined = decide(situation(head=EntrySeq(2), demand=replace(demand(), entries=(EntrySeq(2),))))
    assert (joined.outcome, joined.reason) == (Outcome.RESEED, PlanReason.FIRST)
    assert joined.catch_up == CatchUp(EntrySeq(0), EntrySeq(2))
    with pytest.raises(ValueError, match=r"^entry 9 is to be answered, but the journal ends at 1$"):
        situation(head=EntrySeq(1), demand=replace(demand(), entries=(EntrySeq(1), EntrySeq(9))))


@pytest.mark.case("H02")
def test_an_isolated_run_sees_nothing_of_earlier_ones() -> None:
    earlier = [
        session(1),
        session(2, scope=RunScope(LANE, RunId("run-8"))),
    ]
    plan = decide(situation(earlier, scope=RunScope(LANE, RUN), demand=demand(WakeReason.TIMER), head=EntrySeq(900)))
    assert (plan.outcome, plan.reason) == (Outcome.BLANK, PlanReason.ISOLATED)
    assert plan.words == "Isolated run: a new conversation that gets only what the wake says."
    assert len(plan.catch_up) == 0
    assert [each.findings for each in plan.considered] == [(RuleReason.SCOPE_OTHER,)] * 2


@pytest.mark.case("H02")
def test_an_isolated_run_that_is_tried_again_resumes_its_own_session_and_no_more() -> None:
    scope = RunScope(LANE, RUN)
    plan = decide(situation([session(1, scope=scope)], scope=scope, head=EntrySeq(900)))
    assert (plan.outcome, len(plan.catch_up)) == (Outcome.RESUME, 0)
    assert (plan.act_on, plan.already_told) == ((5,), ())
    told = decide(situation([session(1, scope=scope, seen=EntrySeq(5))], scope=scope, head=EntrySeq(900)))
    assert told.already_told == (5,)
    lost = decide(situation([session(1, scope=scope, cursor=None)], scope=scope, head=EntrySeq(900)))
    assert (lost.outcome, lost.reason) == (Outcome.BLANK, PlanReason.ISOLATED)


def test_equal_scopes_are_one_scope_whoever_made_the_value() -> None:
    assert decide(situation([session(1, scope=LaneScope(LANE))], scope=LaneScope(LANE))).outcome is Outcome.RESUME


@pytest.mark.case("X01")
def test_a_session_is_handed_exactly_what_it_has_not_seen() -> None:
    plan = decide(situation([session(1, seen=EntrySeq(2))], head=EntrySeq(6)))
    assert [entry for entry in range(10) if EntrySeq(entry) in plan.catch_up] == [3, 4, 5, 6]
    assert len(plan.catch_up) == 4
    assert len(decide(situation([session(1, seen=EntrySeq(6))], head=EntrySeq(6))).catch_up) == 0


@pytest.mark.case("X01")
def test_a_session_that_claims_more_than_the_journal_holds_is_not_this_threads() -> None:
    assert decide(situation([session(1, seen=EntrySeq(-1))])).reason.code == "journal:beyond"
    plan = decide(situation([session(1, seen=EntrySeq(6))], head=EntrySeq(5)))
    assert (plan.outcome, plan.reason.code) == (Outcome.RESEED, "journal:beyond")
    assert finding(plan) == "It claims to have seen entry 6 of a journal that ends at 5."


@pytest.mark.case("P09", "X07")
def test_an_entry_that_a_blank_session_was_never_told_is_sent() -> None:
    blank = session(2, begins=EntrySeq(6), also=(EntrySeq(6),), seen=EntrySeq(6))
    parked = replace(demand(WakeReason.EVENT), entries=(EntrySeq(5), EntrySeq(6)))
    plan = decide(situation([blank], demand=parked, head=EntrySeq(6)))
    assert (plan.outcome, plan.act_on, plan.already_told) == (Outcome.RESUME, (5, 6), (6,))


@pytest.mark.case("P12", "X07")
def test_a_session_that_took_the_prompt_before_it_died_is_not_sent_it_again() -> None:
    pinned = session(1, seen=EntrySeq(5))
    plan = decide(situation([pinned], demand=replace(demand(), entries=(EntrySeq(4), EntrySeq(5)))))
    assert (plan.outcome, plan.act_on, plan.already_told) == (Outcome.RESUME, (4, 5), (4, 5))
    assert decide(situation([session(1, seen=EntrySeq(4))])).already_told == ()
    lost = decide(situation([session(1, seen=EntrySeq(5), cursor=None)]))
    assert (lost.outcome, lost.already_told) == (Outcome.RESEED, ())


@pytest.mark.case("P19", "X01")
def test_a_session_that_never_took_its_first_prompt_is_told_what_it_was_to_begin_with() -> None:
    blank = session(1, begins=EntrySeq(4), also=(EntrySeq(2), EntrySeq(4)), seen=EntrySeq(0))
    plan = decide(situation([blank]))
    assert (plan.outcome, plan.catch_up.after, plan.kept, plan.already_told) == (Outcome.RESUME, 4, (2, 4), ())
    took = decide(situation([replace(blank, seen=EntrySeq(4))]))
    assert (took.outcome, took.catch_up.after, took.kept) == (Outcome.RESUME, 4, ())


@pytest.mark.case("L11")
def test_a_resumed_agent_is_told_what_did_not_survive() -> None:
    plan = decide(situation([session()], machinery_gone=("the dev server", "a timer")))
    assert [(notice.audience, notice.words) for notice in plan.notices] == [
        (
            Audience.AGENT,
            "The last run ended abruptly. Do not wait for what is gone: the dev server, a timer.",
        )
    ]
    held = decide(situation([session(1, busy_with="x")], machinery_gone=("a timer",)))
    assert held.notices == ()
    for fresh in (situation([session()], demand=demand(WakeReason.ASSIGNMENT)), situation(scope=RunScope(LANE, RUN))):
        assert decide(replace(fresh, machinery_gone=("a timer",))).notices == ()
    lost = decide(situation([session(1, cursor=None)], machinery_gone=("a timer",)))
    assert [notice.audience for notice in lost.notices] == [Audience.AGENT]


@pytest.mark.case("X01", "X02")
def test_a_reseed_begins_where_the_lost_sessions_history_began() -> None:
    lost = session(2, cursor=None, begins=EntrySeq(4), also=(EntrySeq(2),))
    plan = decide(situation([lost]))
    assert (plan.outcome, plan.catch_up.after, plan.kept) == (Outcome.RESEED, 4, (2,))
    resumed = decide(situation([session(1, begins=EntrySeq(4), seen=EntrySeq(0))]))
    assert (resumed.outcome, resumed.catch_up.after) == (Outcome.RESUME, 4)


@pytest.mark.case("C03", "X01")
def test_a_reseed_begins_at_the_fresh_start_unless_the_lane_began_later() -> None:
    floor = Floor(1, EntrySeq(4), (EntrySeq(1),))
    unprompted = decide(situation([session(2, cursor=None, begins=EntrySeq(4))], floor=floor))
    assert (unprompted.catch_up.after, unprompted.kept) == (4, (1,))
    before = decide(situation([session(1, begins=EntrySeq(5))], floor=floor, head=EntrySeq(6)))
    assert (before.outcome, before.catch_up.after, before.kept) == (Outcome.RESEED, 4, (1,))


@pytest.mark.parametrize("stranger", [{"lane": OTHER_LANE}, {"scope": RunScope(LANE, RUN)}])
def test_a_strangers_session_says_nothing_about_this_conversations_history(stranger: dict[str, Any]) -> None:
    rows = [session(2, begins=EntrySeq(5), account=OTHER_ACCOUNT, **stranger), session(1, cursor=None)]
    plan = decide(situation(rows))
    assert (plan.outcome, plan.reason, plan.catch_up.after) == (Outcome.RESEED, RuleReason.NEVER_CAPTURED, 0)


@pytest.mark.case("H02")
def test_a_lanes_fresh_start_does_not_bar_an_isolated_runs_own_session() -> None:
    scope = RunScope(LANE, RUN)
    plan = decide(situation([session(1, scope=scope)], scope=scope, floor=Floor(7, EntrySeq(4))))
    assert plan.outcome is Outcome.RESUME


def test_the_entry_at_which_a_session_begins_is_not_among_what_it_was_told() -> None:
    plan = decide(situation([session(1, begins=EntrySeq(5), seen=EntrySeq(5))]))
    assert (plan.outcome, plan.act_on, plan.already_told) == (Outcome.RESUME, (5,), ())


def test_what_was_said_since_a_fresh_start_is_history() -> None:
    floor = Floor(1, EntrySeq(4), (EntrySeq(4),))
    spoken = replace(demand(), entries=(EntrySeq(4), EntrySeq(6)))
    assert decide(situation(floor=floor, head=EntrySeq(6), demand=spoken)).outcome is Outcome.RESEED
    alone = replace(demand(), entries=(EntrySeq(4), EntrySeq(5)))
    assert decide(situation(floor=floor, demand=alone)).outcome is Outcome.BLANK
