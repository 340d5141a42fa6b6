"""Settling: what an agent's answer makes of a plan, and what it must never make of it."""

import pytest

from clew.kernel import (
    Archive,
    ArchiveState,
    Directory,
    EntrySeq,
    Mark,
    Outcome,
    Plan,
    Policy,
    Probe,
    Probed,
    ProbeKind,
    ProbeReason,
    RuleReason,
    RunId,
    Session,
    SessionEvent,
    SessionId,
    SessionLimits,
    SessionState,
    Step,
    WaitsFor,
    decide,
    settle,
)
from tests.kernel.kit import ELSEWHERE, GONE, HERE, REFUSED, THERE, WORKTREE, can, demand, here, session, situation

FOUND = Probe(ProbeKind.FOUND_HERE)
MISSING = Probe(ProbeKind.MISSING, signal=GONE)
REJECTED = Probe(ProbeKind.REJECTED, signal=REFUSED)
ELSEWHERE_SAID = f"It lives on {THERE}; this run is on {HERE}."
ARCHIVED = Archive("loom/1", EntrySeq(2), turns=1)

resume = decide(situation([session(1)]))


def of_two() -> Plan:
    return decide(situation([session(1), session(2)]))


@pytest.mark.case("C13")
def test_confirmed_missing_marks_the_session_lost_and_reseeds() -> None:
    plan = settle(resume, MISSING)
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.LOST)
    assert plan.words == "The agent's own store no longer has it. There is no archive of it."
    assert plan.marks == (Mark(SessionId("s1"), SessionEvent.CONFIRMED_MISSING, RuleReason.LOST),)
    assert [each.session.id for each in plan.considered] == ["s1"]
    assert "session:lost" in {step.code for step in plan.trace}
    assert plan.situation.probes == (Probed(SessionId("s1"), MISSING),)
    assert [step for step in plan.trace if step.rule == "probe"] == [
        Step("s1", "probe", "missing", "probe:missing", "The agent was asked for it: missing.")
    ]


@pytest.mark.case("C13", "C19")
def test_the_next_healthy_session_is_asked_for_when_the_newest_is_gone() -> None:
    plan = settle(of_two(), MISSING)
    assert (plan.outcome, plan.session, plan.needs_probe) == (Outcome.RESUME, session(1), True)
    assert plan.marks == (Mark(SessionId("s2"), SessionEvent.CONFIRMED_MISSING, RuleReason.LOST),)
    proven = settle(plan, FOUND)
    assert (proven.outcome, proven.session, proven.needs_probe) == (Outcome.RESUME, session(1), False)
    assert proven.marks == plan.marks


@pytest.mark.case("C14")
@pytest.mark.parametrize("detail", ["HTTP 500", "HTTP 401", "timed out after 10 s", "connection refused"])
def test_a_transient_failure_holds_and_keeps_everything(detail: str) -> None:
    plan = settle(resume, Probe(ProbeKind.UNREACHABLE, detail=detail))
    assert (plan.outcome, plan.reason, plan.waits_for) == (
        Outcome.HOLD,
        ProbeReason.UNREACHABLE,
        WaitsFor.ANOTHER_TRY,
    )
    assert plan.words == f"The agent could not be asked about the session: {detail}"
    assert (plan.session, plan.native_id, plan.marks) == (session(1), "n-1", ())


@pytest.mark.case("C15", "P11")
@pytest.mark.parametrize("signal", [None, "text says: session not found", "500 NotFoundError"])
@pytest.mark.parametrize("kind", [ProbeKind.MISSING, ProbeKind.REJECTED])
def test_only_a_declared_sign_is_believed(kind: ProbeKind, signal: str | None) -> None:
    plan = settle(resume, Probe(kind, signal=signal, detail="session not found"))
    assert (plan.outcome, plan.reason, plan.waits_for) == (
        Outcome.HOLD,
        ProbeReason.UNSTRUCTURED,
        WaitsFor.ANOTHER_TRY,
    )
    assert plan.words == (
        f"The agent seems to say {kind}, but by no sign it is known to give ({signal}): session not found"
    )
    assert (plan.session, plan.marks) == (session(1), ())


