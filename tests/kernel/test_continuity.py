"""Continuity: resume, fork, transfer, reseed, blank, hold."""

import json
from dataclasses import MISSING, fields, replace
from typing import Any

import pytest

from clew.kernel import (
    Cursor,
    Directory,
    EntrySeq,
    Floor,
    Here,
    NativeId,
    Outcome,
    PermissionMode,
    Pin,
    PlanReason,
    Probe,
    ProbeKind,
    Resumability,
    RuleReason,
    RunId,
    RunScope,
    SessionEvent,
    SessionState,
    Situation,
    UnreadableCursor,
    WakeReason,
    advance_session,
    decide,
    pin,
    resumability,
    settle,
    situation_from_record,
    situation_to_record,
)
from clew.kernel.plan import CatchUp
from clew.kernel.rule_reason import RuleName
from tests.kernel.kit import (
    AGENT_HOME,
    ELSEWHERE,
    HERE,
    LANE,
    OTHER_HOME,
    OTHER_LANE,
    OTHER_PROVIDER,
    RUN,
    SERVER,
    THERE,
    WORKTREE,
    can,
    demand,
    finding,
    here,
    session,
    situation,
    steps,
)

RESUMING = (WakeReason.COMMENT, WakeReason.MENTION, WakeReason.CHAT, WakeReason.REVIEW)


@pytest.mark.case("C02")
@pytest.mark.parametrize("reason", RESUMING)
def test_a_person_writing_resumes_the_saved_session(reason: WakeReason) -> None:
    plan = decide(situation([session(4)], demand=demand(reason)))
    assert plan.outcome is Outcome.RESUME
    assert plan.reason is PlanReason.FITS
    assert plan.words == "Continuing the same conversation (session 4)."
    assert plan.session == session(4)
    assert plan.native_id == "n-4"
    assert plan.mode is PermissionMode.EDIT
    assert plan.model == "large"
    assert plan.act_on == (5,)
    assert plan.waits_for is None
    assert plan.session_changes == ()
    assert plan.notices == ()


@pytest.mark.case("C06")
@pytest.mark.parametrize("runtime", [THERE, OTHER_HOME])
def test_a_session_of_another_runtime_is_never_resumed_natively(runtime: str) -> None:
    plan = decide(situation([session(1, runtime=runtime)]))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.ARCHIVE_MISSING)
    assert finding(plan) == f"It is on runtime {runtime}; this run is on {HERE}. There is no archive of it."
    assert steps(plan, "s1")["runtime"] == (
        "carry",
        "runtime:other",
        f"It is on runtime {runtime}; this run is on {HERE}.",
    )


@pytest.mark.case("C07")
def test_the_directory_survives_when_the_session_does_not() -> None:
    shared = replace(WORKTREE, machine=None)
    facts = replace(situation().place, remembered=shared)
    there = here(machine=SERVER, runtime=THERE)
    plan = decide(situation([session()], here=there, place=facts))
    assert plan.outcome is Outcome.RESEED
    assert plan.workspace == shared


@pytest.mark.case("C08")
def test_the_guard_compares_with_the_runs_runtime() -> None:
    # The agent moved to the server. The run that was queued for the laptop is claimed there; the next one is not.
    on_server = here(machine=SERVER, runtime=THERE)
    shared = replace(situation().place, remembered=replace(WORKTREE, machine=None))
    assert decide(situation([session(1)], place=shared)).outcome is Outcome.RESUME
    assert decide(situation([session(1)], place=shared, here=on_server)).outcome is Outcome.RESEED
    assert [each.name for each in fields(Situation) if "runtime" in each.name] == []
    assert [each.name for each in fields(Here) if "runtime" in each.name] == ["runtime"]


@pytest.mark.case("C09")
def test_back_on_the_first_machine_its_session_goes_on_and_is_told_the_rest() -> None:
    first = session(1, seen=EntrySeq(3))
    second = session(2, runtime=THERE, seen=EntrySeq(8), directory=ELSEWHERE)
    plan = decide(situation([second, first], head=EntrySeq(9), demand=demand()))
    assert plan.outcome is Outcome.RESUME
    assert plan.session == first
    assert plan.catch_up == CatchUp(EntrySeq(3), EntrySeq(9))
    assert plan.workspace == WORKTREE


