"""Sessions that somebody has in hand, and sessions over their limits."""

from typing import Any

import pytest

from clew.kernel import (
    EntrySeq,
    ModelChange,
    Outcome,
    PermissionMode,
    Policy,
    RuleReason,
    SessionChange,
    SessionEvent,
    SessionLimits,
    SessionState,
    WaitsFor,
    decide,
)
from tests.kernel.kit import ELSEWHERE, FRESH_ID, RUN, THERE, can, finding, here, session, situation


@pytest.mark.case("C29")
def test_a_busy_session_is_waited_for() -> None:
    plan = decide(situation([session(1), session(2, busy_with="run-8")]))
    assert (plan.outcome, plan.reason) == (Outcome.HOLD, RuleReason.BUSY)
    assert finding(plan) == "It is in use by run-8."
    assert plan.waits_for is WaitsFor.SESSION_FREE
    assert plan.session == session(2, busy_with="run-8")
    assert plan.native_id == "n-2"
    assert len(plan.catch_up) == 0


@pytest.mark.case("C29")
def test_a_busy_session_is_forked_where_parallel_is_allowed_and_possible() -> None:
    busy, parallel = session(1, busy_with="run-8"), Policy(parallel=True)
    plan = decide(situation([busy], policy=parallel))
    assert (plan.outcome, plan.reason) == (Outcome.FORK, RuleReason.BUSY_FORK)
    assert finding(plan) == "It is in use by run-8; its history is forked."
    assert plan.native_id == FRESH_ID
    unable = here(capabilities=can(fork=False))
    assert decide(situation([busy], policy=parallel, here=unable)).outcome is Outcome.HOLD
    elsewhere = session(1, busy_with="run-8", directory=ELSEWHERE)
    stays = here(capabilities=can(fork_into=False))
    assert decide(situation([elsewhere], policy=parallel, here=stays)).outcome is Outcome.HOLD


@pytest.mark.case("C29", "T07")
@pytest.mark.parametrize("in_hand", [{"busy_with": "run-8"}, {"state": SessionState.SEALED}])
@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"turns": 9},
        {"directory": ELSEWHERE},
        {"runtime": THERE},
        {"mode": PermissionMode.FULL},
        {"model": "small"},
        {"cursor": None},
        {"seen": EntrySeq(9)},
    ],
)
def test_a_session_that_somebody_has_in_hand_is_waited_for_whatever_else_speaks(
    in_hand: dict[str, Any], odd: dict[str, Any]
) -> None:
    bound = here(
        capabilities=can(fork_into=False, resume_elsewhere=False, reapply_mode=False, change_model=False, fork=False)
    )
    newest = session(2, **in_hand, **odd)
    plan = decide(situation([newest, session(1)], here=bound, policy=Policy(limits=SessionLimits(turns=5))))
    assert (plan.outcome, plan.session, plan.session_changes) == (Outcome.HOLD, newest, ())
    assert plan.waits_for is WaitsFor.SESSION_FREE


@pytest.mark.case("C29")
@pytest.mark.parametrize("odd", [{"state": SessionState.POISONED}, {"model": "small"}, {"turns": 9}, {"cursor": None}])
def test_what_cannot_be_forked_is_waited_for_where_parallel_work_is_allowed(odd: dict[str, Any]) -> None:
    policy = Policy(parallel=True, limits=SessionLimits(turns=5), on_model_change=ModelChange.RESEED)
    plan = decide(situation([session(2, busy_with="run-8", **odd), session(1)], policy=policy))
    assert (plan.outcome, plan.reason) == (Outcome.HOLD, RuleReason.BUSY)


@pytest.mark.case("C29", "C30")
def test_a_session_in_use_is_not_rotated_under_its_user() -> None:
    policy = Policy(parallel=True, limits=SessionLimits(turns=5))
    plan = decide(situation([session(1, turns=9, busy_with="run-8")], policy=policy))
    assert (plan.outcome, plan.reason, plan.session_changes) == (Outcome.HOLD, RuleReason.BUSY, ())


@pytest.mark.case("C29")
def test_a_runs_own_session_is_not_busy_to_itself() -> None:
    assert decide(situation([session(1, busy_with=RUN)])).outcome is Outcome.RESUME


@pytest.mark.case("C30")
@pytest.mark.parametrize(
    ("limits", "facts", "code", "words"),
    [
        (SessionLimits(turns=7), {"turns": 7}, "limit:turns", "It has 7 turns; the limit is 7."),
        (SessionLimits(tokens=90), {"tokens": 90}, "limit:tokens", "It has 90 tokens; the limit is 90."),
        (SessionLimits(size=50), {"size": 50}, "limit:size", "It has 50 bytes; the limit is 50."),
        (SessionLimits(age=600.0), {"born_at": 400.0}, "limit:age", "It is older than the limit of 600.0 seconds."),
    ],
)
def test_a_session_over_its_limit_is_rotated(
    limits: SessionLimits, facts: dict[str, float], code: str, words: str
) -> None:
    plan = decide(situation([session(1, **facts)], policy=Policy(limits=limits)))
    assert (plan.outcome, plan.reason.code, finding(plan)) == (Outcome.RESEED, code, words)
    assert plan.session_changes == (SessionChange(session(1).id, SessionEvent.ROTATED, plan.reason),)
    within = {name: value + 1 if name == "born_at" else value - 2 for name, value in facts.items()}
    kept = decide(situation([session(1, **within)], policy=Policy(limits=limits)))
    assert (kept.outcome, kept.session_changes) == (Outcome.RESUME, ())


@pytest.mark.case("C30")
def test_rotation_does_not_go_back_to_an_older_session() -> None:
    plan = decide(situation([session(2, turns=9), session(1)], policy=Policy(limits=SessionLimits(turns=5))))
    assert (plan.outcome, plan.reason, plan.not_needed) == (Outcome.RESEED, RuleReason.OVER_TURNS, (session(1),))
    assert plan.session_changes == (SessionChange(session(2).id, SessionEvent.ROTATED, RuleReason.OVER_TURNS),)


@pytest.mark.case("C30")
def test_a_rotated_session_keeps_the_older_ones_of_its_runtime_out_of_use() -> None:
    rows = [session(2, state=SessionState.RETIRED), session(1)]
    plan = decide(situation(rows))
    assert (plan.outcome, plan.reason, plan.not_needed) == (Outcome.RESEED, RuleReason.RETIRED, (session(1),))
    elsewhere = [session(2, state=SessionState.RETIRED, runtime=THERE), session(1)]
    assert decide(situation(elsewhere)).session == session(1)


@pytest.mark.case("C30")
def test_only_the_newest_session_is_rotated() -> None:
    rows = [session(2, state=SessionState.POISONED), session(1, turns=9)]
    plan = decide(situation(rows, policy=Policy(limits=SessionLimits(turns=5))))
    assert (plan.outcome, plan.reason, plan.session_changes) == (Outcome.RESEED, RuleReason.POISONED, ())


def test_a_sealed_session_is_waited_for() -> None:
    plan = decide(situation([session(1, state=SessionState.SEALED)]))
    assert (plan.outcome, plan.reason, plan.waits_for) == (Outcome.HOLD, RuleReason.SEALED, WaitsFor.SESSION_FREE)
