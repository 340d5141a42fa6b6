"""Transfers: what is carried here by its archive, and what is not."""

import pytest

from clew.kernel import (
    Archive,
    ArchiveState,
    EntrySeq,
    Outcome,
    Plan,
    Policy,
    Probe,
    ProbeKind,
    RuleReason,
    Session,
    SessionId,
    SessionLimits,
    SessionState,
    WaitsFor,
    decide,
    settle,
)
from clew.kernel.probe import Probed, ProbeReason
from tests.kernel.kit import ELSEWHERE, GONE, HERE, REFUSED, THERE, WORKTREE, can, finding, here, session, situation

FOUND = Probe(ProbeKind.FOUND_HERE)
MISSING = Probe(ProbeKind.MISSING, signal=GONE)
REJECTED = Probe(ProbeKind.REJECTED, signal=REFUSED)
ELSEWHERE_SAID = f"It is on runtime {THERE}; this run is on {HERE}."
ARCHIVED = Archive("loom/1", EntrySeq(2), turns=1)


@pytest.mark.case("T06")
def test_an_archive_outlives_the_agents_own_copy() -> None:
    kept = session(1, archive=ARCHIVED)
    plan = settle(decide(situation([kept])), MISSING)
    assert (plan.outcome, plan.reason) == (Outcome.TRANSFER, RuleReason.LOST)
    assert finding(plan) == "The agent's own store no longer has it."
    assert plan.catch_up.after == 2
    assert plan.needs_probe


@pytest.mark.case("T01")
def test_a_restored_session_is_proven_before_it_is_used() -> None:
    plan = settle(carried(), FOUND)
    assert (plan.outcome, plan.proven) == (Outcome.TRANSFER, True)


def carried(**changes: object) -> Plan:
    plan = decide(situation([session(1, runtime=THERE, archive=ARCHIVED, **changes)]))
    assert (plan.outcome, plan.needs_probe) == (Outcome.TRANSFER, True)
    return plan


@pytest.mark.case("T02")
@pytest.mark.parametrize("probe", [MISSING, REJECTED])
def test_an_archive_that_restores_to_nothing_is_damaged_and_the_session_itself_is_not(probe: Probe) -> None:
    plan = settle(carried(), probe)
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.ARCHIVE_CORRUPT)
    assert plan.session_changes == ()


@pytest.mark.case("P08", "T02")
def test_a_refused_archive_counts_as_the_one_refusal() -> None:
    rows = [session(1, runtime=THERE, archive=ARCHIVED), session(2, runtime=THERE, archive=ARCHIVED)]
    second = settle(decide(situation(rows)), REJECTED)
    assert (second.outcome, second.session) == (Outcome.TRANSFER, rows[0])
    assert settle(second, REJECTED).reason is ProbeReason.REJECTED_AGAIN


@pytest.mark.case("T02")
def test_a_session_restored_into_another_directory_is_not_used() -> None:
    plan = settle(carried(), Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE))
    assert (plan.outcome, plan.reason, plan.waits_for) == (
        Outcome.HOLD,
        ProbeReason.RESTORED_ELSEWHERE,
        WaitsFor.PERSON,
    )
    assert plan.words == "The restored session is in /srv/elsewhere, not where it was restored to."


def test_a_copy_that_has_seen_all_of_the_journal_can_be_carried() -> None:
    whole = session(1, runtime=THERE, archive=Archive("loom/1", EntrySeq(5)))
    plan = decide(situation([whole]))
    assert (plan.outcome, len(plan.catch_up)) == (Outcome.TRANSFER, 0)


def test_a_session_that_lives_here_is_told_by_its_own_mark_and_not_its_copys() -> None:
    plan = decide(situation([session(1, archive=ARCHIVED)]))
    assert (plan.outcome, plan.catch_up.after) == (Outcome.RESUME, 3)


def test_a_lost_session_without_an_archive_cannot_be_spoiled_further() -> None:
    probes = (Probed(SessionId("s1"), MISSING, restored=True),)
    plan = decide(situation([session(1, state=SessionState.LOST)], probes=probes))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.LOST)


@pytest.mark.case("T02", "T05")
@pytest.mark.parametrize(
    ("archive", "reason", "words"),
    [
        (None, RuleReason.ARCHIVE_MISSING, f"{ELSEWHERE_SAID} There is no archive of it."),
        (
            Archive("loom/0", EntrySeq(2)),
            RuleReason.ARCHIVE_VERSION,
            f"{ELSEWHERE_SAID} Its archive has a format that is unknown here (loom/0).",
        ),
        (
            Archive("loom/1", EntrySeq(2), state=ArchiveState.CORRUPT),
            RuleReason.ARCHIVE_CORRUPT,
            f"{ELSEWHERE_SAID} Its archive is damaged.",
        ),
        (
            Archive("loom/1", EntrySeq(2), state=ArchiveState.OPTED_OUT),
            RuleReason.ARCHIVE_OPTED_OUT,
            f"{ELSEWHERE_SAID} Its thread keeps no archives.",
        ),
        (
            Archive("loom/1", EntrySeq(6)),
            RuleReason.ARCHIVE_BEYOND_JOURNAL,
            f"{ELSEWHERE_SAID} Its archive has seen entry 6 of a journal that ends at 5.",
        ),
    ],
)
def test_an_archive_that_cannot_serve_says_why(archive: Archive | None, reason: RuleReason, words: str) -> None:
    plan = decide(situation([session(1, runtime=THERE, archive=archive)]))
    assert (plan.outcome, plan.reason, finding(plan)) == (Outcome.RESEED, reason, words)


