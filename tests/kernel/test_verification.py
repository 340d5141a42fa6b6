"""Verification: nothing is sent until the agent's own words fit the plan."""

from dataclasses import replace
from typing import Any

import pytest

from clew.kernel import (
    Archive,
    Claim,
    Directory,
    EntrySeq,
    Landing,
    LandingField,
    NativeId,
    Outcome,
    PermissionMode,
    Plan,
    Probe,
    ProbeKind,
    SessionState,
    Weight,
    decide,
    settle,
    verify,
)
from clew.kernel.verification import Difference, LandingReason
from tests.kernel.kit import (
    ACCOUNT,
    ELSEWHERE,
    FRESH_ID,
    OTHER_ACCOUNT,
    THERE,
    WORKTREE,
    can,
    demand,
    here,
    session,
    situation,
)

FOUND = Probe(ProbeKind.FOUND_HERE)
RESUME = settle(decide(situation([session(1)])), FOUND)
ARCHIVED = Archive("loom/1", EntrySeq(2), turns=4)
TRANSFER = settle(decide(situation([session(1, runtime=THERE, archive=ARCHIVED)])), FOUND)
FORK = settle(
    decide(situation([session(1, directory=ELSEWHERE)])), Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE)
)
RESEED = decide(situation([session(1, cursor=None)]))
BLANK = decide(situation([session(1)], demand=demand(fresh_asked_by="w1")))
HOLD = decide(situation([session(1, busy_with="run-8")]))


def landing(**changes: Any) -> Landing:
    plain = Landing(
        native_id=NativeId("n-1"),
        directory=WORKTREE.directory,
        mode=PermissionMode.EDIT,
        model="large",
        account=ACCOUNT,
        turns=2,
    )
    return replace(plain, **changes)


NEW = landing(native_id=FRESH_ID, turns=0)


def difference(plan: Plan, landed: Landing) -> Difference:
    differences = verify(plan, landed).differences
    assert len(differences) == 1, differences
    return differences[0]


def only(plan: Plan, landed: Landing) -> tuple[LandingReason, Weight, str]:
    found = difference(plan, landed)
    return found.reason, found.weight, found.words


@pytest.mark.case("C32", "P07")
@pytest.mark.parametrize(
    ("plan", "landed", "claim"),
    [
        (RESUME, landing(), Claim.RESUMED),
        (TRANSFER, landing(turns=4), Claim.TRANSFERRED),
        (FORK, landing(native_id=FRESH_ID), Claim.FORKED),
        (RESEED, NEW, Claim.STARTED),
        (BLANK, NEW, Claim.STARTED),
    ],
)
def test_an_outcome_is_claimed_once_the_agent_has_confirmed_it(plan: Plan, landed: Landing, claim: Claim) -> None:
    verification = verify(plan, landed)
    assert (verification.claim, verification.may_continue) == (claim, True)
    assert verification.differences == ()
    assert verification.unverified == ()


@pytest.mark.case("C32")
def test_a_continuation_is_not_claimed_without_the_agents_own_word() -> None:
    mute = here(capabilities=can(reports=frozenset()))
    plan = settle(decide(situation([session(1)], here=mute)), FOUND)
    reason, weight, words = only(plan, Landing())
    assert (reason, weight) == (LandingReason.SILENT, Weight.REFUSE)
    assert words == "The agent did not report its native-id, which it must."
    verification = verify(plan, Landing())
    assert (verification.claim, verification.may_continue) == (Claim.NOTHING, False)
    assert set(verification.unverified) == set(LandingField) - {LandingField.NATIVE_ID}


# ---------------------------------------------------------------- on its word


UNNAMED = here(capabilities=can(reports=frozenset(), names_itself=False))


@pytest.mark.case("S16")
def test_an_agent_that_shows_nothing_of_a_history_is_believed_and_that_is_said() -> None:
    silent = here(capabilities=can(reports=frozenset({LandingField.NATIVE_ID})))
    plan = settle(decide(situation([session(1)], here=silent)), FOUND)
    assert plan.session is not None
    assert plan.session.turns == 2
    verification = verify(plan, landing(turns=None))
    assert (verification.claim, verification.on_its_word) == (Claim.RESUMED, True)
    assert not verify(plan, landing(turns=2)).on_its_word
    assert not verify(plan, landing(turns=1)).on_its_word, "what it shows may be short, and is shown"
    unused = settle(decide(situation([session(1, turns=0)], here=silent)), FOUND)
    assert not verify(unused, landing(turns=None)).on_its_word, "there is no history to show"


