"""Sources: which sessions are looked up, and what it means that none were."""

import pytest

from clew.kernel import (
    Audience,
    NoticeReason,
    Outcome,
    PlanReason,
    Policy,
    ReadState,
    RunId,
    SessionLimits,
    Source,
    SourceRead,
    WaitsFor,
    WakeId,
    WakeReason,
    decide,
    gather,
)
from tests.kernel.kit import (
    OTHER_LANE,
    OTHER_PROVIDER,
    codes,
    demand,
    session,
    situation,
    steps,
)


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
    assert plan.words == "The sessions were not looked up (lane), so the run cannot be decided."


@pytest.mark.case("C05")
def test_who_asks_for_one_conversation_is_not_given_the_lanes() -> None:
    reads = (SourceRead(Source.ASKED, ReadState.EMPTY), SourceRead(Source.LANE, ReadState.ANSWERED, (session(),)))
    plan = decide(situation(demand=demand(resume_run=RunId("run-1")), sources=reads))
    assert (plan.outcome, plan.reason, plan.considered) == (Outcome.HOLD, PlanReason.ASKED_NONE, ())


@pytest.mark.case("C04", "C05")
def test_a_wish_that_finds_nothing_does_not_fall_through_to_the_lane() -> None:
    reads = gather(demand(resume_run=RunId("run-1")), lambda _: [])
    assert [each.state for each in reads] == [ReadState.EMPTY, ReadState.NOT_READ]
    plan = decide(situation(demand=demand(resume_run=RunId("run-1")), sources=reads))
    assert (plan.outcome, plan.reason, plan.waits_for) == (Outcome.HOLD, PlanReason.ASKED_NONE, WaitsFor.PERSON)
    assert plan.words == "Run run-1 was asked for, but it has no known session."


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
        f"The session of run run-1 was asked for but cannot be used: It belongs to lane {OTHER_LANE}, not to this one."
    )
    assert plan.session is None
    assert plan.notices == ()
    foreign = decide(situation([session(1, provider=OTHER_PROVIDER)], demand=asked))
    assert foreign.words.endswith("cannot be used: It was made by spindle; this run uses loom.")


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


def test_a_source_is_read_once() -> None:
    with pytest.raises(ValueError, match=r"^a source was read twice: pass one read of each$"):
        situation(sources=(SourceRead(Source.LANE, ReadState.EMPTY), SourceRead(Source.LANE, ReadState.FAILED)))