@pytest.mark.case("C10")
def test_a_pin_is_one_value_with_its_runtime() -> None:
    required = {each.name for each in fields(Pin) if each.default is MISSING}
    assert {"native_id", "runtime", "directory"} <= required
    pinned = pin(None, Pin(RUN, 1, NativeId("n-1"), HERE, WORKTREE.directory))
    later = Pin(RunId("run-10"), 2, NativeId("n-2"), THERE, ELSEWHERE)
    moved = pin(pinned.held, later)
    assert moved.held == later


@pytest.mark.case("C11")
def test_an_unknown_runtime_closes_the_guard() -> None:
    plan = decide(situation([session(1, runtime=None)]))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.RUNTIME_UNKNOWN)
    assert finding(plan) == "It is not known on which runtime it was made."


@pytest.mark.case("C12")
@pytest.mark.parametrize("cursor", [UnreadableCursor("it is not JSON"), Cursor(2, NativeId("n-1"))])
def test_a_cursor_that_cannot_be_read_is_not_probed(cursor: Cursor | UnreadableCursor) -> None:
    plan = decide(situation([session(1, cursor=cursor)]))
    assert (plan.outcome, plan.reason.code) == (Outcome.RESEED, "cursor:unreadable")
    assert not plan.needs_probe


@pytest.mark.case("C12", "S04")
def test_an_id_of_the_wrong_shape_never_reaches_the_agent() -> None:
    plan = decide(situation([session(1, cursor=Cursor(1, NativeId("n-1; rm")))]))
    assert (plan.outcome, plan.reason.code) == (Outcome.RESEED, "cursor:id-shape")
    assert finding(plan) == "Its id n-1; rm does not have the shape of this provider's ids."
    unshaped = here(capabilities=can(id_shape=None))
    assert decide(situation([session(1, cursor=Cursor(1, NativeId("n-1; rm")))], here=unshaped)).native_id == "n-1; rm"


@pytest.mark.case("C19")
def test_a_poisoned_session_is_never_chosen_again_whichever_row_names_it() -> None:
    same = Cursor(1, NativeId("n-7"))
    rows = [
        session(1, cursor=Cursor(1, NativeId("n-other"))),
        session(2, cursor=same),
        session(3, cursor=same, state=SessionState.POISONED),
    ]
    plan = decide(situation(rows))
    assert plan.outcome is Outcome.RESUME
    assert plan.session == rows[0]
    assert [each.findings for each in plan.considered] == [(RuleReason.POISONED,), (RuleReason.SUPERSEDED,), ()]
    assert steps(plan, "s2") == {
        "record": (
            "out",
            "record:superseded",
            "A newer generation records the same session, and only that one counts.",
        )
    }


@pytest.mark.case("C19")
def test_the_same_id_on_another_runtime_is_another_session() -> None:
    same = Cursor(1, NativeId("n-7"))
    rows = [session(1, cursor=same), session(2, cursor=same, runtime=THERE, state=SessionState.POISONED)]
    assert decide(situation(rows)).session == rows[0]


@pytest.mark.case("C11", "C19")
def test_a_poisoned_record_of_an_unknown_runtime_stands_for_every_runtime() -> None:
    same = Cursor(1, NativeId("n-7"))
    rows = [session(1, cursor=same), session(2, cursor=same, runtime=None, state=SessionState.POISONED)]
    assert decide(situation(rows)).outcome is Outcome.RESEED


@pytest.mark.case("C19")
@pytest.mark.parametrize("stranger", [{"lane": OTHER_LANE}, {"scope": RunScope(LANE, RUN)}])
def test_a_strangers_record_of_the_same_id_does_not_stand_for_the_lanes_own(stranger: dict[str, Any]) -> None:
    same = Cursor(1, NativeId("n-7"))
    assert decide(situation([session(1, cursor=same), session(2, cursor=same, **stranger)])).outcome is Outcome.RESUME