@pytest.mark.case("S16")
def test_a_program_that_names_no_session_is_resumed_on_its_word() -> None:
    plan = settle(decide(situation([session(1)], here=UNNAMED)), FOUND)
    verification = verify(plan, Landing())
    assert (verification.claim, verification.differences) == (Claim.RESUMED, ())
    assert verification.on_its_word
    assert LandingField.NATIVE_ID in verification.unverified, "that it is in this session is nothing it has said"
    unused = settle(decide(situation([session(1, turns=0)], here=UNNAMED)), FOUND)
    assert verify(unused, Landing()).on_its_word, "not even its name was said"
    # It is asked for the session first, whatever it declares.
    assert difference(decide(situation([session(1)], here=UNNAMED)), Landing()).reason is LandingReason.NOT_PROVEN
    # Another id is another session, whoever says it.
    assert difference(plan, Landing(native_id=NativeId("n-9"))).reason is LandingReason.ID_OTHER


@pytest.mark.case("S16")
@pytest.mark.parametrize("outcome", [Outcome.FORK, Outcome.TRANSFER])
def test_only_a_resume_is_believed_without_a_name(outcome: Outcome) -> None:
    if outcome is Outcome.FORK:
        old = session(1, directory=ELSEWHERE)
        plan = settle(decide(situation([old], here=UNNAMED)), Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE))
    else:
        plan = settle(decide(situation([session(1, runtime=THERE, archive=ARCHIVED)], here=UNNAMED)), FOUND)
    assert plan.outcome is outcome
    verification = verify(plan, Landing())
    assert [each.reason for each in verification.differences] == [LandingReason.SILENT]
    assert not verification.on_its_word, "nothing may be claimed, so there is nothing to believe"
    assert verify(plan, Landing(native_id=plan.native_id)).on_its_word


@pytest.mark.case("S16")
@pytest.mark.parametrize("plan", [RESEED, BLANK, HOLD])
def test_nothing_is_on_anybodys_word_where_no_earlier_session_is_gone_on_with(plan: Plan) -> None:
    assert not verify(plan, replace(NEW, turns=None)).on_its_word
    assert not verify(plan, Landing()).on_its_word


def test_what_a_provider_cannot_say_stays_unverified_in_a_new_session() -> None:
    mute = here(capabilities=can(reports=frozenset()))
    verification = verify(decide(situation([], here=mute)), Landing())
    assert (verification.claim, verification.differences) == (Claim.STARTED, ())
    assert verification.unverified == tuple(LandingField)


@pytest.mark.parametrize("field", ["native_id", "directory", "mode", "model", "account", "turns"])
def test_what_a_provider_says_it_reports_it_must_report(field: str) -> None:
    reason, weight, words = only(RESUME, landing(**{field: None}))
    assert (reason, weight) == (LandingReason.SILENT, Weight.REFUSE)
    assert words == f"The agent did not report its {field.replace('_', '-')}, which it must."


@pytest.mark.case("P07")
def test_nothing_is_opened_before_the_session_was_asked_for() -> None:
    reason, weight, words = only(decide(situation([session(1)])), landing())
    assert (reason, weight) == (LandingReason.NOT_PROVEN, Weight.REFUSE)
    assert words == "The agent was not asked for the session, so it may not be opened yet."


@pytest.mark.case("P07")
def test_nothing_is_opened_for_a_plan_that_holds() -> None:
    reason, weight, words = only(HOLD, landing())
    assert (reason, weight) == (LandingReason.NOT_STARTED, Weight.REFUSE)
    assert words == "The plan holds the run, so nothing may be opened."


@pytest.mark.case("C32")
@pytest.mark.parametrize("plan", [RESUME, TRANSFER])
def test_another_session_than_the_planned_one_is_refused(plan: Plan) -> None:
    reason, weight, words = only(plan, landing(native_id=NativeId("n-9"), turns=4))
    assert (reason, weight) == (LandingReason.ID_OTHER, Weight.REFUSE)
    assert words == "Expected session n-1; the agent opened n-9."


@pytest.mark.case("S04")
def test_an_id_of_the_wrong_shape_is_refused() -> None:
    unchosen = decide(situation([], here=here(capabilities=can(choose_id=False))))
    reason, weight, words = only(unchosen, landing(native_id=NativeId("child/1"), turns=0))
    assert (reason, weight) == (LandingReason.ID_SHAPE, Weight.REFUSE)
    assert words == "child/1 is not a session id of this provider's shape (n-[a-z0-9]+)."


