"""Fresh starts: by demand, by policy, and how long they last."""

from dataclasses import replace
from typing import Any

import pytest

from clew.kernel import (
    Cursor,
    EntrySeq,
    Floor,
    Freshness,
    NativeId,
    Outcome,
    PlanReason,
    Policy,
    ReadState,
    ResetPolicy,
    RuleReason,
    RunId,
    RunScope,
    SessionState,
    Source,
    SourceRead,
    WakeId,
    WakeReason,
    coalesce,
    decide,
    decision_to_record,
    gather,
    replay,
)
from clew.kernel.plan import CatchUp
from tests.kernel.kit import (
    FRESH_ID,
    LANE,
    OTHER_ACCOUNT,
    OTHER_LANE,
    RUN,
    THERE,
    WORKTREE,
    can,
    demand,
    here,
    session,
    situation,
    steps,
    wake,
)


@pytest.mark.case("C01")
def test_an_assignment_starts_blank_and_keeps_the_lanes_directory() -> None:
    plan = decide(situation([session()], demand=demand(WakeReason.ASSIGNMENT)))
    assert plan.outcome is Outcome.BLANK
    assert plan.reason.code == "policy:assignment"
    assert plan.words == "New assignment: starting a new conversation."
    assert plan.workspace == WORKTREE
    assert plan.session is None
    assert plan.native_id == FRESH_ID


@pytest.mark.case("C01")
@pytest.mark.parametrize("reason", WakeReason)
def test_any_reason_can_be_set_to_reset(reason: WakeReason) -> None:
    policy = Policy(reset=ResetPolicy(frozenset({reason})))
    plan = decide(situation([session()], demand=demand(reason), policy=policy))
    assert (plan.outcome, plan.reason.code) == (Outcome.BLANK, f"policy:{reason}")
    assert "new conversation" in plan.words
    assert decide(situation([session()], demand=demand(reason), policy=Policy(reset=ResetPolicy(frozenset())))).session


def test_the_reason_that_resets_is_named_among_several() -> None:
    plan = decide(situation([session()], demand=demand(WakeReason.COMMENT, WakeReason.ASSIGNMENT)))
    assert plan.reason is PlanReason.POLICY_ASSIGNMENT


@pytest.mark.case("C03")
@pytest.mark.parametrize("source", Source)
def test_a_demanded_reset_bars_every_source(source: Source) -> None:
    asked = demand(fresh_asked_by="w1", resume_run=RunId("run-1") if source is Source.ASKED else None)
    given = SourceRead(source, ReadState.ANSWERED, (session(1), session(2, runtime=THERE)))
    plan = decide(situation(demand=asked, sources=(given,)))
    assert plan.outcome is Outcome.BLANK
    assert plan.reason is PlanReason.FRESH_DEMANDED
    assert plan.words == "New conversation, as asked for."
    assert plan.session is None
    assert [each.findings for each in plan.considered] == [(RuleReason.RESET,), (RuleReason.RESET,)]
    assert len(plan.catch_up) == 0


@pytest.mark.case("C01", "C03", "C33")
def test_a_fresh_start_by_policy_can_be_tried_under_another_policy() -> None:
    reads = gather(demand(WakeReason.ASSIGNMENT), lambda _: [session()])
    plan = decide(situation(demand=demand(WakeReason.ASSIGNMENT), sources=reads))
    assert (plan.outcome, plan.considered[0].findings) == (Outcome.BLANK, (RuleReason.RESET,))
    other = replay(decision_to_record(plan), Policy(reset=ResetPolicy(frozenset())))
    assert (other.plan.outcome, other.plan.session) == (Outcome.RESUME, session())


@pytest.mark.case("C03")
def test_a_fresh_start_lasts_beyond_its_own_run() -> None:
    fresh = decide(situation([session(1)], demand=demand(fresh_asked_by=WakeId("w1"))))
    assert fresh.new_floor == Floor(generation=1, entry=EntrySeq(5), kept=(EntrySeq(5),))
    floor = Floor(generation=1, entry=EntrySeq(4))
    poisoned = decide(situation([session(2, state=SessionState.POISONED), session(1)], floor=floor))
    assert (poisoned.outcome, poisoned.session) == (Outcome.RESEED, None)
    assert poisoned.catch_up == CatchUp(EntrySeq(4), EntrySeq(5))
    assert steps(poisoned, "s1")["fresh-start"] == (
        "out",
        "fresh-start:before",
        "It is from before the lane's last fresh start.",
    )
    alone = decide(situation([session(1)], floor=floor))
    assert (alone.outcome, alone.reason) == (Outcome.BLANK, PlanReason.NONE_OF_ITS_OWN)
    talked = decide(situation([session(1)], floor=Floor(1, EntrySeq(3))))
    assert (talked.outcome, talked.catch_up) == (Outcome.RESEED, CatchUp(EntrySeq(3), EntrySeq(5)))
    later = decide(situation([session(2), session(1)], floor=floor))
    assert (later.outcome, later.session) == (Outcome.RESUME, session(2))


@pytest.mark.case("C05")
def test_a_person_may_ask_for_what_was_before_a_fresh_start() -> None:
    asked = decide(situation([session(1)], demand=demand(resume_run=RunId("run-1")), floor=Floor(1, EntrySeq(4))))
    assert (asked.outcome, asked.session) == (Outcome.RESUME, session(1))
    assert asked.catch_up == CatchUp(EntrySeq(3), EntrySeq(5))


