"""Continuity: resume, fork, transfer, reseed, blank, hold."""

import json
from dataclasses import MISSING, fields, replace
from typing import Any

import pytest

from clew.kernel import (
    Audience,
    CatchUp,
    Cursor,
    Directory,
    EntrySeq,
    Floor,
    Freshness,
    Here,
    LandingField,
    LaneScope,
    Mark,
    ModelChange,
    NativeId,
    NoticeReason,
    Outcome,
    PermissionMode,
    Pin,
    Plan,
    PlanReason,
    Policy,
    Probe,
    ProbeKind,
    Reader,
    ReadState,
    ResetPolicy,
    Resumability,
    RuleName,
    RuleReason,
    RunId,
    RunScope,
    SessionEvent,
    SessionLimits,
    SessionState,
    Situation,
    Source,
    SourceRead,
    UnreadableCursor,
    WaitsFor,
    WakeId,
    WakeReason,
    advance_session,
    coalesce,
    decide,
    decision_to_record,
    gather,
    pin,
    replay,
    resumability,
    settle,
    situation_from_record,
    situation_to_record,
)
from tests.kernel.kit import (
    ACCOUNT,
    AGENT_HOME,
    ELSEWHERE,
    FRESH_ID,
    HERE,
    LANE,
    OTHER_ACCOUNT,
    OTHER_HOME,
    OTHER_LANE,
    OTHER_PROVIDER,
    PROVIDER,
    RUN,
    SERVER,
    THERE,
    WORKTREE,
    can,
    codes,
    demand,
    here,
    session,
    situation,
    wake,
)

RESUMING = (WakeReason.COMMENT, WakeReason.MENTION, WakeReason.CHAT, WakeReason.REVIEW)


def steps(plan: Plan, subject: str) -> dict[str, tuple[str, str, str]]:
    return {step.rule: (step.outcome, step.code, step.words) for step in plan.trace if step.subject == subject}


@pytest.mark.case("C01")
def test_an_assignment_starts_blank_and_keeps_the_lanes_directory() -> None:
    plan = decide(situation([session()], demand=demand(WakeReason.ASSIGNMENT)))
    assert plan.outcome is Outcome.BLANK
    assert plan.reason.code == "policy:assignment"
    assert plan.words == "By policy an assignment starts afresh."
    assert plan.workspace == WORKTREE
    assert plan.session is None
    assert plan.native_id == FRESH_ID


@pytest.mark.case("C01")
@pytest.mark.parametrize("reason", WakeReason)
def test_any_reason_can_be_set_to_reset(reason: WakeReason) -> None:
    policy = Policy(reset=ResetPolicy(frozenset({reason})))
    plan = decide(situation([session()], demand=demand(reason), policy=policy))
    assert (plan.outcome, plan.reason.code) == (Outcome.BLANK, f"policy:{reason}")
    assert plan.words.startswith("By policy ")
    assert decide(situation([session()], demand=demand(reason), policy=Policy(reset=ResetPolicy(frozenset())))).session


def test_the_reason_that_resets_is_named_among_several() -> None:
    plan = decide(situation([session()], demand=demand(WakeReason.COMMENT, WakeReason.ASSIGNMENT)))
    assert plan.reason is PlanReason.POLICY_ASSIGNMENT


@pytest.mark.case("C02")
@pytest.mark.parametrize("reason", RESUMING)
def test_a_person_writing_resumes_the_saved_session(reason: WakeReason) -> None:
    plan = decide(situation([session(4)], demand=demand(reason)))
    assert plan.outcome is Outcome.RESUME
    assert plan.reason is PlanReason.FITS
    assert plan.words == "Generation 4 fits in every point that must match."
    assert plan.session == session(4)
    assert plan.native_id == "n-4"
    assert plan.mode is PermissionMode.EDIT
    assert plan.model == "large"
    assert plan.act_on == (5,)
    assert plan.waits_for is None
    assert plan.marks == ()
    assert plan.notices == ()


