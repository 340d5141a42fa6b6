"""Steering: which wakes are told within a turn that is going, and what becomes of them."""

from dataclasses import replace

import pytest

from clew.kernel import (
    STEER_TABLE,
    AdmissionReason,
    Carried,
    EntrySeq,
    Freshness,
    LaneId,
    Origin,
    OriginKind,
    Outcome,
    RunId,
    SteerEvent,
    Wake,
    WakeEnd,
    WakeEvent,
    WakeId,
    WakeReason,
    WakeState,
    decide,
    steered_plan,
    to_steer,
)
from clew.kernel.wake import advance_wake
from tests.kernel.kit import session, situation

TOLD = EntrySeq(3)


def wake(number: int, *entries: int, **changes: object) -> Wake:
    made = Wake(
        WakeId(f"w{number}"),
        LaneId("lane"),
        WakeReason.COMMENT,
        accepted_at=float(number),
        entries=tuple(map(EntrySeq, entries)),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def steered(*pending: Wake, asked: tuple[str, ...] = ("w2",), now: float = 10.0) -> list[str]:
    return [each.id for each in to_steer(pending, {WakeId(name) for name in asked}, TOLD, now)]


@pytest.mark.case("W13")
def test_what_is_asked_for_is_told_and_nothing_else_where_nothing_else_waits() -> None:
    assert steered(wake(2, 4)) == ["w2"]
    assert steered(wake(2, 4), asked=()) == []
    assert steered() == []


@pytest.mark.case("W13")
def test_what_was_said_before_it_is_told_with_it_and_what_came_after_waits() -> None:
    assert steered(wake(1, 4), wake(2, 5), wake(3, 6)) == ["w1", "w2"]
    assert steered(wake(1, 4), wake(2, 5), wake(3, 6), asked=("w1", "w3")) == ["w1", "w2", "w3"]


@pytest.mark.case("W13")
@pytest.mark.parametrize(
    "other",
    [
        wake(2, 4, freshness=Freshness.FRESH),
        wake(2, 4, resume_run=RunId("r1")),
        wake(2),
        wake(2, 3),
        wake(2, 2, 4),
    ],
    ids=["fresh", "another session", "no words", "told before", "partly told before"],
)
def test_what_is_not_for_this_turn_waits_for_the_next_run(other: Wake) -> None:
    assert steered(other) == []
    assert steered(replace(other, id=WakeId("w1")), wake(2, 5)) == ["w2"]


@pytest.mark.case("W13")
def test_what_was_put_off_is_told_only_with_a_persons_words() -> None:
    timer = Origin(OriginKind.AGENT)
    assert steered(wake(2, 4, not_before=99.0, origin=timer)) == []
    assert steered(wake(1, 4, not_before=99.0, origin=timer), wake(2, 5)) == ["w1", "w2"]
    assert steered(wake(1, 4, not_before=99.0), wake(2, 5, origin=timer)) == ["w2"]


@pytest.mark.case("W13")
def test_the_table_moves_wakes_as_the_table_of_wakes_does() -> None:
    assert STEER_TABLE == {
        (WakeState.PENDING, SteerEvent.TELL): (WakeState.CLAIMED, Carried.STEERING),
        (WakeState.CLAIMED, SteerEvent.TAKE): (WakeState.CLAIMED, Carried.STEERED),
        (WakeState.CLAIMED, SteerEvent.END): (WakeState.CANCELLED, WakeEnd.BY_USER),
        (WakeState.CLAIMED, SteerEvent.REFUSE): (WakeState.PENDING, AdmissionReason.NOT_STEERED),
    }
    assert advance_wake(WakeState.PENDING, WakeEvent.CLAIM) is WakeState.CLAIMED
    assert advance_wake(WakeState.CLAIMED, WakeEvent.CANCEL) is WakeState.CANCELLED
    assert advance_wake(WakeState.CLAIMED, WakeEvent.RELEASE) is WakeState.PENDING


@pytest.mark.case("W13")
def test_a_turns_plan_goes_on_in_the_same_session_with_just_what_is_new() -> None:
    plan = decide(situation([session(1)]))
    on = steered_plan(plan, EntrySeq(7), EntrySeq(9), [EntrySeq(9)])
    assert (on.outcome, on.session, on.mode, on.workspace) == (
        Outcome.RESUME,
        plan.session,
        plan.mode,
        plan.workspace,
    )
    assert (on.catch_up.after, on.catch_up.through, on.act_on, on.kept, on.notices) == (7, 9, (9,), (), ())
    fresh = steered_plan(decide(situation([])), EntrySeq(7), EntrySeq(9), [EntrySeq(9)])
    assert (fresh.outcome, fresh.already_told) == (Outcome.RESUME, ())