@pytest.mark.case("C19")
@pytest.mark.parametrize(
    ("state", "code"),
    [
        (SessionState.POISONED, "session:poisoned"),
        (SessionState.RETIRED, "session:retired"),
        (SessionState.MOVED, "session:moved"),
        (SessionState.LOST, "session:lost"),
    ],
)
def test_a_retired_session_ends_and_says_how(state: SessionState, code: str) -> None:
    plan = decide(situation([session(1, state=state)]))
    assert (plan.outcome, plan.reason.code) == (Outcome.RESEED, code)


@pytest.mark.case("C20")
def test_a_poisoned_session_that_completes_a_turn_is_healthy_again() -> None:
    healed = advance_session(SessionState.POISONED, SessionEvent.TURN_COMPLETED)
    assert healed is SessionState.HEALTHY
    assert decide(situation([session(1, state=healed)])).outcome is Outcome.RESUME


@pytest.mark.case("C21")
def test_drift_of_instructions_and_tools_is_noted_and_resumes() -> None:
    plan = decide(situation([session(1, instructions="i0", tools="t0")]))
    assert plan.outcome is Outcome.RESUME
    assert plan.considered[0].findings == (RuleReason.INSTRUCTIONS_DRIFT, RuleReason.TOOLS_DRIFT)
    assert steps(plan, "s1")["tools"] == (
        "note",
        "tools:drift",
        "The list of tools has changed; the current one is given.",
    )


@pytest.mark.case("C21", "T04")
def test_another_provider_starts_anew_from_the_journal() -> None:
    plan = decide(situation([session(1, provider=OTHER_PROVIDER)]))
    assert (plan.outcome, plan.reason.code) == (Outcome.RESEED, "provider:other")
    assert finding(plan) == "It was made by spindle; this run uses loom."
    assert plan.catch_up == CatchUp(EntrySeq(0), EntrySeq(5))


@pytest.mark.case("C25")
def test_a_session_whose_id_was_never_captured_is_reseeded_without_replaying_its_prompt() -> None:
    plan = decide(situation([session(1, cursor=None)], head=EntrySeq(5), demand=demand()))
    assert (plan.outcome, plan.reason.code) == (Outcome.RESEED, "session:never-captured")
    assert (
        plan.words == "No session was kept of the turns before: the agent named none, or one that another thread holds."
    )
    assert plan.act_on == (5,)
    assert len(plan.catch_up) == 5


@pytest.mark.case("C25")
def test_a_lane_whose_runs_left_no_session_is_not_taken_for_a_new_one() -> None:
    plan = decide(situation([], head=EntrySeq(5), demand=demand(), told_before=True))
    assert (plan.outcome, plan.reason.code) == (Outcome.RESEED, "session:never-captured")
    new = decide(situation([], head=EntrySeq(5), demand=demand()))
    assert (new.outcome, new.reason.code) == (Outcome.RESEED, "lane:first")


@pytest.mark.case("C26")
def test_every_source_session_and_rule_is_in_the_trace() -> None:
    rows = [session(3, state=SessionState.POISONED), session(2), session(1)]
    plan = decide(situation(rows))
    assert [step.subject for step in plan.trace][:3] == ["lane", "workspace", "mode"]
    assert steps(plan, "lane") == {"source": ("answered", "source:answered", "It has sessions to consider.")}
    assert steps(plan, "s3")["state"] == (
        "out",
        "session:poisoned",
        "It is poisoned: its agent can no longer continue it.",
    )
    assert list(steps(plan, "s3")) == [*list(RuleName)[:8], "state"]
    assert len(steps(plan, "s2")) == 21
    assert {(outcome, code) for outcome, code, _ in steps(plan, "s2").values()} == {("fit", "fit")}
    assert all(words.endswith(".") for _, _, words in steps(plan, "s2").values())
    assert steps(plan, "s1") == {
        "record": ("not-weighed", "not-weighed", "The search ended at a newer generation, so this one was not weighed.")
    }
    assert plan.trace[-1].subject == "plan"
    assert plan.trace[-1].code == "session:fits"
    assert plan.not_needed == (rows[2],)