@pytest.mark.case("C03")
@pytest.mark.parametrize("source", Source)
def test_a_demanded_reset_bars_every_source(source: Source) -> None:
    asked = demand(fresh_asked_by="w1", resume_run=RunId("run-1") if source is Source.ASKED else None)
    given = SourceRead(source, ReadState.ANSWERED, (session(1), session(2, runtime=THERE)))
    plan = decide(situation(demand=asked, sources=(given,)))
    assert plan.outcome is Outcome.BLANK
    assert plan.reason is PlanReason.FRESH_DEMANDED
    assert plan.words == "A fresh start was demanded by wake w1."
    assert plan.session is None
    assert [each.findings for each in plan.considered] == [(RuleReason.RESET,), (RuleReason.RESET,)]
    assert len(plan.catch_up) == 0


@pytest.mark.case("C04")
def test_a_source_that_answers_keeps_the_later_ones_unread() -> None:
    read: list[Source] = []

    def look_up(source: Source) -> list[object]:
        read.append(source)
        return [session()]

    reads = gather(demand(resume_run=RunId("run-1")), look_up)  # type: ignore[arg-type]
    assert read == [Source.ASKED]
    assert [each.state for each in reads] == [ReadState.ANSWERED, ReadState.NOT_READ]
    assert [each.source for each in reads] == [Source.ASKED, Source.LANE]
    assert reads[0].sessions == (session(),)
    assert reads[1].detail == "the source before it (asked) decides"


@pytest.mark.case("C04")
def test_without_a_wish_only_the_lane_is_read() -> None:
    read: list[Source] = []

    def look_up(source: Source) -> list[object]:
        read.append(source)
        return []

    reads = gather(demand(), look_up)  # type: ignore[arg-type]
    assert read == [Source.LANE]
    assert [(each.source, each.state) for each in reads] == [
        (Source.ASKED, ReadState.NOT_READ),
        (Source.LANE, ReadState.EMPTY),
    ]
    assert reads[0].detail == "nobody asked for an earlier run"


@pytest.mark.case("C03", "C04")
def test_a_demanded_fresh_start_reads_no_source_at_all() -> None:
    def look_up(_: Source) -> list[object]:
        raise AssertionError("a fresh start has nothing to look up")

    demanded = demand(fresh_asked_by=WakeId("w1"), resume_run=RunId("r"))
    reads = gather(demanded, look_up)  # type: ignore[arg-type]
    assert {(each.state, each.detail) for each in reads} == {(ReadState.NOT_READ, "a fresh start was demanded")}
    assert decide(situation(demand=demanded, sources=reads)).outcome is Outcome.BLANK


@pytest.mark.case("C01", "C03", "C33")
def test_a_fresh_start_by_policy_can_be_tried_under_another_policy() -> None:
    reads = gather(demand(WakeReason.ASSIGNMENT), lambda _: [session()])
    plan = decide(situation(demand=demand(WakeReason.ASSIGNMENT), sources=reads))
    assert (plan.outcome, plan.considered[0].findings) == (Outcome.BLANK, (RuleReason.RESET,))
    other = replay(decision_to_record(plan), Policy(reset=ResetPolicy(frozenset())))
    assert (other.plan.outcome, other.plan.session) == (Outcome.RESUME, session())


@pytest.mark.case("C24")
@pytest.mark.parametrize(
    "reads",
    [
        (),
        (SourceRead(Source.LANE, ReadState.NOT_READ),),
        (SourceRead(Source.ASKED, ReadState.ANSWERED, (session(),)),),
    ],
)
def test_sessions_that_were_not_looked_up_are_not_sessions_that_are_not_there(reads: tuple[SourceRead, ...]) -> None:
    plan = decide(situation(sources=reads))
    assert (plan.outcome, plan.reason) == (Outcome.HOLD, PlanReason.SOURCE_NOT_READ)
    assert plan.waits_for is WaitsFor.ANOTHER_TRY
    assert plan.words == "The sessions were not looked up (lane), so it is not known how to go on."


