"""An isolated heartbeat dragged all earlier heartbeats along.

The failing sequence, as OpenClaw had it:
  1. a heartbeat is set to be isolated: every tick should begin with a clean context;
  2. the key under which context is kept is derived from the key under which replies are routed;
  3. the second is the same for every tick, so the first is too, and each prompt carries all earlier ticks.

Here a route and a scope are two types. A tick keeps its route and has a scope of its own.
"""

from clew.kernel import LaneScope, Outcome, RouteKey, RouteKind, RunId, RunScope, Session, WakeReason, decide, isolated
from examples.kit import LANE, session, show, situation, wake

route = RouteKey(RouteKind.CHANNEL, "ops")
earlier: list[Session] = []
for tick in range(1, 4):
    run = RunId(f"tick-{tick}")
    scope = isolated(LaneScope(LANE), run)
    known = situation(earlier, wake(WakeReason.TIMER, tick), head=tick, scope=scope, run=run)
    plan = decide(known)
    show(f"Tick {tick}, replies to {route.kind} {route.address}:", plan)
    assert plan.outcome is Outcome.BLANK
    assert len(plan.catch_up) == 0
    assert isolated(scope, RunId("another")) == scope == RunScope(LANE, run)
    earlier.append(session(tick, scope=scope, seen=tick))

plan = decide(situation([session(9, seen=2)], wake(WakeReason.TIMER, 5), head=5))
show("A shared heartbeat, for comparison, goes on in its session and is told only what is new:", plan)
assert (plan.outcome, plan.catch_up.after) == (Outcome.RESUME, 2)
