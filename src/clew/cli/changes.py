"""What agents changed, in a line: at the end of a turn, and beside a thread's lanes."""

from clew.cli.client import Server
from clew.cli.marks import page_of
from clew.protocol.views import LaneView, RunView, ThreadPage, ThreadView


def changes_by(run: RunView, page: ThreadPage | None) -> str:
    """What the worktree of the run's lane has that its base does not; empty if nothing."""
    if page is None:
        return ""
    lane = next((each for each in page.lanes if each.agent == run.agent), None)
    return "" if lane is None else changes_in(lane, page.thread)


def changes_in(lane: LaneView, thread: ThreadView) -> str:
    """What a lane changed and how to see it, or where it was merged; empty if it changed nothing."""
    words = changes_of(lane)
    if lane.work is None or lane.work.merged_into is not None or not words:
        return words
    named = "" if thread.assignee == lane.agent else f" --agent {lane.agent}"
    return f"{words}: clew diff {thread.ref}{named}"


def changes_of(lane: LaneView) -> str:
    work = lane.work
    if work is None:
        return ""
    if work.merged_into is not None:
        return f"merged into {work.merged_into}"
    return work.words


def unmerged(server: Server, ref: str) -> list[str]:
    """A line for each agent of a thread whose work is not merged."""
    page = page_of(server, ref)
    if page is None:
        return []
    lanes = [lane for lane in page.lanes if lane.work is not None and lane.work.merged_into is None and lane.work.words]
    return [f"Not merged: {changes_of(lane)} on {lane.branch}, which is kept. {_to_merge(ref, lane)}" for lane in lanes]


def _to_merge(ref: str, lane: LaneView) -> str:
    merge = f"`clew merge {ref} --agent {lane.agent}`."
    if lane.work is not None and lane.work.uncommitted:
        return f'Commit with `clew commit {ref} --agent {lane.agent} -m "…"`, then merge with {merge}'
    return f"Merge with {merge}"
