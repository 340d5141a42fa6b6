"""A timer resumed a project's session in the agent's home directory.

The failing sequence, as Paperclip had it:
  1. an issue of a project is worked on; its session is made in the project's worktree;
  2. a timer fires: the wake names no project, so the run falls back to the agent's home;
  3. the saved session is resumed there, and the agent edits files in the wrong place.

Here the directory belongs to the lane. A wake has no say in it, and a session made elsewhere is never
resumed where it is not.
"""

from clew.kernel import Outcome, PlaceFacts, WakeReason, decide
from examples.kit import HOME, WORKTREE, session, show, situation, wake

# A timer wakes the lane, and nobody says which project it belongs to: the lane remembers.
remembers = PlaceFacts(agent_home=HOME, remembered=WORKTREE)
plan = decide(situation([session(1)], wake(WakeReason.TIMER, 4), head=4, place=remembers))
show("The timer fires on the project's lane:", plan)
assert plan.outcome is Outcome.RESUME
assert plan.workspace == WORKTREE

# Even a memory that already says "home" is mended by where the lane's earlier runs worked.
forgot = PlaceFacts(agent_home=HOME, remembered=HOME, earlier=(HOME, WORKTREE))
plan = decide(situation([session(1)], wake(WakeReason.TIMER, 4), head=4, place=forgot))
show("The memory was overwritten with the agent's home:", plan)
assert plan.workspace == WORKTREE

# And a session that was made at home is brought into the project with its history, not run at home.
plan = decide(situation([session(1, workspace=HOME)], wake(WakeReason.COMMENT, 4), head=4))
show("A session made at home, and a project linked later:", plan)
assert plan.outcome is Outcome.FORK
