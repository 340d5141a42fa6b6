"""What agents changed, in a line: at the end of a turn, and beside a thread's lanes."""

from clew.cli.answers import read
from clew.cli.client import NoAnswer, NotRunning, Refused, Server, thread_part
from clew.protocol.views import LaneView, RunView, ThreadPage


def changes_after(server: Server, run: RunView) -> str:
    """What the worktree of the run's lane has that its base does not; empty if nothing."""
    try:
        page = read(ThreadPage, server.get(f"/threads/{thread_part(run.thread)}", {"limit": 1}))
    except (NotRunning, NoAnswer, Refused):
        # The turn is over and its reply is shown; this line is left out.
        return ""
    lane = next((each for each in page.lanes if each.agent == run.agent), None)
    if lane is None or not (words := changes_of(lane)):
        return ""
    named = "" if page.thread.assignee in (None, run.agent) else f" --agent {run.agent}"
    return f"{words}: clew diff {page.thread.ref}{named}"


def changes_of(lane: LaneView) -> str:
    work = lane.work
    if work is None:
        return ""
    if work.merged_into is not None:
        return f"merged into {work.merged_into}"
    return work.words