@pytest.mark.case("P11")
def test_a_provider_without_a_declared_sign_never_loses_a_session_to_a_probe() -> None:
    silent = here(capabilities=can(missing_signals=frozenset()))
    assert settle(decide(situation([session(1)], here=silent)), MISSING).outcome is Outcome.HOLD


@pytest.mark.case("C16")
def test_a_session_found_elsewhere_is_forked_into_the_wanted_directory() -> None:
    plan = settle(resume, Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE))
    assert (plan.outcome, plan.reason) == (Outcome.FORK, RuleReason.DIRECTORY_FORK)
    assert plan.words == "It works in /srv/elsewhere; its history is forked into /srv/maze."
    assert (plan.native_id, plan.proven, plan.needs_probe) == ("n-fresh", True, False)
    fixed = here(capabilities=can(fork_into=False, resume_elsewhere=False))
    plan = settle(decide(situation([session(1)], here=fixed)), Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.DIRECTORY_FIXED)


@pytest.mark.case("C18")
def test_elsewhere_that_is_here_by_another_name_is_here() -> None:
    named = Directory("/link", real="/srv/maze/")
    assert settle(resume, Probe(ProbeKind.FOUND_ELSEWHERE, directory=named)).outcome is Outcome.RESUME


def test_a_session_found_elsewhere_must_say_where() -> None:
    message = "^a probe that found the session elsewhere must say in which directory$"
    with pytest.raises(ValueError, match=message):
        Probe(ProbeKind.FOUND_ELSEWHERE)


def test_a_session_found_where_it_is_wanted_is_resumed_whatever_the_record_said() -> None:
    fork = decide(situation([session(1, directory=ELSEWHERE)]))
    assert fork.outcome is Outcome.FORK
    plan = settle(fork, FOUND)
    assert (plan.outcome, plan.proven) == (Outcome.RESUME, True)
    assert plan.session is not None
    assert plan.session.directory == WORKTREE.directory


@pytest.mark.case("C29")
def test_a_session_held_by_another_program_is_waited_for_or_forked() -> None:
    busy = Probe(ProbeKind.BUSY, holder="pid 77")
    plan = settle(resume, busy)
    assert (plan.outcome, plan.words, plan.waits_for) == (
        Outcome.HOLD,
        "It is in use by pid 77.",
        WaitsFor.SESSION_FREE,
    )
    assert settle(resume, Probe(ProbeKind.BUSY)).words == "It is in use by another program."
    parallel = decide(situation([session(1)], policy=Policy(parallel=True)))
    assert settle(parallel, busy).outcome is Outcome.FORK


@pytest.mark.case("C29")
@pytest.mark.parametrize("probe", [FOUND, Probe(ProbeKind.FOUND_ELSEWHERE, directory=WORKTREE.directory)])
def test_an_answer_does_not_free_what_another_run_holds(probe: Probe) -> None:
    fork = decide(situation([session(1, busy_with="run-8")], policy=Policy(parallel=True)))
    assert settle(fork, probe).outcome is Outcome.FORK


def test_a_program_that_let_go_is_no_longer_waited_for() -> None:
    first = decide(situation([session(1)], probes=(Probed(SessionId("s1"), Probe(ProbeKind.BUSY)),)))
    assert first.outcome is Outcome.HOLD
    probes = (Probed(SessionId("s1"), Probe(ProbeKind.BUSY)), Probed(SessionId("s1"), FOUND))
    assert decide(situation([session(1)], probes=probes)).outcome is Outcome.RESUME


@pytest.mark.case("P08")
def test_a_refused_session_is_retired_and_replaced_once_before_a_tool_ran() -> None:
    plan = settle(resume, REJECTED)
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.POISONED)
    assert plan.marks == (Mark(SessionId("s1"), SessionEvent.POISONED, RuleReason.POISONED),)


