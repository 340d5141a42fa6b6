"""A run's next state as SQL is the kernel's: every state with every event, on both databases."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert

from clew.kernel import LIVE, RUN_ENDS, LaneId, Run, RunEvent, RunId, RunState, apply
from clew.store.operations.rows import read_run
from clew.store.operations.run_state import advance
from clew.store.schema.tables import lanes, runs
from tests.store.kit import ADA, LANE, RUNTIME, THREAD, Daemon

LONG = 1e12
FLAGS = ("prompt_sent", "tool_ran", "reopened")

# A claim is a statement of its own, since it also takes places; what it does is for the tests of claiming.
EVENTS = tuple(event for event in RunEvent if event is not RunEvent.CLAIM)

SEQUENCES = (
    (RunEvent.OPEN, RunEvent.PROMPT),
    (RunEvent.OPEN, RunEvent.PROMPT, RunEvent.TOOL),
    (RunEvent.OPEN, RunEvent.PROMPT, RunEvent.TOOL, RunEvent.ASK),
    (RunEvent.PROMPT, RunEvent.ASK),
    (RunEvent.REOPEN, RunEvent.PROMPT),
    (RunEvent.REOPEN, RunEvent.PROMPT, RunEvent.TOOL),
    (RunEvent.TOOL, RunEvent.ANSWER, RunEvent.ASK),
    (RunEvent.ANSWER, RunEvent.ASK),
    (RunEvent.OPEN, RunEvent.ANSWER),
    (RunEvent.TOOL, RunEvent.ASK),
)
"""As reports put them together, in the order in which they do."""


@pytest.fixture(autouse=True)
def lane(daemon: Daemon) -> Iterator[None]:
    daemon.add(lanes, id=LANE, agent_id=ADA, thread_id=THREAD)
    yield
    # Runs without wakes and decisions are no runs; none is left behind.
    daemon.write(lambda connection: connection.execute(delete(runs)).rowcount)


def starts() -> list[Run]:
    """A run in every state, with every mark of how far it has come."""
    return [
        Run(RunId("r"), LaneId(LANE), state, 3, LONG if state in LIVE else None, None, *marks)
        for state in RunState
        for marks in product((False, True), repeat=3)
    ]


def put(connection: Connection, run: Run) -> None:
    connection.execute(delete(runs))
    row: dict[str, Any] = {name: int(getattr(run, name)) for name in FLAGS}
    row |= {"lease_until": run.lease_until, "ended_at": 1.0 if run.state in RUN_ENDS else None}
    row |= {"agent_place": 1, "runtime_place": 1, "runtime_id": RUNTIME, "agent_id": ADA, "rank": 0.0, "queued_at": 0.0}
    connection.execute(
        insert(runs).values(id=run.id, number=1, lane_id=LANE, state=run.state.value, attempt=run.attempt, **row)
    )


def by_kernel(run: Run, events: tuple[RunEvent, ...], attempt: int) -> Run | None:
    for event in events:
        # A lease that is there already is never made shorter.
        applied = apply(run, event, attempt, lease_until=run.lease_until or 0.0)
        if applied.refused is not None:
            return None
        run = applied.run
    return run


def by_sql(connection: Connection, run: Run, events: tuple[RunEvent, ...], attempt: int) -> Run | None:
    put(connection, run)
    row = advance(connection, run.id, attempt, events, lease=60.0)
    return None if row is None else read_run(row)


def differences(connection: Connection, events: tuple[RunEvent, ...], attempt: int) -> list[str]:
    return [
        f"{run.state} {[int(getattr(run, name)) for name in FLAGS]}: {expected} is not {found}"
        for run in starts()
        for expected, found in [(by_kernel(run, events, attempt), by_sql(connection, run, events, attempt))]
        if expected != found
    ]


@pytest.mark.parametrize("events", [*((event,) for event in EVENTS), *SEQUENCES], ids="-".join)
def test_what_happens_to_a_run_is_what_the_kernel_says(daemon: Daemon, events: tuple[RunEvent, ...]) -> None:
    possible = [run for run in starts() if by_kernel(run, events, 3) is not None]
    assert possible, "a comparison of nothing with nothing"
    assert daemon.write(lambda connection: differences(connection, events, 3)) == []


@pytest.mark.parametrize("attempt", [2, 4])
def test_another_attempt_changes_nothing(daemon: Daemon, attempt: int) -> None:
    def each_event(connection: Connection) -> list[str]:
        return [difference for event in EVENTS for difference in differences(connection, (event,), attempt)]

    assert daemon.write(each_event) == []


def test_a_run_that_ends_says_when_and_how_and_one_that_goes_on_does_not(daemon: Daemon) -> None:
    running = Run(RunId("r"), LaneId(LANE), RunState.RUNNING, 3, LONG)

    def end(connection: Connection) -> Any:
        put(connection, running)
        return advance(connection, "r", 3, (RunEvent.FAIL,), outcome="run:gave-up", words="It failed.")

    def go_on(connection: Connection) -> Any:
        put(connection, running)
        return advance(connection, "r", 3, (RunEvent.TOOL,), outcome="run:gave-up")

    ended, going = daemon.write(end), daemon.write(go_on)
    assert (ended["outcome"], ended["words"], ended["lease_until"]) == ("run:gave-up", "It failed.", None)
    assert ended["ended_at"] == pytest.approx(ended["now"], abs=60)
    assert (going["outcome"], going["ended_at"], going["lease_until"]) == (None, None, LONG)
