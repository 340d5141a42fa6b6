"""'The latest session' belonged to someone else.

The failing sequence, as emdash had it:
  1. two conversations of one agent run in one directory;
  2. one of them is reopened as "the latest session of this directory";
  3. the latest is the other one's, and its conversation goes on in the wrong place.

Here a session belongs to a lane. There is no "latest": a stranger's session is no candidate, however new.
"""

from clew.kernel import (
    AgentId,
    Landing,
    NativeId,
    Outcome,
    Probe,
    ProbeKind,
    ThreadId,
    WakeReason,
    decide,
    lane_id,
    settle,
    verify,
)
from examples.kit import WORKTREE, session, show, situation, wake

other_lane = lane_id(AgentId("ada"), ThreadId("issue-13"))
mine, strangers = session(1), session(2, lane=other_lane)

plan = decide(situation([strangers, mine], wake(WakeReason.COMMENT, 4), head=4))
show("The newest session in this directory is another conversation's:", plan)
assert (plan.outcome, plan.session) == (Outcome.RESUME, mine)

alone = decide(situation([strangers], wake(WakeReason.COMMENT, 4), head=4))
show("This conversation has no session of its own:", alone)
assert alone.outcome is Outcome.RESEED
assert alone.native_id not in ("native-1", "native-2")

landed = Landing(NativeId("native-2"), WORKTREE.directory)
refused = verify(settle(plan, Probe(ProbeKind.FOUND_HERE)), landed)
print("\nThe agent was asked for native-1 and opened the latest one instead:")
print("\n".join(f"  {difference.weight}: {difference.words}" for difference in refused.differences))
assert not refused.may_continue