@pytest.mark.case("C05")
def test_who_asks_for_one_conversation_is_not_given_the_lanes() -> None:
    reads = (SourceRead(Source.ASKED, ReadState.EMPTY), SourceRead(Source.LANE, ReadState.ANSWERED, (session(),)))
    plan = decide(situation(demand=demand(resume_run=RunId("run-1")), sources=reads))
    assert (plan.outcome, plan.reason, plan.considered) == (Outcome.HOLD, PlanReason.ASKED_NONE, ())


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


@pytest.mark.case("C04", "C05")
def test_a_wish_that_finds_nothing_does_not_fall_through_to_the_lane() -> None:
    reads = gather(demand(resume_run=RunId("run-1")), lambda _: [])
    assert [each.state for each in reads] == [ReadState.EMPTY, ReadState.NOT_READ]
    plan = decide(situation(demand=demand(resume_run=RunId("run-1")), sources=reads))
    assert (plan.outcome, plan.reason, plan.waits_for) == (Outcome.HOLD, PlanReason.ASKED_NONE, WaitsFor.PERSON)
    assert plan.words == "Run run-1 was asked for, and no session of it is known."


@pytest.mark.case("C05")
def test_an_asked_run_is_resumed_although_policy_says_fresh() -> None:
    asked = demand(WakeReason.ASSIGNMENT, resume_run=RunId("run-1"))
    plan = decide(situation([session(1, turns=9)], demand=asked, policy=Policy(limits=SessionLimits(turns=5))))
    assert plan.outcome is Outcome.RESUME
    assert [(notice.audience, notice.reason) for notice in plan.notices] == [
        (Audience.USER, NoticeReason.ASKED_OVER_POLICY)
    ]
    assert plan.notices[0].words == "The session of run run-1 is used because a person asked for it."
    assert {"notice:asked", "limit:waived"} <= codes(plan)


@pytest.mark.case("C05")
def test_an_asked_session_that_must_not_be_used_is_surfaced_and_not_replaced() -> None:
    asked = demand(resume_run=RunId("run-1"))
    plan = decide(situation([session(1, lane=OTHER_LANE)], demand=asked))
    assert (plan.outcome, plan.reason, plan.waits_for) == (Outcome.HOLD, PlanReason.ASKED_UNUSABLE, WaitsFor.PERSON)
    assert plan.words == (
        f"The session of run run-1 was asked for and cannot be used: It belongs to lane {OTHER_LANE}, not to this one."
    )
    assert plan.session is None
    assert plan.notices == ()
    foreign = decide(situation([session(1, provider=OTHER_PROVIDER)], demand=asked))
    assert foreign.words.endswith("cannot be used: It was made by spindle; this run uses loom.")


@pytest.mark.case("C06")
@pytest.mark.parametrize("runtime", [THERE, OTHER_HOME])
def test_a_session_of_another_runtime_is_never_resumed_natively(runtime: str) -> None:
    plan = decide(situation([session(1, runtime=runtime)]))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.ARCHIVE_MISSING)
    assert plan.words == f"It lives on {runtime}; this run is on {HERE}. There is no archive of it."
    assert steps(plan, "s1")["runtime"] == (
        "carry",
        "runtime:other",
        f"It lives on {runtime}; this run is on {HERE}.",
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
    assert plan.words == "It is not known on which runtime it was made."


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
    assert plan.words == "Its id n-1; rm is not of this provider's shape."
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
    assert plan.words == "It was made by spindle; this run uses loom."
    assert plan.catch_up == CatchUp(EntrySeq(0), EntrySeq(5))


@pytest.mark.case("C22")
def test_a_changed_model_goes_as_far_as_the_provider_can() -> None:
    changed = session(1, model="small")
    assert decide(situation([changed])).outcome is Outcome.RESUME
    forks = here(capabilities=can(change_model=False))
    plan = decide(situation([changed], here=forks))
    assert (plan.outcome, plan.reason) == (Outcome.FORK, RuleReason.MODEL_FORK)
    assert plan.words == "Its model is small; its history is forked into a session with large."
    neither = here(capabilities=can(change_model=False, fork=False))
    plan = decide(situation([changed], here=neither))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.MODEL_FIXED)
    assert plan.words == "Its model is small and cannot become large."
    policy = Policy(on_model_change=ModelChange.RESEED)
    plan = decide(situation([changed], policy=policy))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.MODEL_POLICY)
    assert plan.words == "Its model is small, not large; by policy it ends."


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


