"""The stage of an issue follows from its runs and from what became of its work."""

import pytest

from clew.kernel import RunState
from clew.protocol.stage import LaneFacts, Stage, stage_of

DONE = RunState.SUCCEEDED


@pytest.mark.parametrize(
    ("lanes", "stage"),
    [
        ((), Stage.OPEN),
        ((LaneFacts(RunState.QUEUED),), Stage.WORKING),
        ((LaneFacts(RunState.RUNNING),), Stage.WORKING),
        ((LaneFacts(RunState.QUEUED, held_for_person=True),), Stage.NEEDS_YOU),
        ((LaneFacts(RunState.WAITING),), Stage.NEEDS_YOU),
        ((LaneFacts(RunState.FAILED, unmerged=True),), Stage.NEEDS_YOU),
        ((LaneFacts(DONE),), Stage.READY),
        ((LaneFacts(RunState.CANCELLED),), Stage.OPEN),
        ((LaneFacts(RunState.CANCELLED, unmerged=True),), Stage.READY),
        ((LaneFacts(DONE, merged=True),), Stage.MERGED),
        # A reviewer without changes of its own does not keep a merged issue from being merged.
        ((LaneFacts(DONE, merged=True), LaneFacts(DONE)), Stage.MERGED),
        ((LaneFacts(DONE, merged=True), LaneFacts(DONE, unmerged=True)), Stage.READY),
        ((LaneFacts(DONE, merged=True), LaneFacts(RunState.RUNNING)), Stage.WORKING),
        ((LaneFacts(RunState.RUNNING), LaneFacts(RunState.WAITING)), Stage.NEEDS_YOU),
    ],
)
def test_an_open_issue(lanes: tuple[LaneFacts, ...], stage: Stage) -> None:
    assert stage_of(True, lanes) is stage


def test_a_closed_issue_is_merged_or_closed() -> None:
    assert stage_of(False, [LaneFacts(DONE, merged=True)]) is Stage.MERGED
    assert stage_of(False, [LaneFacts(DONE, unmerged=True)]) is Stage.CLOSED
    assert stage_of(False, [LaneFacts(RunState.RUNNING)]) is Stage.CLOSED


@pytest.mark.parametrize("state", RunState)
def test_every_state_of_a_run_has_a_stage(state: RunState) -> None:
    assert stage_of(True, [LaneFacts(state)]) in Stage