@pytest.mark.parametrize("outcome", ["fork", "reseed", "blank"])
def test_a_new_session_that_is_an_old_one_is_refused(outcome: str) -> None:
    unchosen = here(capabilities=can(choose_id=False))
    old = session(1, directory=ELSEWHERE)
    if outcome == "fork":
        plan = settle(decide(situation([old], here=unchosen)), Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE))
    elif outcome == "reseed":
        plan = decide(situation([session(1, runtime=THERE)], here=unchosen))
    else:
        plan = decide(situation([old], here=unchosen, demand=demand(fresh_asked_by="w1")))
    assert plan.outcome == outcome
    turns = 2 if outcome == "fork" else 0
    reason, weight, words = only(plan, landing(turns=turns))
    assert (reason, weight) == (LandingReason.ID_KNOWN, Weight.REFUSE)
    assert words == "Session n-1 is an earlier session, not the one to open."
    assert verify(plan, landing(native_id=NativeId("n-9"), turns=turns)).may_continue


def test_a_restored_session_may_have_a_new_id_where_the_provider_says_so() -> None:
    renames = here(capabilities=can(restore_keeps_id=False))
    plan = settle(decide(situation([session(1, runtime=THERE, archive=ARCHIVED)], here=renames)), FOUND)
    assert verify(plan, landing(native_id=NativeId("n-9"), turns=4)).claim is Claim.TRANSFERRED
    assert verify(plan, landing(turns=4)).claim is Claim.TRANSFERRED
    rows = [session(2, runtime=THERE, archive=ARCHIVED), session(1, state=SessionState.POISONED)]
    plan = settle(decide(situation(rows, here=renames)), FOUND)
    assert difference(plan, landing(turns=4)).reason is LandingReason.ID_KNOWN
    twice = [session(2, runtime=THERE, archive=ARCHIVED, cursor=session(1).cursor), session(1, runtime=THERE)]
    plan = settle(decide(situation(twice, here=renames)), FOUND)
    assert verify(plan, landing(turns=4)).claim is Claim.TRANSFERRED


@pytest.mark.case("T07")
def test_a_session_that_comes_back_to_its_first_machine_keeps_its_id() -> None:
    left = session(1, state=SessionState.MOVED)
    moved = session(2, runtime=THERE, archive=ARCHIVED, cursor=left.cursor)
    plan = settle(decide(situation([moved, left])), FOUND)
    assert (plan.outcome, verify(plan, landing(turns=4)).claim) == (Outcome.TRANSFER, Claim.TRANSFERRED)


@pytest.mark.parametrize(("turns", "gone"), [(0, True), (1, False)])
def test_a_copy_that_does_not_say_how_much_it_holds_holds_something(turns: int, gone: bool) -> None:
    archive = Archive("loom/1", EntrySeq(2))
    plan = settle(decide(situation([session(1, runtime=THERE, archive=archive)])), FOUND)
    assert verify(plan, landing(turns=turns)).may_continue is not gone
    assert gone or verify(plan, landing(turns=turns)).differences == ()
    unused = settle(decide(situation([session(1, runtime=THERE, archive=archive, turns=0)])), FOUND)
    assert verify(unused, landing(turns=0)).may_continue


@pytest.mark.case("C17", "D10")
@pytest.mark.parametrize("plan", [RESUME, FORK, RESEED])
def test_a_session_that_works_elsewhere_is_refused_before_the_prompt(plan: Plan) -> None:
    landed = {RESUME.outcome: landing(), FORK.outcome: landing(native_id=FRESH_ID), RESEED.outcome: NEW}[plan.outcome]
    reason, weight, words = only(plan, replace(landed, directory=ELSEWHERE))
    assert (reason, weight) == (LandingReason.DIRECTORY_OTHER, Weight.REFUSE)
    assert words == "The run belongs in /srv/maze; the agent works in /srv/elsewhere."
    assert not verify(plan, replace(landed, directory=ELSEWHERE)).may_continue


@pytest.mark.case("C18", "D10")
def test_the_same_directory_by_another_name_is_accepted() -> None:
    assert verify(RESUME, landing(directory=Directory("/link", real="/srv/maze"))).may_continue


@pytest.mark.case("P03")
def test_a_wider_mode_is_refused_and_a_stricter_one_is_noted() -> None:
    reason, weight, words = only(RESUME, landing(mode=PermissionMode.FULL))
    assert (reason, weight) == (LandingReason.MODE_WIDER, Weight.REFUSE)
    assert words == "The mode is edit; the agent has the wider full."
    reason, weight, words = only(RESUME, landing(mode=PermissionMode.ASK))
    assert (reason, weight) == (LandingReason.MODE_STRICTER, Weight.NOTE)
    assert words == "The mode is edit; the agent has the stricter ask."
    assert verify(RESUME, landing(mode=PermissionMode.ASK)).may_continue


