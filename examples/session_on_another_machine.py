"""A session made on one machine was resumed on another.

The failing sequence, as Multica had it:
  1. a run on the laptop makes a session; the lane's pointer keeps its id;
  2. the agent is moved to the server, and the next run is claimed there;
  3. the pointer's id is handed to the server's agent, which has never heard of it.

Here a session carries the runtime it was made on, and only the run's own runtime may resume it.
"""

from dataclasses import replace

from clew.kernel import Archive, Directory, EntrySeq, Outcome, PlaceFacts, WakeReason, decide
from examples.kit import ABLE, HOME, ON_SERVER, SERVER, WORKTREE, session, show, situation, wake

comment = wake(WakeReason.COMMENT, 5)
second = replace(WORKTREE, machine=SERVER, directory=Directory("/srv/server/issue-12"))
on_server = PlaceFacts(agent_home=HOME, remembered=WORKTREE, prepared=second)

plan = decide(situation([session(1)], comment, head=5, machine=SERVER, runtime=ON_SERVER, place=on_server))
show("The run is claimed on the server, and there is no archive:", plan)
assert plan.outcome is Outcome.RESEED
assert plan.native_id != "native-1"

archived = replace(session(1), archive=Archive("coder/1", EntrySeq(3), turns=2))
restoring = replace(ABLE, archive=True, archive_formats=frozenset({"coder/1"}), restore_keeps_id=True)
known = situation([archived], comment, head=5, machine=SERVER, runtime=ON_SERVER, place=on_server)
plan = decide(replace(known, here=replace(known.here, capabilities=restoring)))
show("The same with an archive that the server can restore:", plan)
assert plan.outcome is Outcome.TRANSFER

back = [session(1, seen=3), session(2, runtime=ON_SERVER, seen=5)]
plan = decide(situation(back, wake(WakeReason.COMMENT, 6), head=6))
show("Back on the laptop: its own session goes on and is told what happened meanwhile:", plan)
assert (plan.outcome, plan.session) == (Outcome.RESUME, back[0])
assert (plan.catch_up.after, plan.catch_up.through) == (3, 6)