@pytest.mark.case("C27")
def test_the_outcomes_are_a_closed_set() -> None:
    assert [outcome.value for outcome in Outcome] == ["resume", "fork", "transfer", "reseed", "blank", "hold"]


@pytest.mark.case("C28")
def test_an_idle_session_goes_on_after_everything_was_restarted() -> None:
    # Nothing but the record is left: no process, no proof.
    stored = json.dumps(situation_to_record(situation([session(1, proven_at=None)])))
    plan = decide(situation_from_record(json.loads(stored)))
    assert (plan.outcome, plan.native_id, plan.needs_probe) == (Outcome.RESUME, "n-1", True)
    assert settle(plan, Probe(ProbeKind.UNREACHABLE)).native_id == "n-1"
    assert settle(plan, Probe(ProbeKind.FOUND_HERE)).outcome is Outcome.RESUME


@pytest.mark.case("C31")
def test_the_newest_generation_serves_in_whatever_order_they_come() -> None:
    rows = [session(2), session(3), session(1)]
    assert decide(situation(rows)).session == rows[1]
    assert decide(situation(reversed(rows))).session == rows[1]


@pytest.mark.case("C33")
def test_the_same_situation_gives_the_same_plan() -> None:
    rows = [session(2, runtime=THERE), session(1, directory=ELSEWHERE)]
    assert decide(situation(rows)) == decide(situation(rows))


@pytest.mark.case("C34")
def test_nothing_is_called_proven_that_was_not_probed() -> None:
    assert resumability(session(1, proven_at=None)) is Resumability.UNPROVEN
    assert resumability(session(1, proven_at=0.0)) is Resumability.PROVEN
    assert resumability(session(1, proven_at=1.0, state=SessionState.LOST)) is Resumability.UNUSABLE
    assert resumability(session(1, proven_at=1.0, cursor=None)) is Resumability.UNUSABLE
    assert resumability(session(1, proven_at=1.0, cursor=UnreadableCursor("why"))) is Resumability.UNUSABLE


@pytest.mark.case("W12")
def test_a_session_of_another_lane_is_as_good_as_none() -> None:
    plan = decide(situation([session(1, lane=OTHER_LANE)]))
    assert (plan.outcome, plan.reason, plan.session) == (Outcome.RESEED, PlanReason.NONE_OF_ITS_OWN, None)
    assert plan.words == "New session: no earlier session belongs to this conversation."
    assert steps(plan, "s1")["lane"] == ("out", "lane:other", f"It belongs to lane {OTHER_LANE}, not to this one.")
    behind = decide(situation([session(2, lane=OTHER_LANE), session(1)]))
    assert (behind.outcome, behind.session) == (Outcome.RESUME, session(1))


def test_a_superseded_record_gives_no_reason_of_its_own() -> None:
    rows = [session(2), session(1, cursor=Cursor(1, NativeId("n-2")))]
    assert decide(situation(rows, floor=Floor(2, EntrySeq(4)))).reason is PlanReason.NONE_OF_ITS_OWN


def test_the_lanes_own_reason_is_given_before_a_strangers() -> None:
    rows = [session(3, lane=OTHER_LANE), session(2, scope=RunScope(LANE, RUN)), session(1, cursor=None)]
    assert decide(situation(rows)).reason is RuleReason.NEVER_CAPTURED


def test_a_provider_that_cannot_resume_says_so() -> None:
    plan = decide(situation([session()], here=here(capabilities=can(resume=False))))
    assert (plan.outcome, finding(plan)) == (Outcome.RESEED, "loom cannot resume any session.")


def test_the_agents_home_is_the_place_of_a_lane_without_a_project() -> None:
    facts = replace(situation().place, project=None, remembered=None, prepared=None)
    plan = decide(situation([session(1, directory=Directory("/srv/ada/"))], place=facts))
    assert (plan.outcome, plan.workspace) == (Outcome.RESUME, AGENT_HOME)
