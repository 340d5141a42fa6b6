"""Settling: what an agent's answer makes of a plan, and what it must never make of it."""

from dataclasses import replace

import pytest

from clew.kernel import (
    Archive,
    Directory,
    EntrySeq,
    Outcome,
    Plan,
    Policy,
    Probe,
    ProbeKind,
    RuleReason,
    RunId,
    SessionChange,
    SessionEvent,
    SessionId,
    Step,
    WaitsFor,
    decide,
    settle,
)
from clew.kernel.probe import Probed, ProbeReason
from tests.kernel.kit import ELSEWHERE, GONE, REFUSED, THERE, WORKTREE, can, demand, finding, here, session, situation

FOUND = Probe(ProbeKind.FOUND_HERE)
MISSING = Probe(ProbeKind.MISSING, signal=GONE)
REJECTED = Probe(ProbeKind.REJECTED, signal=REFUSED)
ARCHIVED = Archive("loom/1", EntrySeq(2), turns=1)

resume = decide(situation([session(1)]))


def of_two() -> Plan:
    return decide(situation([session(1), session(2)]))


@pytest.mark.case("C13")
def test_confirmed_missing_marks_the_session_lost_and_reseeds() -> None:
    plan = settle(resume, MISSING)
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.LOST)
    assert finding(plan) == "The agent's own store no longer has it. There is no archive of it."
    assert plan.session_changes == (SessionChange(SessionId("s1"), SessionEvent.CONFIRMED_MISSING, RuleReason.LOST),)
    assert [each.session.id for each in plan.considered] == ["s1"]
    assert "session:lost" in {step.code for step in plan.trace}
    assert plan.situation.probes == (Probed(SessionId("s1"), MISSING),)
    assert [step for step in plan.trace if step.rule == "probe"] == [
        Step("s1", "probe", "missing", "probe:missing", "The agent was asked for it: missing.")
    ]


@pytest.mark.parametrize("detail", ["it has no rollout", "it has no rollout."])
def test_what_an_agent_answers_is_told_as_one_sentence(detail: str) -> None:
    plan = settle(resume, replace(MISSING, detail=detail))
    (step,) = (step for step in plan.trace if step.rule == "probe")
    assert step.words == "The agent was asked for it: it has no rollout."


@pytest.mark.case("C13", "C19")
def test_the_next_healthy_session_is_asked_for_when_the_newest_is_gone() -> None:
    plan = settle(of_two(), MISSING)
    assert (plan.outcome, plan.session, plan.needs_probe) == (Outcome.RESUME, session(1), True)
    assert plan.session_changes == (SessionChange(SessionId("s2"), SessionEvent.CONFIRMED_MISSING, RuleReason.LOST),)
    proven = settle(plan, FOUND)
    assert (proven.outcome, proven.session, proven.needs_probe) == (Outcome.RESUME, session(1), False)
    assert proven.session_changes == plan.session_changes


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
    assert (plan.session, plan.native_id, plan.session_changes) == (session(1), "n-1", ())


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
        f"The agent seems to report {kind}, but not by a declared signal ({signal}): session not found"
    )
    assert (plan.session, plan.session_changes) == (session(1), ())


@pytest.mark.case("P11")
def test_a_provider_without_a_declared_sign_never_loses_a_session_to_a_probe() -> None:
    silent = here(capabilities=can(missing_signals=frozenset()))
    assert settle(decide(situation([session(1)], here=silent)), MISSING).outcome is Outcome.HOLD


@pytest.mark.case("C16")
def test_a_session_found_elsewhere_is_forked_into_the_wanted_directory() -> None:
    plan = settle(resume, Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE))
    assert (plan.outcome, plan.reason) == (Outcome.FORK, RuleReason.DIRECTORY_FORK)
    assert finding(plan) == "It works in /srv/elsewhere; its history is forked into /srv/maze."
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
    assert (plan.outcome, finding(plan), plan.waits_for) == (
        Outcome.HOLD,
        "It is in use by pid 77.",
        WaitsFor.SESSION_FREE,
    )
    assert finding(settle(resume, Probe(ProbeKind.BUSY))) == "It is in use by another program."
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
    assert plan.session_changes == (SessionChange(SessionId("s1"), SessionEvent.POISONED, RuleReason.POISONED),)


@pytest.mark.case("P08")
def test_after_a_tool_ran_nothing_is_tried_again_by_itself() -> None:
    unsigned = settle(resume, Probe(ProbeKind.REJECTED, tool_ran=True))
    assert (unsigned.reason, unsigned.waits_for) == (ProbeReason.TOOL_RAN, WaitsFor.PERSON)
    plan = settle(resume, Probe(ProbeKind.REJECTED, signal=REFUSED, tool_ran=True))
    assert (plan.outcome, plan.reason, plan.waits_for) == (Outcome.HOLD, ProbeReason.TOOL_RAN, WaitsFor.PERSON)
    assert plan.session_changes == ()


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
    assert plan.session_changes == (SessionChange(SessionId("s2"), SessionEvent.POISONED, RuleReason.POISONED),)


@pytest.mark.case("C05", "C13")
def test_an_asked_session_that_is_gone_is_surfaced() -> None:
    asked = decide(situation([session(1)], demand=demand(resume_run=RunId("run-1"))))
    plan = settle(asked, MISSING)
    assert (plan.outcome, plan.reason.code) == (Outcome.HOLD, "asked:unusable")
    assert plan.session_changes == (SessionChange(SessionId("s1"), SessionEvent.CONFIRMED_MISSING, RuleReason.LOST),)


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
