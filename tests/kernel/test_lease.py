"""Leases, presence, stranded runs and silence, each to the very second."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.lease import (
    GonePolicy,
    Heard,
    LeaseReason,
    Patience,
    Presence,
    Silence,
    SilenceLimits,
    SilenceReason,
    Standing,
    StrandedReason,
    Stranding,
    expired,
    leased,
    presence,
    silence,
    standing,
    stranded,
)

PATIENCE = Patience(lease=60.0, offline_after=90.0, grace=600.0)
LIMITS = SilenceLimits(flag_after=10.0, end_after=30.0)


def test_the_usual_patience() -> None:
    assert Patience() == PATIENCE
    assert SilenceLimits() == SilenceLimits(300.0, 3600.0)


@pytest.mark.case("R02")
def test_a_lease_is_over_at_its_end_and_not_before() -> None:
    until = leased(1000.0, PATIENCE)
    assert until == 1060.0
    assert not expired(until, 1059.999)
    assert expired(until, 1060.0)
    assert expired(until, 1060.001)


@pytest.mark.case("R02")
def test_a_claim_whose_answer_was_lost_is_kept_for_its_lease_only() -> None:
    heard = Heard(last_seen=1000.0)
    before = standing(1060.0, False, heard, 1059.0, PATIENCE)
    assert before == Standing(True, LeaseReason.HELD, silent=59.0, left=1.0)
    assert before.words == "The lease holds for 1 s more."
    after = standing(1060.0, False, heard, 1060.0, PATIENCE)
    assert after == Standing(False, LeaseReason.UNANSWERED, silent=60.0, left=0.0)


@pytest.mark.case("R04")
def test_a_silent_runtime_is_shown_offline_and_then_gone() -> None:
    heard = Heard(last_seen=1000.0)
    assert presence(heard, 1089.999, PATIENCE) is Presence.ONLINE
    assert presence(heard, 1090.0, PATIENCE) is Presence.OFFLINE
    assert presence(heard, 1689.999, PATIENCE) is Presence.OFFLINE
    assert presence(heard, 1690.0, PATIENCE) is Presence.GONE


@pytest.mark.case("R04")
def test_an_open_run_is_kept_until_the_grace_ends() -> None:
    heard = Heard(last_seen=1000.0)
    kept = standing(1060.0, True, heard, 1689.0, PATIENCE)
    assert kept == Standing(True, LeaseReason.GRACE, silent=689.0, left=1.0)
    assert kept.words == "The runtime has been silent for 689 s; its run is kept for 1 s more."
    over = standing(1060.0, True, heard, 1690.0, PATIENCE)
    assert over == Standing(False, LeaseReason.GRACE_OVER, silent=690.0)
    assert over.words == "The runtime has been silent for 690 s, longer than the grace period."


@pytest.mark.case("R04")
def test_an_open_run_is_kept_between_the_end_of_its_lease_and_the_offline_mark() -> None:
    kept = standing(1060.0, True, Heard(last_seen=1059.0), 1060.0, PATIENCE)
    assert kept == Standing(True, LeaseReason.GRACE, silent=1.0, left=689.0)


def test_a_run_its_runtime_no_longer_speaks_of_is_not_kept() -> None:
    forgotten = standing(1060.0, True, Heard(last_seen=1060.0), 1065.0, PATIENCE)
    assert forgotten == Standing(False, LeaseReason.FORGOTTEN, silent=5.0)


@pytest.mark.case("R07")
def test_a_server_that_was_down_listens_before_it_calls_anybody_silent() -> None:
    heard = Heard(last_seen=1000.0, listening_since=9000.0)
    assert presence(heard, 9089.0, PATIENCE) is Presence.ONLINE
    assert presence(heard, 9090.0, PATIENCE) is Presence.OFFLINE
    assert standing(1060.0, True, heard, 9000.0, PATIENCE) == Standing(True, LeaseReason.HELD, 0.0, 60.0)
    assert standing(1060.0, False, heard, 9059.0, PATIENCE).kept
    assert not standing(1060.0, False, heard, 9060.0, PATIENCE).kept


def test_a_runtime_heard_in_the_future_is_not_silent() -> None:
    assert Heard(last_seen=1010.0).silent_for(1000.0) == 0.0
    assert Heard(last_seen=1000.0).silent_for(1000.5) == 0.5


@pytest.mark.case("R02", "R04")
@given(st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 1e4), st.booleans())
def test_a_run_is_kept_up_to_one_instant_and_never_after(
    until: float, last_seen: float, early: float, late: float, opened: bool
) -> None:
    early, late = sorted((early, late))
    heard = Heard(last_seen)
    if not standing(until, opened, heard, early, PATIENCE).kept:
        assert not standing(until, opened, heard, late, PATIENCE).kept
    if late < until:
        assert standing(until, opened, heard, late, PATIENCE).kept


@pytest.mark.case("R08")
@pytest.mark.parametrize(
    ("where", "removed", "policy", "elsewhere", "then"),
    [
        (Presence.ONLINE, False, GonePolicy.MOVE, True, (Stranding.WAIT, StrandedReason.ONLINE)),
        (Presence.OFFLINE, False, GonePolicy.MOVE, True, (Stranding.WAIT, StrandedReason.MAY_RETURN)),
        (Presence.OFFLINE, False, GonePolicy.SURFACE, False, (Stranding.WAIT, StrandedReason.MAY_RETURN)),
        (Presence.GONE, False, GonePolicy.MOVE, True, (Stranding.MOVE, StrandedReason.MOVED)),
        (Presence.GONE, False, GonePolicy.MOVE, False, (Stranding.SURFACE, StrandedReason.NOWHERE)),
        (Presence.GONE, False, GonePolicy.SURFACE, True, (Stranding.SURFACE, StrandedReason.SURFACED)),
        (Presence.ONLINE, True, GonePolicy.MOVE, True, (Stranding.MOVE, StrandedReason.MOVED)),
        (Presence.OFFLINE, True, GonePolicy.SURFACE, True, (Stranding.SURFACE, StrandedReason.SURFACED)),
        (Presence.OFFLINE, True, GonePolicy.MOVE, False, (Stranding.SURFACE, StrandedReason.NOWHERE)),
    ],
)
def test_a_queued_run_waits_moves_or_is_surfaced(
    where: Presence,
    removed: bool,
    policy: GonePolicy,
    elsewhere: bool,
    then: tuple[Stranding, StrandedReason],
) -> None:
    assert stranded(where, removed, policy, elsewhere) == then


@pytest.mark.case("R08")
@given(st.sampled_from(Presence), st.booleans(), st.sampled_from(GonePolicy), st.booleans())
def test_a_run_never_waits_for_a_runtime_that_is_gone(
    where: Presence, removed: bool, policy: GonePolicy, elsewhere: bool
) -> None:
    then, reason = stranded(where, removed, policy, elsewhere)
    assert (then is Stranding.WAIT) is not (removed or where is Presence.GONE)
    assert then is not Stranding.MOVE or elsewhere
    assert reason.sentence


@pytest.mark.case("L07")
def test_a_silent_run_is_flagged_and_then_ended_with_what_was_seen_last() -> None:
    speaking = silence(100.0, "compiling", False, 109.0, LIMITS)
    assert speaking == Silence(SilenceReason.SPEAKING, 9.0, "compiling", 21.0)
    assert (speaking.flagged, speaking.ends) == (False, False)
    assert speaking.words == "Last output 9 s ago: compiling"
    flagged = silence(100.0, "compiling", False, 110.0, LIMITS)
    assert (flagged.flagged, flagged.ends) == (True, False)
    assert flagged.words == "No output for 10 s. The turn is ended in 20 s if nothing comes. Last: compiling"
    assert silence(100.0, "compiling", False, 129.999, LIMITS).flagged
    ended = silence(100.0, "compiling", False, 130.0, LIMITS)
    assert (ended.flagged, ended.ends) == (False, True)
    assert ended.words == "Ended: no output for 30 s. Last: compiling"


@pytest.mark.case("L07")
@pytest.mark.parametrize(("ends_in", "said"), [(None, 20), (5.0, 5), (400.0, 20), (-1.0, 0)])
def test_one_end_is_said_of_a_silent_run_whoever_ends_it_first(ends_in: float | None, said: int) -> None:
    flagged = silence(100.0, "compiling", False, 110.0, LIMITS, ends_in)
    assert flagged.words == f"No output for 10 s. The turn is ended in {said} s if nothing comes. Last: compiling"


@pytest.mark.case("L07")
def test_a_run_that_waits_for_a_person_is_not_silent() -> None:
    waiting = silence(100.0, "may I?", True, 9999.0, LIMITS)
    assert (waiting.flagged, waiting.ends) == (False, False)
    assert waiting.words == "It waits for an answer, so its silence does not count. Last output: may I?"


@pytest.mark.case("L07")
def test_a_run_that_never_spoke_says_so() -> None:
    ended = silence(100.0, "", False, 131.0, LIMITS)
    assert ended.words == "Ended: no output for 31 s. Last: nothing at all"
    assert silence(100.0, "", False, 90.0, LIMITS).silent == 0.0
    assert silence(100.0, "", False, 100.5, LIMITS).silent == 0.5
