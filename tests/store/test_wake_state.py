"""A wake's next state as SQL is the kernel's: every statement that changes it, from every state, on both databases."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, select

from clew.kernel import WAKE_ENDS, WakeEvent, WakeState, advance_wake
from clew.store.engine.statement import Statement
from clew.store.operations.cancel import end_wake, end_wakes
from clew.store.operations.carried_wakes import UnconfirmedSteer, let_go
from clew.store.operations.claim_sql import carry
from clew.store.operations.evidence import drop, give_up, serve_read_back
from clew.store.operations.wake_state import state_after
from clew.store.schema.tables import lanes, runs, wakes
from tests.store.kit import ADA, LANE, RUNTIME, THREAD, Daemon

WAKE, RUN = "wk_1", "rn_1"
VALUES: Mapping[str, Any] = {
    "lane": LANE,
    "wake": WAKE,
    "wakes": [WAKE],
    "run": RUN,
    "asker": RUN,
    "scope": "",
    "code": "it",
    "words": "It was so.",
    "until": None,
    "began": 0,
    "entry": 1,
}

BY_EVENT: Mapping[WakeEvent, Sequence[Statement]] = {
    WakeEvent.CLAIM: (carry,),
    WakeEvent.RELEASE: (let_go[WakeEvent.RELEASE, UnconfirmedSteer.SHARES],),
    WakeEvent.SERVE: (let_go[WakeEvent.SERVE, UnconfirmedSteer.SHARES],),
    # A wake is skipped when it is accepted: its row is inserted in that state.
    WakeEvent.SKIP: (),
    WakeEvent.CANCEL: (end_wake, let_go[WakeEvent.CANCEL, UnconfirmedSteer.SHARES]),
}


@pytest.fixture(autouse=True)
def lane(daemon: Daemon) -> Iterator[None]:
    daemon.add(lanes, id=LANE, agent_id=ADA, thread_id=THREAD)
    daemon.add(runs, id=RUN, number=1, lane_id=LANE, agent_id=ADA, runtime_id=RUNTIME, rank=0.0, queued_at=0.0)
    yield
    # A run without a wake and a decision breaks a promise; none is left behind.
    daemon.write(lambda connection: [connection.execute(delete(table)).rowcount for table in (wakes, runs)])


def after(connection: Connection, statement: Statement, state: WakeState) -> WakeState:
    """Where the statement brings a wake of the run that is in this state."""
    connection.execute(delete(wakes))
    row: dict[str, Any] = {
        "id": WAKE,
        "lane_id": LANE,
        "thread_id": THREAD,
        "reason": "chat",
        "origin_kind": "human",
        "run_id": RUN,
        "entry": 1,
    }
    row |= {"accepted_at": 0.0, "ended_at": 1.0 if state in WAKE_ENDS else None, "code": "it", "words": "It was so."}
    connection.execute(insert(wakes).values(state=state.value, **row))
    statement.rows(connection, **VALUES)
    return WakeState(connection.execute(select(wakes.c.state)).scalar_one())


def moves(daemon: Daemon, *statements: Statement) -> dict[WakeState, WakeState]:
    """From which states the statements move a wake, and where to."""
    found = daemon.write(
        lambda connection: [
            (state, after(connection, statement, state)) for statement in statements for state in WakeState
        ]
    )
    return {before: now for before, now in found if now is not before}


@pytest.mark.case("W07")
@pytest.mark.parametrize("event", WakeEvent)
def test_what_happens_to_a_wake_is_what_the_kernel_says(daemon: Daemon, event: WakeEvent) -> None:
    by_kernel = {state: following for state in WakeState if (following := advance_wake(state, event)) is not None}
    if event is WakeEvent.SKIP:
        assert by_kernel == {WakeState.PENDING: WakeState.SKIPPED}
    else:
        assert by_kernel, "a comparison of nothing with nothing"
        assert moves(daemon, *BY_EVENT[event]) == by_kernel


@pytest.mark.case("W07")
def test_every_pending_wake_of_a_lane_is_cancelled_as_one_is(daemon: Daemon) -> None:
    assert moves(daemon, end_wakes) == moves(daemon, end_wake) == {WakeState.PENDING: WakeState.CANCELLED}


@pytest.mark.case("W07")
@pytest.mark.parametrize(
    ("statement", "event"),
    [(serve_read_back, WakeEvent.SERVE), (give_up, WakeEvent.CANCEL), (drop, WakeEvent.CANCEL)],
    ids=["read-back", "given-up", "dropped"],
)
def test_evidence_ends_a_wake_as_if_its_run_had(daemon: Daemon, statement: Statement, event: WakeEvent) -> None:
    end = advance_wake(WakeState.CLAIMED, event)
    assert end is not None
    assert moves(daemon, statement) == {WakeState.PENDING: end, WakeState.CLAIMED: end}


def test_a_transition_that_the_kernel_does_not_have_is_refused() -> None:
    for state, event in product(WakeState, WakeEvent):
        if advance_wake(state, event) is None:
            with pytest.raises(ValueError, match="has no event"):
                state_after(state, event)