@pytest.mark.case("C23")
def test_history_is_not_shown_to_another_account_and_the_user_is_told() -> None:
    old = session(1, account=OTHER_ACCOUNT)
    plan = decide(situation([old]))
    assert (plan.outcome, plan.reason) == (Outcome.BLANK, PlanReason.ACCOUNT_WITHHELD)
    assert plan.words == (
        "The account changed from me@home to me@work; the earlier history is not shown to the new one."
    )
    assert len(plan.catch_up) == 0
    assert [(notice.audience, notice.words) for notice in plan.notices] == [
        (Audience.USER, "The history made under account me@home was not handed on.")
    ]


@pytest.mark.case("C23")
def test_history_crosses_accounts_when_allowed() -> None:
    plan = decide(situation([session(1, account=OTHER_ACCOUNT)], policy=Policy(history_across_accounts=True)))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.ACCOUNT_OTHER)
    assert plan.words == "It belongs to account me@home; this run uses me@work."
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


@pytest.mark.case("C24")
def test_a_failed_look_up_holds_and_never_starts_afresh() -> None:
    failed = SourceRead(Source.LANE, ReadState.FAILED, detail="the database did not answer")
    plan = decide(situation(sources=(failed,)))
    assert (plan.outcome, plan.reason) == (Outcome.HOLD, PlanReason.SOURCE_FAILED)
    assert plan.words == "The sessions could not be looked up (lane): the database did not answer"
    assert plan.waits_for is WaitsFor.ANOTHER_TRY

    def look_up(_: Source) -> list[object]:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        gather(demand(), look_up)  # type: ignore[arg-type]


@pytest.mark.case("C25")
def test_a_session_whose_id_was_never_captured_is_reseeded_without_replaying_its_prompt() -> None:
    plan = decide(situation([session(1, cursor=None)], head=EntrySeq(5), demand=demand()))
    assert (plan.outcome, plan.reason.code) == (Outcome.RESEED, "session:never-captured")
    assert plan.words == "Its id was never captured, so it cannot be found again."
    assert plan.act_on == (5,)
    assert len(plan.catch_up) == 5


@pytest.mark.case("C26")
def test_every_source_session_and_rule_is_in_the_trace() -> None:
    rows = [session(3, state=SessionState.POISONED), session(2), session(1)]
    plan = decide(situation(rows))
    assert [step.subject for step in plan.trace][:3] == ["lane", "workspace", "mode"]
    assert steps(plan, "lane") == {"source": ("answered", "source:answered", "It has sessions to consider.")}
    assert steps(plan, "s3")["state"] == (
        "out",
        "session:poisoned",
        "It is poisoned: its agent can no longer go on in it.",
    )
    assert list(steps(plan, "s3")) == [*list(RuleName)[:8], "state"]
    assert len(steps(plan, "s2")) == 20
    assert {(outcome, code) for outcome, code, _ in steps(plan, "s2").values()} == {("fit", "fit")}
    assert all(words.endswith(".") for _, _, words in steps(plan, "s2").values())
    assert steps(plan, "s1") == {
        "record": ("not-weighed", "not-weighed", "The search ended at a newer generation, so this one was not weighed.")
    }
    assert plan.trace[-1].subject == "plan"
    assert plan.trace[-1].code == "session:fits"
    assert plan.not_needed == (rows[2],)


