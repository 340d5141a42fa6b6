"""The queue: limits, aging, order, and what each run waits for."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.ids import RunId
from clew.kernel.lease import Presence
from clew.kernel.queue import (
    LANE_LIMIT,
    Aging,
    LiveRuns,
    QueuedRun,
    QueueFacts,
    RunLimits,
    Waiting,
    WaitReason,
    may_start,
    rank,
    waits_for,
)

LIMITS = RunLimits(agent=2, runtime=4)
AGING = Aging(seconds_per_step=300.0)
IDLE = LiveRuns()


def _queued(queued_at: int = 0, priority: int = 0, name: str = "r") -> QueuedRun:
    return QueuedRun(RunId(name), float(queued_at), priority)


@pytest.mark.case("R01")
@pytest.mark.parametrize(
    ("live", "then"),
    [
        (LiveRuns(lane=0, agent=0, runtime=0), None),
        (LiveRuns(lane=0, agent=1, runtime=3), None),
        (LiveRuns(lane=1, agent=0, runtime=0), WaitReason.LANE_BUSY),
        (LiveRuns(lane=0, agent=2, runtime=0), WaitReason.AGENT_FULL),
        (LiveRuns(lane=0, agent=3, runtime=9), WaitReason.AGENT_FULL),
        (LiveRuns(lane=0, agent=0, runtime=4), WaitReason.RUNTIME_FULL),
        (LiveRuns(lane=2, agent=9, runtime=9), WaitReason.LANE_BUSY),
    ],
)
def test_a_run_starts_only_below_every_limit(live: LiveRuns, then: WaitReason | None) -> None:
    assert may_start(live, LIMITS) is then


@pytest.mark.case("R01")
@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_the_limits_hold_after_every_start(lane: int, agent: int, runtime: int, of_agent: int, of_runtime: int) -> None:
    if may_start(LiveRuns(lane, agent, runtime), RunLimits(of_agent, of_runtime)) is None:
        assert lane + 1 <= LANE_LIMIT
        assert agent + 1 <= of_agent
        assert runtime + 1 <= of_runtime


def test_a_lane_has_one_live_run_and_the_usual_aging_is_five_minutes() -> None:
    assert LANE_LIMIT == 1
    assert Aging() == AGING
    assert LiveRuns() == LiveRuns(lane=0, agent=0, runtime=0)


@pytest.mark.case("R12")
def test_a_step_of_priority_is_worth_its_seconds_and_no_more() -> None:
    low = _queued(queued_at=0, priority=0, name="low")
    assert rank(low, AGING) == 0.0
    assert rank(_queued(queued_at=899, priority=3), AGING) == -1.0
    assert rank(_queued(queued_at=899, priority=3, name="high"), AGING) < rank(low, AGING)
    assert rank(_queued(queued_at=901, priority=3, name="high"), AGING) > rank(low, AGING)


def _priority(run: QueuedRun, now: float, aging: Aging) -> float:
    """The priority of a run, grown by its waiting."""
    return run.priority + (now - run.queued_at) / aging.seconds_per_step


@pytest.mark.case("R12")
@given(
    st.tuples(st.integers(0, 10_000), st.integers(-5, 5)),
    st.tuples(st.integers(0, 10_000), st.integers(-5, 5)),
    st.integers(10_000, 100_000),
)
def test_the_stored_rank_orders_as_the_grown_priority_does_at_any_time(
    one: tuple[int, int], two: tuple[int, int], now: int
) -> None:
    aging = Aging(seconds_per_step=256.0)
    first, second = _queued(*one), _queued(*two)
    by_rank = rank(first, aging) - rank(second, aging)
    by_priority = _priority(second, now, aging) - _priority(first, now, aging)
    assert by_rank == by_priority * 256.0


@pytest.mark.case("R12")
def test_low_priority_work_moves_while_urgent_work_arrives_forever() -> None:
    waiting = [_queued(0, 0, "low")]
    for second in range(0, 10_000, 10):
        waiting.append(_queued(second, 3, f"high-{second:05}"))
        first = min(waiting, key=lambda run: (rank(run, AGING), run.queued_at, run.id))
        waiting.remove(first)
        if first.id == "low":
            break
        waiting.append(_queued(second, 3, f"more-{second:05}"))
    assert first.id == "low"


FACTS = QueueFacts("ada", IDLE, LIMITS, machine="laptop")
GONE = "claude is not on the PATH of the server."


@pytest.mark.case("R12", "R13")
@pytest.mark.parametrize(
    ("facts", "not_before", "reason", "words"),
    [
        (
            replace(FACTS, active=False, missing=GONE),
            130.0,
            WaitReason.PAUSED,
            "ada is paused. Resume it with `clew agent resume ada`.",
        ),
        (
            replace(FACTS, missing=GONE, registered=False, where=Presence.GONE),
            130.0,
            WaitReason.PROGRAM_GONE,
            f"ada cannot be started: {GONE} Clew keeps looking for it; `clew doctor` looks at once.",
        ),
        (
            replace(FACTS, registered=False, where=Presence.GONE),
            130.0,
            WaitReason.NO_RUNTIME,
            "No connected machine has the program of ada; the run waits for one.",
        ),
        (replace(FACTS, where=Presence.GONE), 130.0, WaitReason.NOT_YET, "It is not due yet."),
        (replace(FACTS, why="Its limit is reached."), 100.5, WaitReason.NOT_YET, "Its limit is reached."),
        (
            replace(FACTS, where=Presence.OFFLINE, live=LiveRuns(1), ahead=1),
            100.0,
            WaitReason.MACHINE_AWAY,
            "Machine laptop is offline; the run starts when Clew runs there again.",
        ),
        (
            replace(FACTS, live=LiveRuns(lane=1), ahead=2),
            None,
            WaitReason.LANE_BUSY,
            "Its lane has a live run; it starts when that one ends.",
        ),
        (
            replace(FACTS, live=LiveRuns(agent=3), busy_in=("issue-3", "chat-1"), ahead=2),
            None,
            WaitReason.AGENT_FULL,
            "ada is busy in issue-3, chat-1; it may have 2 runs at once.",
        ),
        (
            replace(FACTS, live=LiveRuns(agent=1), limits=RunLimits(1, 4)),
            None,
            WaitReason.AGENT_FULL,
            "ada is busy; it may have 1 run at once.",
        ),
        (
            replace(FACTS, live=LiveRuns(runtime=5), ahead=2),
            None,
            WaitReason.RUNTIME_FULL,
            "Machine laptop is busy: 5 runs are live there, and no more are allowed.",
        ),
        (replace(FACTS, ahead=1), None, WaitReason.BEHIND, "Queued behind 1 run."),
        (replace(FACTS, ahead=3), None, WaitReason.BEHIND, "Queued behind 3 runs."),
        (FACTS, None, WaitReason.NEXT, "It is next, and starts within seconds."),
    ],
)
def test_the_queue_says_what_each_waits_for(
    facts: QueueFacts, not_before: float | None, reason: WaitReason, words: str
) -> None:
    waiting = waits_for(facts, not_before, now=100.0)
    until = not_before if reason is WaitReason.NOT_YET else None
    assert (waiting, waiting.words) == (Waiting(reason, facts, until), words)
    assert waiting.needs_person is (reason in (WaitReason.PAUSED, WaitReason.PROGRAM_GONE))


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_step_of_priority_is_worth_some_waiting(seconds: float) -> None:
    with pytest.raises(ValueError, match=rf"^the seconds per step of priority must be above 0 \(got {seconds}\)$"):
        Aging(seconds)
    assert Aging(0.5).seconds_per_step == 0.5
