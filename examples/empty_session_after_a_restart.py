"""After an idle stop or a restart the next message went to an empty session.

The failing sequence, as t3code had it:
  1. a session is idle; its process is stopped, or everything is restarted;
  2. the next message asks the agent for the session, and the agent is not up yet: an error;
  3. the error is taken for "no such session", a new one is started, and the message lands in it.

Here only a structured sign that the session is gone counts as gone; everything else waits. And nothing
is sent before the agent has named the session it opened, with its history.
"""

from clew.kernel import Landing, Outcome, Probe, ProbeKind, WakeReason, decide, settle, verify
from examples.kit import WORKTREE, session, show, situation, wake

planned = decide(situation([session(1)], wake(WakeReason.CHAT, 4), head=4))
show("The next message after a restart:", planned)
assert planned.outcome is Outcome.RESUME
assert planned.needs_probe

down = settle(planned, Probe(ProbeKind.UNREACHABLE, detail="connection refused"))
show("The agent is not up yet:", down)
assert (down.outcome, down.native_id) == (Outcome.HOLD, "native-1")

hearsay = settle(planned, Probe(ProbeKind.MISSING, signal="500", detail="internal error: session not found"))
show("An error whose text merely says 'not found':", hearsay)
assert hearsay.outcome is Outcome.HOLD

gone = settle(planned, Probe(ProbeKind.MISSING, signal="404"))
show("The agent confirms, by its declared sign, that the session is gone:", gone)
assert gone.outcome is Outcome.RESEED

found = settle(planned, Probe(ProbeKind.FOUND_HERE))
assert planned.native_id is not None
empty = verify(found, Landing(planned.native_id, WORKTREE.directory, turns=0))
print("\nThe agent opens the right id, but without its history:")
print("\n".join(f"  {difference.weight}: {difference.words}" for difference in empty.differences))
assert not empty.may_continue
