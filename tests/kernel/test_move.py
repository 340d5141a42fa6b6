"""A move between machines may be killed at any step, and two sides never write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.move import (
    MOVE_TABLE,
    RECOVERY,
    MoveEvent,
    MoveState,
    MoveStep,
    Side,
    advance_move,
    recover,
    writer,
)

FORWARD = {
    (MoveState.IDLE, MoveEvent.SEAL): MoveState.SEALED,
    (MoveState.SEALED, MoveEvent.LAND): MoveState.LANDED,
    (MoveState.LANDED, MoveEvent.VERIFY): MoveState.VERIFIED,
    (MoveState.VERIFIED, MoveEvent.COMMIT): MoveState.COMMITTED,
}
DOES = {
    MoveStep.LAND: MoveEvent.LAND,
    MoveStep.VERIFY: MoveEvent.VERIFY,
    MoveStep.COMMIT: MoveEvent.COMMIT,
    MoveStep.ABORT: MoveEvent.ABORT,
}


@pytest.mark.case("T07")
@pytest.mark.parametrize("event", list(MoveEvent))
@pytest.mark.parametrize("state", list(MoveState))
def test_every_event_in_every_state(state: MoveState, event: MoveEvent) -> None:
    aborts = event is MoveEvent.ABORT and state in (MoveState.SEALED, MoveState.LANDED, MoveState.VERIFIED)
    assert advance_move(state, event) == (MoveState.IDLE if aborts else FORWARD.get((state, event)))


@pytest.mark.case("T07")
def test_the_source_writes_before_the_target_after_and_nobody_between() -> None:
    assert {state: writer(state) for state in MoveState} == {
        MoveState.IDLE: Side.SOURCE,
        MoveState.SEALED: Side.NOBODY,
        MoveState.LANDED: Side.NOBODY,
        MoveState.VERIFIED: Side.NOBODY,
        MoveState.COMMITTED: Side.TARGET,
    }


@pytest.mark.case("T07")
def test_no_single_step_hands_writing_from_one_side_to_the_other() -> None:
    for (state, _), then in MOVE_TABLE.items():
        assert Side.NOBODY in (writer(state), writer(then))


@pytest.mark.case("T07")
@given(st.lists(st.sampled_from(MoveEvent), max_size=40))
def test_the_target_writes_only_after_a_commit_and_the_source_never_again(events: list[MoveEvent]) -> None:
    state, committed = MoveState.IDLE, False
    for event in events:
        then = advance_move(state, event)
        if then is not None:
            committed = committed or event is MoveEvent.COMMIT
            state = then
        assert (writer(state) is Side.TARGET) is committed


@pytest.mark.case("T07")
@pytest.mark.parametrize(
    ("state", "target_answers", "step"),
    [
        (MoveState.IDLE, True, MoveStep.SOURCE_GOES_ON),
        (MoveState.IDLE, False, MoveStep.SOURCE_GOES_ON),
        (MoveState.SEALED, True, MoveStep.LAND),
        (MoveState.SEALED, False, MoveStep.ABORT),
        (MoveState.LANDED, True, MoveStep.VERIFY),
        (MoveState.LANDED, False, MoveStep.ABORT),
        (MoveState.VERIFIED, True, MoveStep.COMMIT),
        (MoveState.VERIFIED, False, MoveStep.ABORT),
        (MoveState.COMMITTED, True, MoveStep.TARGET_GOES_ON),
        (MoveState.COMMITTED, False, MoveStep.TARGET_GOES_ON),
    ],
)
def test_after_a_crash_the_next_step_is_known(state: MoveState, target_answers: bool, step: MoveStep) -> None:
    assert recover(state, target_answers) is step
    assert len(RECOVERY) == 2 * len(MoveState)


@pytest.mark.case("T07")
@pytest.mark.parametrize("state", list(MoveState))
def test_a_target_is_taken_to_answer_unless_known_otherwise(state: MoveState) -> None:
    assert recover(state) is recover(state, True)


@pytest.mark.case("T07")
@given(st.sampled_from(MoveState), st.lists(st.booleans(), min_size=4, max_size=4))
def test_recovery_ends_with_exactly_one_writer_however_often_it_is_killed(
    state: MoveState, answers: list[bool]
) -> None:
    for target_answers in answers:
        step = recover(state, target_answers)
        if step in DOES:
            then = advance_move(state, DOES[step])
            assert then is not None
            state = then
    assert writer(state) is not Side.NOBODY
