"""Permission modes and models: applied again every time, never wider."""

import pytest

from clew.kernel import (
    LandingField,
    ModelChange,
    Outcome,
    PermissionMode,
    Policy,
    RuleReason,
    RunId,
    SessionLimits,
    WaitsFor,
    decide,
)
from tests.kernel.kit import ELSEWHERE, can, demand, finding, here, session, situation, steps


@pytest.mark.case("C22")
def test_a_changed_model_goes_as_far_as_the_provider_can() -> None:
    changed = session(1, model="small")
    assert decide(situation([changed])).outcome is Outcome.RESUME
    forks = here(capabilities=can(change_model=False))
    plan = decide(situation([changed], here=forks))
    assert (plan.outcome, plan.reason) == (Outcome.FORK, RuleReason.MODEL_FORK)
    assert finding(plan) == "Its model is small; its history is forked into a session with large."
    neither = here(capabilities=can(change_model=False, fork=False))
    plan = decide(situation([changed], here=neither))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.MODEL_FIXED)
    assert finding(plan) == "Its model is small and cannot become large."
    policy = Policy(on_model_change=ModelChange.RESEED)
    plan = decide(situation([changed], policy=policy))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.MODEL_POLICY)
    assert finding(plan) == "Its model is small, not large; the policy starts a new session for that."


@pytest.mark.case("C22")
@pytest.mark.parametrize(("had", "wants"), [(None, "large"), ("small", None)])
def test_a_model_that_is_not_named_changes_nothing(had: str | None, wants: str | None) -> None:
    plan = decide(situation([session(1, model=had)], here=here(model=wants, capabilities=can(change_model=False))))
    assert plan.outcome is Outcome.RESUME
    assert plan.considered[0].findings == ()


@pytest.mark.case("C22")
def test_a_model_fork_must_land_in_the_wanted_directory() -> None:
    able = can(change_model=False, fork=True, fork_into=False)
    plan = decide(situation([session(1, model="small", directory=ELSEWHERE)], here=here(capabilities=able)))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.MODEL_FIXED)


@pytest.mark.case("P03")
def test_a_changed_mode_is_applied_or_the_session_is_not_used() -> None:
    wide = session(1, mode=PermissionMode.FULL)
    plan = decide(situation([wide]))
    assert (plan.outcome, plan.mode) == (Outcome.RESUME, PermissionMode.EDIT)
    assert steps(plan, "s1")["mode"] == ("note", "mode:reapplied", "Its mode full becomes edit.")
    fixed = here(capabilities=can(reapply_mode=False))
    plan = decide(situation([wide], here=fixed))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.MODE_FIXED)
    assert finding(plan) == "Its mode full cannot be brought to edit."
    assert plan.mode is PermissionMode.EDIT
    unknown = decide(situation([session(1, mode=None)], here=fixed))
    assert unknown.reason is RuleReason.MODE_FIXED


@pytest.mark.case("P03")
def test_a_mode_is_not_narrowed_unseen() -> None:
    blind = here(capabilities=can(reports=frozenset({LandingField.NATIVE_ID})))
    for mode in (PermissionMode.FULL, None):
        plan = decide(situation([session(1, mode=mode)], here=blind))
        assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.MODE_UNVERIFIABLE)
    widened = decide(situation([session(1, mode=PermissionMode.READ)], here=blind))
    assert (widened.outcome, widened.mode) == (Outcome.RESUME, PermissionMode.EDIT)


@pytest.mark.case("P03")
def test_a_stricter_mode_that_cannot_be_changed_stays() -> None:
    fixed = here(capabilities=can(reapply_mode=False))
    plan = decide(situation([session(1, mode=PermissionMode.READ)], here=fixed))
    assert (plan.outcome, plan.mode) == (Outcome.RESUME, PermissionMode.READ)
    assert steps(plan, "s1")["mode"] == ("note", "mode:kept", "Its mode stays read, stricter than edit.")
    same = decide(situation([session(1)], here=fixed))
    assert same.considered[0].findings == ()


@pytest.mark.case("A01")
def test_the_next_stricter_mode_is_used_and_said() -> None:
    able = can(modes=frozenset({PermissionMode.READ, PermissionMode.FULL}))
    plan = decide(situation(here=here(capabilities=able)))
    assert plan.mode is PermissionMode.READ
    assert steps(plan, "mode")["permission"] == (
        "read",
        "mode:stricter",
        "The mode is read: edit cannot be expressed here, so the next stricter is used.",
    )


@pytest.mark.case("A01", "P03")
def test_a_run_whose_mode_cannot_be_expressed_does_not_start() -> None:
    plan = decide(situation([session()], here=here(capabilities=can(modes=frozenset({PermissionMode.FULL})))))
    assert (plan.outcome, plan.reason.code, plan.waits_for) == (
        Outcome.HOLD,
        "mode:inexpressible",
        WaitsFor.PERSON,
    )
    assert plan.words == "Neither edit nor anything stricter can be expressed here."


def test_a_limit_of_the_place_narrows_the_mode() -> None:
    plan = decide(situation([session()], here=here(mode_limits=(PermissionMode.FULL, PermissionMode.ASK))))
    assert plan.mode is PermissionMode.ASK


def test_every_rule_after_one_that_only_notes_is_asked_too() -> None:
    odd = session(1, turns=9, model="small", mode=PermissionMode.FULL, tools="t0")
    plan = decide(situation([odd], demand=demand(resume_run=RunId("run-1")), policy=Policy(limits=SessionLimits(5))))
    assert plan.considered[0].findings == (
        RuleReason.LIMIT_WAIVED,
        RuleReason.MODEL_CHANGES,
        RuleReason.MODE_REAPPLIED,
        RuleReason.TOOLS_DRIFT,
    )