@pytest.mark.case("C22")
def test_another_model_is_noted() -> None:
    reason, weight, words = only(RESUME, landing(model="small"))
    assert (reason, weight) == (LandingReason.MODEL_OTHER, Weight.NOTE)
    assert words == "The model is large; the agent uses small."
    unnamed = decide(situation([], here=here(model=None)))
    assert verify(unnamed, replace(NEW, model="small")).differences == ()


@pytest.mark.case("C23")
def test_another_account_is_refused() -> None:
    reason, weight, words = only(RESUME, landing(account=OTHER_ACCOUNT))
    assert (reason, weight) == (LandingReason.ACCOUNT_OTHER, Weight.REFUSE)
    assert words == "The account is me@work; the agent uses me@home."


@pytest.mark.case("P11")
def test_a_resumed_session_without_its_history_is_refused() -> None:
    reason, weight, words = only(RESUME, landing(turns=0))
    assert (reason, weight) == (LandingReason.HISTORY_GONE, Weight.REFUSE)
    assert words == "The session has had 2 turns; the agent knows of none."
    reason, weight, words = only(RESUME, landing(turns=1))
    assert (reason, weight) == (LandingReason.HISTORY_SHORT, Weight.NOTE)
    assert words == "The session has had 2 turns; the agent knows of 1."
    assert verify(RESUME, landing(turns=3)).differences == ()
    assert only(TRANSFER, landing(turns=3))[2] == "The session has had 4 turns; the agent knows of 3."


def test_a_session_that_lives_here_is_held_to_its_own_turns_and_not_its_copys() -> None:
    plan = settle(decide(situation([session(1, archive=ARCHIVED)])), FOUND)
    assert verify(plan, landing(turns=2)).differences == ()


def test_a_session_without_turns_may_come_back_without_turns() -> None:
    plan = settle(decide(situation([session(1, turns=0)])), FOUND)
    assert verify(plan, landing(turns=0)).claim is Claim.RESUMED


@pytest.mark.case("H02")
@pytest.mark.parametrize("plan", [RESEED, BLANK])
def test_a_new_session_with_a_history_is_refused(plan: Plan) -> None:
    reason, weight, words = only(plan, replace(NEW, turns=1))
    assert (reason, weight) == (LandingReason.HISTORY_UNEXPECTED, Weight.REFUSE)
    assert words == "Expected a new session; this one has 1 turns."


def test_every_difference_is_listed_with_both_values() -> None:
    verification = verify(RESUME, landing(directory=ELSEWHERE, model="small", mode=PermissionMode.FULL))
    assert [(each.field, each.planned, each.landed) for each in verification.differences] == [
        ("directory", "/srv/maze", "/srv/elsewhere"),
        ("mode", "edit", "full"),
        ("model", "large", "small"),
    ]
    assert verification.claim is Claim.NOTHING


def test_a_difference_names_its_field_and_both_sides() -> None:
    def sides(plan: Plan, landed: Landing) -> tuple[str, str, str]:
        found = difference(plan, landed)
        return found.field, found.planned, found.landed

    assert sides(HOLD, landing()) == ("plan", "hold", "opened")
    assert sides(decide(situation([session(1)])), landing()) == ("plan", "probed", "opened")
    assert sides(RESUME, landing(model=None)) == ("model", "said", "nothing")
    assert sides(BLANK, replace(NEW, turns=3)) == ("turns", "0", "3")
    unchosen = here(capabilities=can(choose_id=False))
    known = decide(situation([session(1, runtime=THERE)], here=unchosen))
    assert sides(known, landing(turns=0)) == ("native-id", "new", "n-1")


@pytest.mark.parametrize("older", [1, 2])
def test_a_fork_must_be_none_of_the_lanes_sessions_weighed_or_not(older: int) -> None:
    unchosen = here(capabilities=can(choose_id=False))
    rows = [session(3, directory=ELSEWHERE), session(2), session(1)]
    plan = settle(decide(situation(rows, here=unchosen)), Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE))
    assert plan.outcome is Outcome.FORK
    assert difference(plan, landing(native_id=NativeId(f"n-{older}"))).reason is LandingReason.ID_KNOWN


def test_outcomes_used_here_are_what_they_are_called() -> None:
    assert [plan.outcome for plan in (RESUME, TRANSFER, FORK, RESEED, BLANK, HOLD)] == [
        Outcome.RESUME,
        Outcome.TRANSFER,
        Outcome.FORK,
        Outcome.RESEED,
        Outcome.BLANK,
        Outcome.HOLD,
    ]