@pytest.mark.case("C26")
@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ReadState.EMPTY, "It has no session."),
        (ReadState.NOT_READ, "It was not read: so."),
        (ReadState.FAILED, "It could not be read: so"),
    ],
)
def test_the_trace_says_what_became_of_a_source(state: ReadState, words: str) -> None:
    plan = decide(situation(sources=(SourceRead(Source.LANE, state, detail="so"),)))
    assert steps(plan, "lane") == {"source": (state, f"source:{state}", words)}


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


@pytest.mark.case("C29")
def test_a_busy_session_is_waited_for() -> None:
    plan = decide(situation([session(1), session(2, busy_with="run-8")]))
    assert (plan.outcome, plan.reason) == (Outcome.HOLD, RuleReason.BUSY)
    assert plan.words == "It is in use by run-8."
    assert plan.waits_for is WaitsFor.SESSION_FREE
    assert plan.session == session(2, busy_with="run-8")
    assert plan.native_id == "n-2"
    assert len(plan.catch_up) == 0


@pytest.mark.case("C29")
def test_a_busy_session_is_forked_where_parallel_is_allowed_and_possible() -> None:
    busy, parallel = session(1, busy_with="run-8"), Policy(parallel=True)
    plan = decide(situation([busy], policy=parallel))
    assert (plan.outcome, plan.reason) == (Outcome.FORK, RuleReason.BUSY_FORK)
    assert plan.words == "It is in use by run-8; its history is forked."
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
    assert (plan.outcome, plan.session, plan.marks) == (Outcome.HOLD, newest, ())
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
    assert (plan.outcome, plan.reason, plan.marks) == (Outcome.HOLD, RuleReason.BUSY, ())


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
    assert (plan.outcome, plan.reason.code, plan.words) == (Outcome.RESEED, code, words)
    assert plan.marks == (Mark(session(1).id, SessionEvent.ROTATED, plan.reason),)
    within = {name: value + 1 if name == "born_at" else value - 2 for name, value in facts.items()}
    kept = decide(situation([session(1, **within)], policy=Policy(limits=limits)))
    assert (kept.outcome, kept.marks) == (Outcome.RESUME, ())


@pytest.mark.case("C30")
def test_rotation_does_not_go_back_to_an_older_session() -> None:
    plan = decide(situation([session(2, turns=9), session(1)], policy=Policy(limits=SessionLimits(turns=5))))
    assert (plan.outcome, plan.reason, plan.not_needed) == (Outcome.RESEED, RuleReason.OVER_TURNS, (session(1),))
    assert plan.marks == (Mark(session(2).id, SessionEvent.ROTATED, RuleReason.OVER_TURNS),)


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
    assert (plan.outcome, plan.reason, plan.marks) == (Outcome.RESEED, RuleReason.POISONED, ())


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


def test_the_first_wake_of_a_lane_is_blank_unless_the_thread_has_a_history() -> None:
    alone = decide(situation(head=EntrySeq(2), demand=replace(demand(), entries=(EntrySeq(1), EntrySeq(2)))))
    assert (alone.outcome, alone.reason, alone.words) == (
        Outcome.BLANK,
        PlanReason.FIRST,
        "The lane has had no session yet.",
    )
    joined = decide(situation(head=EntrySeq(2), demand=replace(demand(), entries=(EntrySeq(2),))))
    assert (joined.outcome, joined.reason) == (Outcome.RESEED, PlanReason.FIRST)
    assert joined.catch_up == CatchUp(EntrySeq(0), EntrySeq(2))
    with pytest.raises(ValueError, match=r"^entry 9 is to be answered, but the journal ends at 1$"):
        situation(head=EntrySeq(1), demand=replace(demand(), entries=(EntrySeq(1), EntrySeq(9))))


@pytest.mark.case("W12")
def test_a_session_of_another_lane_is_as_good_as_none() -> None:
    plan = decide(situation([session(1, lane=OTHER_LANE)]))
    assert (plan.outcome, plan.reason, plan.session) == (Outcome.RESEED, PlanReason.NONE_OF_ITS_OWN, None)
    assert plan.words == "None of the sessions found is this conversation's to go on with."
    assert steps(plan, "s1")["lane"] == ("out", "lane:other", f"It belongs to lane {OTHER_LANE}, not to this one.")
    behind = decide(situation([session(2, lane=OTHER_LANE), session(1)]))
    assert (behind.outcome, behind.session) == (Outcome.RESUME, session(1))