@pytest.mark.case("P08")
def test_after_a_tool_ran_nothing_is_tried_again_by_itself() -> None:
    unsigned = settle(resume, Probe(ProbeKind.REJECTED, tool_ran=True))
    assert (unsigned.reason, unsigned.waits_for) == (ProbeReason.TOOL_RAN, WaitsFor.PERSON)
    plan = settle(resume, Probe(ProbeKind.REJECTED, signal=REFUSED, tool_ran=True))
    assert (plan.outcome, plan.reason, plan.waits_for) == (Outcome.HOLD, ProbeReason.TOOL_RAN, WaitsFor.PERSON)
    assert plan.marks == ()


@pytest.mark.case("P08")
def test_a_second_refusal_in_one_run_is_surfaced() -> None:
    again = settle(of_two(), REJECTED)
    assert (again.outcome, again.session) == (Outcome.RESUME, session(1))
    plan = settle(again, Probe(ProbeKind.REJECTED, signal=REFUSED, detail="broken"))
    assert (plan.outcome, plan.reason, plan.waits_for) == (
        Outcome.HOLD,
        ProbeReason.REJECTED_AGAIN,
        WaitsFor.PERSON,
    )
    assert plan.words == "A second session was refused in the same run: broken"
    assert plan.marks == (Mark(SessionId("s2"), SessionEvent.POISONED, RuleReason.POISONED),)


@pytest.mark.case("T06")
def test_an_archive_outlives_the_agents_own_copy() -> None:
    kept = session(1, archive=ARCHIVED)
    plan = settle(decide(situation([kept])), MISSING)
    assert (plan.outcome, plan.reason) == (Outcome.TRANSFER, RuleReason.LOST)
    assert plan.words == "The agent's own store no longer has it."
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
    assert plan.marks == ()


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


@pytest.mark.case("C05", "C13")
def test_an_asked_session_that_is_gone_is_surfaced() -> None:
    asked = decide(situation([session(1)], demand=demand(resume_run=RunId("run-1"))))
    plan = settle(asked, MISSING)
    assert (plan.outcome, plan.reason.code) == (Outcome.HOLD, "asked:unusable")
    assert plan.marks == (Mark(SessionId("s1"), SessionEvent.CONFIRMED_MISSING, RuleReason.LOST),)


def test_a_plan_without_a_session_has_nothing_to_settle() -> None:
    for plan in (decide(situation([])), decide(situation([session(1, busy_with="x")]))):
        assert settle(plan, MISSING) is plan


def test_a_probe_of_a_session_that_is_no_candidate_changes_nothing() -> None:
    stranger = Probed(SessionId("s9"), Probe(ProbeKind.UNREACHABLE, detail="down"))
    assert decide(situation([session(1)], probes=(stranger,))).outcome is Outcome.RESUME


def test_a_strangers_probe_does_not_hide_the_ones_after_it() -> None:
    stranger = Probed(SessionId("s9"), Probe(ProbeKind.UNREACHABLE, detail="down"))
    probes = (stranger, Probed(SessionId("s1"), FOUND))
    assert decide(situation([session(1)], probes=probes)).proven


def test_a_program_that_let_go_of_a_session_elsewhere_is_no_longer_waited_for() -> None:
    elsewhere = Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE)
    probes = (Probed(SessionId("s1"), Probe(ProbeKind.BUSY)), Probed(SessionId("s1"), elsewhere))
    assert decide(situation([session(1)], probes=probes)).outcome is Outcome.FORK


def test_a_copy_that_has_seen_all_of_the_journal_can_be_carried() -> None:
    whole = session(1, runtime=THERE, archive=Archive("loom/1", EntrySeq(5)))
    plan = decide(situation([whole]))
    assert (plan.outcome, len(plan.catch_up)) == (Outcome.TRANSFER, 0)