def test_only_a_start_on_purpose_cuts_the_history() -> None:
    assert decide(situation(head=EntrySeq(1), demand=replace(demand(), entries=(EntrySeq(1),)))).new_floor is None
    assert decide(situation([session(1, account=OTHER_ACCOUNT)])).new_floor is None
    strangers = [session(50, lane=OTHER_LANE), session(40, scope=RunScope(LANE, RUN)), session(2)]
    lower = decide(situation(strangers, demand=demand(WakeReason.ASSIGNMENT), floor=Floor(1, EntrySeq(1))))
    assert lower.new_floor == Floor(2, EntrySeq(5), (EntrySeq(5),))
    higher = decide(situation([session(2)], demand=demand(WakeReason.ASSIGNMENT), floor=Floor(5, EntrySeq(1))))
    assert higher.new_floor == Floor(5, EntrySeq(5), (EntrySeq(5),))
    assert decide(situation([session(1)])).new_floor is None
    assert decide(situation(scope=RunScope(LANE, RUN))).new_floor is None
    unspoken = replace(demand(fresh_asked_by=WakeId("w1")), entries=())
    unread = situation(demand=unspoken, sources=(), floor=Floor(4, EntrySeq(2)))
    assert decide(unread).new_floor == Floor(4, EntrySeq(5))


@pytest.mark.case("C03")
def test_what_a_fresh_start_was_told_outlives_the_session_it_was_told_to() -> None:
    task, later = EntrySeq(1), EntrySeq(6)
    fresh = decide(situation(demand=replace(demand(WakeReason.ASSIGNMENT), entries=(task,))))
    assert fresh.new_floor == Floor(0, EntrySeq(5), (task,))
    lost = session(1, cursor=None)
    asked = replace(demand(), entries=(later,))
    plan = decide(situation([lost], floor=fresh.new_floor, head=later, demand=asked))
    assert (plan.outcome, plan.kept, plan.catch_up) == (Outcome.RESEED, (task,), CatchUp(EntrySeq(5), later))
    assert decide(situation([session(1)], floor=fresh.new_floor, head=later, demand=asked)).kept == ()
    alone = decide(situation(floor=fresh.new_floor, head=later, demand=asked))
    assert (alone.outcome, alone.reason) == (Outcome.RESEED, PlanReason.FIRST)
    cut = decide(situation(floor=replace(fresh.new_floor, generation=1), head=later, demand=asked))
    assert (cut.outcome, cut.reason) == (Outcome.RESEED, PlanReason.NONE_OF_ITS_OWN)
    same = decide(situation(floor=fresh.new_floor, demand=replace(demand(), entries=(task,))))
    assert same.outcome is Outcome.BLANK


@pytest.mark.case("P09", "P12", "R05")
@pytest.mark.parametrize("first", [{"reason": WakeReason.ASSIGNMENT}, {"freshness": Freshness.FRESH}])
def test_a_fresh_start_that_died_goes_on_in_the_session_it_opened(first: dict[str, Any]) -> None:
    fresh = decide(situation([session(1)], demand=coalesce([wake(1, **first)])))
    assert fresh.outcome is Outcome.BLANK
    opened = session(2, begins=EntrySeq(5), also=(EntrySeq(5),), seen=EntrySeq(5))
    retried = coalesce([wake(1, began=True, **first)])
    assert (retried.reasons, retried.fresh_asked_by) == ((WakeReason.RETRY,), None)
    again = decide(situation([opened, session(1)], demand=retried, floor=fresh.new_floor))
    assert (again.outcome, again.session, again.already_told) == (Outcome.RESUME, opened, (5,))


@pytest.mark.case("C03", "X01")
def test_a_session_that_began_at_a_fresh_start_is_told_nothing_from_before_it() -> None:
    unprompted = session(2, begins=EntrySeq(4), seen=EntrySeq(0), turns=0)
    plan = decide(situation([unprompted], floor=Floor(1, EntrySeq(4))))
    assert (plan.outcome, plan.catch_up) == (Outcome.RESUME, CatchUp(EntrySeq(4), EntrySeq(5)))
    assert plan.already_told == ()
    unmarked = decide(situation([replace(unprompted, begins=EntrySeq(0))], floor=Floor(1, EntrySeq(4))))
    assert unmarked.catch_up == plan.catch_up


@pytest.mark.case("W02")
def test_one_wish_for_a_fresh_start_makes_the_merged_run_fresh() -> None:
    merged = coalesce([wake(1), wake(2, freshness=Freshness.FRESH), wake(3)])
    plan = decide(situation([session()], demand=merged, head=EntrySeq(7)))
    assert (plan.outcome, plan.reason, plan.act_on) == (Outcome.BLANK, PlanReason.FRESH_DEMANDED, (5, 6, 7))


def test_a_fresh_id_that_is_taken_is_not_used() -> None:
    taken = session(1, cursor=Cursor(1, FRESH_ID), state=SessionState.RETIRED)
    assert decide(situation([taken])).native_id is None
    unable = here(capabilities=can(choose_id=False))
    assert decide(situation([], here=unable)).native_id is None
    assert decide(situation([], fresh_id=NativeId("not of the shape"))).native_id is None
    assert decide(situation([], fresh_id=None)).native_id is None