def test_a_superseded_record_gives_no_reason_of_its_own() -> None:
    rows = [session(2), session(1, cursor=Cursor(1, NativeId("n-2")))]
    assert decide(situation(rows, floor=Floor(2, EntrySeq(4)))).reason is PlanReason.NONE_OF_ITS_OWN


def test_a_source_is_read_once() -> None:
    with pytest.raises(ValueError, match=r"^a source was read twice: pass one read of each$"):
        situation(sources=(SourceRead(Source.LANE, ReadState.EMPTY), SourceRead(Source.LANE, ReadState.FAILED)))


def test_the_lanes_own_reason_is_given_before_a_strangers() -> None:
    rows = [session(3, lane=OTHER_LANE), session(2, scope=RunScope(LANE, RUN)), session(1, cursor=None)]
    assert decide(situation(rows)).reason is RuleReason.NEVER_CAPTURED


@pytest.mark.case("H02")
def test_an_isolated_run_sees_nothing_of_earlier_ones() -> None:
    earlier = [
        session(1),
        session(2, scope=RunScope(LANE, RunId("run-8"))),
    ]
    plan = decide(situation(earlier, scope=RunScope(LANE, RUN), demand=demand(WakeReason.TIMER), head=EntrySeq(900)))
    assert (plan.outcome, plan.reason) == (Outcome.BLANK, PlanReason.ISOLATED)
    assert plan.words == "The run keeps a context of its own, so it is told only what the wake says."
    assert len(plan.catch_up) == 0
    assert [each.findings for each in plan.considered] == [(RuleReason.SCOPE_OTHER,)] * 2


@pytest.mark.case("H02")
def test_an_isolated_run_that_is_tried_again_resumes_its_own_session_and_no_more() -> None:
    scope = RunScope(LANE, RUN)
    plan = decide(situation([session(1, scope=scope)], scope=scope, head=EntrySeq(900)))
    assert (plan.outcome, len(plan.catch_up)) == (Outcome.RESUME, 0)
    assert (plan.act_on, plan.already_told) == ((5,), ())
    told = decide(situation([session(1, scope=scope, seen=EntrySeq(5))], scope=scope, head=EntrySeq(900)))
    assert told.already_told == (5,)
    lost = decide(situation([session(1, scope=scope, cursor=None)], scope=scope, head=EntrySeq(900)))
    assert (lost.outcome, lost.reason) == (Outcome.BLANK, PlanReason.ISOLATED)


def test_equal_scopes_are_one_scope_whoever_made_the_value() -> None:
    assert decide(situation([session(1, scope=LaneScope(LANE))], scope=LaneScope(LANE))).outcome is Outcome.RESUME


@pytest.mark.case("X01")
def test_a_session_is_handed_exactly_what_it_has_not_seen() -> None:
    plan = decide(situation([session(1, seen=EntrySeq(2))], head=EntrySeq(6)))
    assert [entry for entry in range(10) if EntrySeq(entry) in plan.catch_up] == [3, 4, 5, 6]
    assert len(plan.catch_up) == 4
    assert len(decide(situation([session(1, seen=EntrySeq(6))], head=EntrySeq(6))).catch_up) == 0


@pytest.mark.case("X01")
def test_a_session_that_claims_more_than_the_journal_holds_is_not_this_threads() -> None:
    assert decide(situation([session(1, seen=EntrySeq(-1))])).reason.code == "journal:beyond"
    plan = decide(situation([session(1, seen=EntrySeq(6))], head=EntrySeq(5)))
    assert (plan.outcome, plan.reason.code) == (Outcome.RESEED, "journal:beyond")
    assert plan.words == "It claims to have seen entry 6 of a journal that ends at 5."


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