def test_a_session_that_lives_here_is_told_by_its_own_mark_and_not_its_copys() -> None:
    plan = decide(situation([session(1, archive=ARCHIVED)]))
    assert (plan.outcome, plan.catch_up.after) == (Outcome.RESUME, 3)


def test_what_was_learned_last_counts() -> None:
    down = Probed(SessionId("s1"), Probe(ProbeKind.UNREACHABLE, detail="down"))
    up = Probed(SessionId("s1"), FOUND)
    assert decide(situation([session(1)], probes=(down, up))).proven
    assert decide(situation([session(1)], probes=(up, down))).outcome is Outcome.HOLD


@pytest.mark.case("C03")
def test_a_probe_cannot_bring_a_session_back_into_a_fresh_start() -> None:
    fresh = demand(fresh_asked_by="w1")
    for kind in (ProbeKind.UNREACHABLE, ProbeKind.FOUND_HERE, ProbeKind.BUSY):
        plan = decide(situation([session(1)], demand=fresh, probes=(Probed(SessionId("s1"), Probe(kind)),)))
        assert (plan.outcome, plan.session) == (Outcome.BLANK, None)


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
    assert (plan.outcome, plan.reason, plan.words) == (Outcome.RESEED, reason, words)


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


@pytest.mark.case("C29")
def test_a_busy_session_that_is_forked_needs_no_second_question() -> None:
    parallel = decide(situation([session(1)], policy=Policy(parallel=True)))
    plan = settle(parallel, Probe(ProbeKind.BUSY))
    assert (plan.outcome, plan.proven, plan.needs_probe) == (Outcome.FORK, True, False)


@pytest.mark.case("C13")
def test_the_reason_of_a_new_session_is_what_the_agent_just_answered() -> None:
    rows = [session(2, runtime=THERE), session(1)]
    plan = settle(decide(situation(rows)), MISSING)
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.LOST)


@pytest.mark.case("T06")
def test_the_newest_is_restored_here_before_an_older_one_is_resumed() -> None:
    rows = [session(2, archive=ARCHIVED), session(1)]
    plan = settle(decide(situation(rows)), MISSING)
    assert plan.outcome is Outcome.TRANSFER
    assert plan.session is not None
    assert plan.session.id == "s2"


def test_an_id_shape_must_be_a_regular_expression() -> None:
    with pytest.raises(ValueError, match=r"^the id shape '\(' is no regular expression: "):
        can(id_shape="(")
    with pytest.raises(ValueError, match=r"is no regular expression: "):
        can(id_shape="a{99999999999999999999}")


@pytest.mark.case("C13", "T06")
@pytest.mark.parametrize("gone", [MISSING, REJECTED])
def test_a_session_that_was_there_and_is_gone_is_proven_no_more(gone: Probe) -> None:
    found = settle(decide(situation([session(1, archive=ARCHIVED), session(2)])), MISSING)
    assert found.session == session(1, archive=ARCHIVED)
    plan = settle(settle(found, FOUND), gone)
    assert not plan.proven
    restored = settle(settle(decide(situation([session(1, archive=ARCHIVED)])), FOUND), MISSING)
    assert (restored.outcome, restored.needs_probe) == (Outcome.TRANSFER, True)


def test_a_newer_one_is_carried_although_an_older_one_is_over_its_limits() -> None:
    newer = session(2, runtime=THERE, archive=ARCHIVED)
    plan = decide(situation([newer, session(1, turns=9)], policy=Policy(limits=SessionLimits(turns=5))))
    assert (plan.outcome, plan.session) == (Outcome.TRANSFER, newer)


def test_a_session_lost_elsewhere_says_all_that_keeps_it_from_serving() -> None:
    plan = decide(situation([session(1, runtime=THERE, state=SessionState.LOST)]))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.LOST)
    assert plan.words == f"The agent's own store no longer has it. {ELSEWHERE_SAID} There is no archive of it."
