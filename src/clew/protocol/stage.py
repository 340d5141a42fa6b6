"""The stage of an issue in words people know. It follows from what happened in it; nobody sets it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from clew.kernel import RunState


class Stage(StrEnum):
    OPEN = "open"
    WORKING = "working"
    NEEDS_YOU = "needs you"
    READY = "ready for review"
    MERGED = "merged"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """One agent in the issue: its newest run, whether that waits for a person, and what became of its work."""

    run: RunState | None = None
    held_for_person: bool = False
    merged: bool = False
    unmerged: bool = False


_BY_RUN: Mapping[RunState, Stage] = {
    RunState.QUEUED: Stage.WORKING,
    RunState.CLAIMED: Stage.WORKING,
    RunState.OPENING: Stage.WORKING,
    RunState.RUNNING: Stage.WORKING,
    RunState.STOPPING: Stage.WORKING,
    RunState.WAITING: Stage.NEEDS_YOU,
    RunState.FAILED: Stage.NEEDS_YOU,
    RunState.LOST: Stage.NEEDS_YOU,
    RunState.SUCCEEDED: Stage.READY,
    RunState.CANCELLED: Stage.OPEN,
}
"""By the newest run of a lane, unless its work says more."""

_FIRST = (Stage.NEEDS_YOU, Stage.WORKING, Stage.READY, Stage.MERGED, Stage.OPEN)
"""An issue with several lanes shows the first of these that one of them is in."""


def stage_of(is_open: bool, lanes: Sequence[LaneFacts]) -> Stage:
    merged = any(lane.merged for lane in lanes) and not any(lane.unmerged for lane in lanes)
    if not is_open:
        return Stage.MERGED if merged else Stage.CLOSED
    stages = {_of_lane(lane) for lane in lanes}
    if merged:
        # Another agent's review is done with the merge, too.
        stages.discard(Stage.READY)
    return next((stage for stage in _FIRST if stage in stages), Stage.OPEN)


def _of_lane(lane: LaneFacts) -> Stage:
    if lane.run is None:
        return Stage.OPEN
    if lane.run is RunState.QUEUED and lane.held_for_person:
        return Stage.NEEDS_YOU
    stage = _BY_RUN[lane.run]
    if stage in (Stage.READY, Stage.OPEN):
        return Stage.MERGED if lane.merged else Stage.READY if lane.unmerged else stage
    return stage