@pytest.mark.case("P09", "X07")
def test_an_entry_that_a_blank_session_was_never_told_is_sent() -> None:
    blank = session(2, begins=EntrySeq(6), also=(EntrySeq(6),), seen=EntrySeq(6))
    parked = replace(demand(WakeReason.EVENT), entries=(EntrySeq(5), EntrySeq(6)))
    plan = decide(situation([blank], demand=parked, head=EntrySeq(6)))
    assert (plan.outcome, plan.act_on, plan.already_told) == (Outcome.RESUME, (5, 6), (6,))


@pytest.mark.case("P12", "X07")
def test_a_session_that_took_the_prompt_before_it_died_is_not_sent_it_again() -> None:
    pinned = session(1, seen=EntrySeq(5))
    plan = decide(situation([pinned], demand=replace(demand(), entries=(EntrySeq(4), EntrySeq(5)))))
    assert (plan.outcome, plan.act_on, plan.already_told) == (Outcome.RESUME, (4, 5), (4, 5))
    assert decide(situation([session(1, seen=EntrySeq(4))])).already_told == ()
    lost = decide(situation([session(1, seen=EntrySeq(5), cursor=None)]))
    assert (lost.outcome, lost.already_told) == (Outcome.RESEED, ())


@pytest.mark.case("L11")
def test_a_resumed_agent_is_told_what_did_not_survive() -> None:
    plan = decide(situation([session()], machinery_gone=("the dev server", "a timer")))
    assert [(notice.audience, notice.words) for notice in plan.notices] == [
        (
            Audience.AGENT,
            "The last run ended abruptly. Do not wait for what is gone: the dev server, a timer.",
        )
    ]
    held = decide(situation([session(1, busy_with="x")], machinery_gone=("a timer",)))
    assert held.notices == ()
    for fresh in (situation([session()], demand=demand(WakeReason.ASSIGNMENT)), situation(scope=RunScope(LANE, RUN))):
        assert decide(replace(fresh, machinery_gone=("a timer",))).notices == ()
    lost = decide(situation([session(1, cursor=None)], machinery_gone=("a timer",)))
    assert [notice.audience for notice in lost.notices] == [Audience.AGENT]


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


def test_a_provider_that_cannot_resume_says_so() -> None:
    plan = decide(situation([session()], here=here(capabilities=can(resume=False))))
    assert (plan.outcome, plan.words) == (Outcome.RESEED, "loom cannot resume any session.")


def test_a_sealed_session_is_waited_for() -> None:
    plan = decide(situation([session(1, state=SessionState.SEALED)]))
    assert (plan.outcome, plan.reason, plan.waits_for) == (Outcome.HOLD, RuleReason.SEALED, WaitsFor.SESSION_FREE)


@pytest.mark.case("P03")
def test_a_changed_mode_is_applied_or_the_session_is_not_used() -> None:
    wide = session(1, mode=PermissionMode.FULL)
    plan = decide(situation([wide]))
    assert (plan.outcome, plan.mode) == (Outcome.RESUME, PermissionMode.EDIT)
    assert steps(plan, "s1")["mode"] == ("note", "mode:reapplied", "Its mode full becomes edit.")
    fixed = here(capabilities=can(reapply_mode=False))
    plan = decide(situation([wide], here=fixed))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.MODE_FIXED)
    assert plan.words == "Its mode full cannot be brought to edit."
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


def test_accounts_compare_as_they_are_known() -> None:
    assert decide(situation([session(1, account=None)], here=here(account=None))).outcome is Outcome.RESUME
    assert decide(situation([session(1, account=ACCOUNT)], here=here(account=None))).outcome is Outcome.BLANK


def test_the_agents_home_is_the_place_of_a_lane_without_a_project() -> None:
    facts = replace(situation().place, project=None, remembered=None, prepared=None)
    plan = decide(situation([session(1, directory=Directory("/srv/ada/"))], place=facts))
    assert (plan.outcome, plan.workspace) == (Outcome.RESUME, AGENT_HOME)