@pytest.mark.case("T01", "T03")
def test_a_session_is_carried_to_this_machine_and_told_what_its_copy_has_not_seen() -> None:
    source = session(1, runtime=THERE, directory=ELSEWHERE, archive=ARCHIVED, seen=EntrySeq(4))
    plan = decide(situation([source]))
    assert (plan.outcome, plan.reason, plan.native_id) == (Outcome.TRANSFER, RuleReason.RUNTIME_OTHER, "n-1")
    assert (plan.catch_up.after, plan.catch_up.through) == (2, 5)
    assert plan.workspace == WORKTREE
    assert plan.considered[0].findings == (RuleReason.RUNTIME_OTHER, RuleReason.RESTORED_INTO)
    new_ids = here(capabilities=can(restore_keeps_id=False))
    assert decide(situation([source], here=new_ids)).native_id is None


@pytest.mark.case("T01")
@pytest.mark.parametrize(
    ("changes", "policy", "reason"),
    [
        ({"archive": False}, Policy(), RuleReason.CANNOT_RESTORE),
        ({}, Policy(transfer=False), RuleReason.TRANSFER_OFF),
    ],
)
def test_a_session_is_not_carried_where_that_is_not_possible_or_not_wished(
    changes: dict[str, bool], policy: Policy, reason: RuleReason
) -> None:
    plan = decide(
        situation([session(1, runtime=THERE, archive=ARCHIVED)], here=here(capabilities=can(**changes)), policy=policy)
    )
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, reason)


@pytest.mark.case("T01")
def test_a_carried_session_that_needs_another_model_is_not_forked_where_it_is_not() -> None:
    moved: Session = session(1, runtime=THERE, archive=ARCHIVED, model="small")
    plan = decide(situation([moved], here=here(capabilities=can(change_model=False))))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.MODEL_FIXED)


@pytest.mark.case("C09", "T01")
def test_what_lives_here_is_preferred_to_what_must_be_carried() -> None:
    plan = decide(situation([session(2, runtime=THERE, archive=ARCHIVED), session(1)]))
    assert (plan.outcome, plan.session) == (Outcome.RESUME, session(1))


@pytest.mark.case("T07")
def test_a_session_that_was_moved_away_is_carried_back_and_not_resumed_from_the_copy_left_behind() -> None:
    there = session(2, runtime=THERE, archive=ARCHIVED)
    plan = decide(situation([there, session(1, state=SessionState.MOVED)]))
    assert (plan.outcome, plan.session) == (Outcome.TRANSFER, there)


@pytest.mark.case("T07")
def test_a_busy_session_elsewhere_is_not_carried_off() -> None:
    busy = session(2, runtime=THERE, archive=ARCHIVED, busy_with="run-8")
    plan = decide(situation([busy, session(1)], policy=Policy(parallel=True)))
    assert (plan.outcome, plan.reason) == (Outcome.HOLD, RuleReason.BUSY)


def test_an_older_busy_session_does_not_keep_a_newer_one_from_being_carried() -> None:
    newer = session(2, runtime=THERE, archive=ARCHIVED)
    plan = decide(situation([newer, session(1, busy_with="run-8")]))
    assert (plan.outcome, plan.session) == (Outcome.TRANSFER, newer)
    idle = decide(situation([session(3, runtime=THERE, archive=ARCHIVED), session(2, busy_with="x"), session(1)]))
    assert (idle.outcome, idle.not_needed) == (Outcome.TRANSFER, (session(1),))
    rows = [session(3, runtime=THERE, archive=ARCHIVED), newer]
    assert decide(situation(rows)).session == rows[0]


@pytest.mark.case("T06")
def test_the_newest_is_restored_here_before_an_older_one_is_resumed() -> None:
    rows = [session(2, archive=ARCHIVED), session(1)]
    plan = settle(decide(situation(rows)), MISSING)
    assert plan.outcome is Outcome.TRANSFER
    assert plan.session is not None
    assert plan.session.id == "s2"


def test_a_newer_one_is_carried_although_an_older_one_is_over_its_limits() -> None:
    newer = session(2, runtime=THERE, archive=ARCHIVED)
    plan = decide(situation([newer, session(1, turns=9)], policy=Policy(limits=SessionLimits(turns=5))))
    assert (plan.outcome, plan.session) == (Outcome.TRANSFER, newer)


def test_a_session_lost_elsewhere_says_all_that_keeps_it_from_serving() -> None:
    plan = decide(situation([session(1, runtime=THERE, state=SessionState.LOST)]))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.LOST)
    assert finding(plan) == f"The agent's own store no longer has it. {ELSEWHERE_SAID} There is no archive of it."
