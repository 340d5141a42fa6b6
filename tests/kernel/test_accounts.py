"""Accounts: each goes on in its own session, and none is shown another's history."""

from dataclasses import replace

import pytest

from clew.kernel import (
    AccountId,
    Audience,
    EntrySeq,
    Floor,
    Outcome,
    PlanReason,
    Policy,
    Reader,
    RuleReason,
    SessionState,
    decide,
)
from clew.kernel.plan import CatchUp
from tests.kernel.kit import ACCOUNT, OTHER_ACCOUNT, OTHER_PROVIDER, PROVIDER, finding, here, session, situation, steps


@pytest.mark.case("C23")
def test_history_is_not_shown_to_another_account_and_the_user_is_told() -> None:
    old = session(1, account=OTHER_ACCOUNT)
    plan = decide(situation([old]))
    assert (plan.outcome, plan.reason) == (Outcome.BLANK, PlanReason.ACCOUNT_WITHHELD)
    assert plan.words == (
        "The account changed from account me@home to account me@work, so the agent does not get the earlier history. "
        "`clew agent edit AGENT --across-accounts yes` allows it from the next change on."
    )
    assert len(plan.catch_up) == 0
    assert [(notice.audience, notice.words) for notice in plan.notices] == [
        (Audience.USER, "The history made with account me@home was not given to the agent.")
    ]


@pytest.mark.case("C23")
def test_history_crosses_accounts_when_allowed() -> None:
    plan = decide(situation([session(1, account=OTHER_ACCOUNT)], policy=Policy(history_across_accounts=True)))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.ACCOUNT_OTHER)
    assert finding(plan) == "It was made with account me@home; this run uses account me@work."
    assert plan.catch_up == CatchUp(EntrySeq(0), EntrySeq(5))
    assert plan.notices == ()


@pytest.mark.case("C23")
def test_back_on_the_first_account_the_catch_up_is_read_by_that_account() -> None:
    plan = decide(situation([session(1), session(2, account=OTHER_ACCOUNT)]))
    assert (plan.outcome, plan.session) == (Outcome.RESUME, session(1))
    assert plan.reader == Reader(PROVIDER, ACCOUNT)
    assert decide(situation(policy=Policy(history_across_accounts=True))).reader.across_accounts


@pytest.mark.case("C23")
@pytest.mark.parametrize("state", SessionState)
def test_history_is_withheld_whatever_became_of_the_other_accounts_session(state: SessionState) -> None:
    plan = decide(situation([session(1, account=OTHER_ACCOUNT, state=state)]))
    assert (plan.outcome, plan.reason) == (Outcome.BLANK, PlanReason.ACCOUNT_WITHHELD)
    since = session(2, cursor=None, begins=EntrySeq(4), also=(EntrySeq(3),))
    behind = decide(situation([since, session(1, account=OTHER_ACCOUNT, state=state)]))
    assert (behind.outcome, behind.catch_up) == (Outcome.RESEED, CatchUp(EntrySeq(4), EntrySeq(5)))
    assert behind.kept == (3,)


@pytest.mark.case("C23")
def test_each_account_goes_on_in_its_own_session_however_often_they_change() -> None:
    rows = [session(2, begins=EntrySeq(4), seen=EntrySeq(4)), session(1, account=OTHER_ACCOUNT, seen=EntrySeq(4))]
    back = decide(situation(rows, here=here(account=OTHER_ACCOUNT)))
    assert (back.outcome, back.session) == (Outcome.RESUME, rows[1])
    again = decide(situation(rows))
    assert (again.outcome, again.session) == (Outcome.RESUME, rows[0])
    lost = [rows[0], replace(rows[1], cursor=None)]
    withheld = decide(situation(lost, here=here(account=OTHER_ACCOUNT)))
    assert (withheld.outcome, withheld.reason) == (Outcome.BLANK, PlanReason.ACCOUNT_WITHHELD)
    other_provider = [session(2, provider=OTHER_PROVIDER, account=None), session(1, account=OTHER_ACCOUNT)]
    assert decide(situation(other_provider)).outcome is Outcome.RESEED
    cut = decide(situation([session(1, account=OTHER_ACCOUNT)], floor=Floor(1, EntrySeq(1))))
    assert (cut.outcome, cut.reason) == (Outcome.RESEED, PlanReason.NONE_OF_ITS_OWN)


@pytest.mark.case("C23")
def test_only_accounts_of_the_same_provider_are_kept_apart() -> None:
    plan = decide(situation([session(1, provider=OTHER_PROVIDER, account=OTHER_ACCOUNT)]))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.PROVIDER_OTHER)


def test_accounts_compare_as_they_are_known() -> None:
    assert decide(situation([session(1, account=None)], here=here(account=None))).outcome is Outcome.RESUME
    assert decide(situation([session(1, account=ACCOUNT)], here=here(account=None))).outcome is Outcome.BLANK


@pytest.mark.case("S15")
@pytest.mark.parametrize("account", [None, ACCOUNT])
def test_another_key_is_no_other_account_and_is_noted(account: AccountId | None) -> None:
    old = session(1, account=account, credential="k1")
    plan = decide(situation([old], here=here(account=account, credential="k2")))
    assert (plan.outcome, plan.session) == (Outcome.RESUME, old)
    words = "The key has changed since this session was last used; the session continues."
    assert steps(plan, "s1")["key"] == ("note", "key:drift", words)
    assert len(plan.catch_up) == 2


@pytest.mark.case("S15")
@pytest.mark.parametrize(("before", "now"), [("k1", "k1"), (None, "k2"), (None, None)])
def test_the_same_key_and_one_that_was_never_known_are_not_noted(before: str | None, now: str | None) -> None:
    plan = decide(situation([session(1, credential=before)], here=here(credential=now)))
    assert (plan.outcome, steps(plan, "s1")["key"][0]) == (Outcome.RESUME, "fit")


@pytest.mark.case("S15")
@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ({}, {"account": None, "credential": "k"}, ("account me@work", "a key that names no account")),
        ({"account": None, "credential": "k"}, {}, ("a key that names no account", "account me@work")),
        ({}, {"account": None}, ("account me@work", "an account that is not named")),
        ({"account": None}, {}, ("an account that is not named", "account me@work")),
    ],
)
def test_an_account_that_is_named_on_one_side_only_is_another(
    before: dict[str, str | None], now: dict[str, str | None], words: tuple[str, str]
) -> None:
    known = situation([session(1, **before)], here=here(agent="ada", **now))
    plan = decide(known)
    assert (plan.outcome, plan.reason, plan.session) == (Outcome.BLANK, PlanReason.ACCOUNT_WITHHELD, None)
    assert plan.words == (
        f"The account changed from {words[0]} to {words[1]}, so the agent does not get the earlier history. "
        "`clew agent edit ada --across-accounts yes` allows it from the next change on."
    )
    assert [notice.words for notice in plan.notices] == [
        f"The history made with {words[0]} was not given to the agent."
    ]
    allowed = decide(replace(known, policy=Policy(history_across_accounts=True)))
    assert (allowed.outcome, allowed.session, len(allowed.catch_up)) == (Outcome.RESEED, None, 5)
    assert finding(allowed) == f"It was made with {words[0]}; this run uses {words[1]}."
