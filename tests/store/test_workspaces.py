"""A workspace that was made again: the lane keeps the message until its agent was told."""

import pytest

from clew.kernel import LaneId, NoticeReason
from clew.store.operations.workspaces import clear_remade, keep_remade
from clew.store.schema.tables import lanes
from tests.store.kit import LANE, Daemon, in_project

WORDS = "/srv/work/maze was gone and was made again."


@pytest.mark.case("D16")
def test_every_claim_of_the_lane_is_told_until_it_is_cleared(daemon: Daemon) -> None:
    in_project(daemon)
    daemon.say("begin")
    first = daemon.claim_one()
    assert (first.plan.situation.place.remade, first.plan.notices) == (None, ())
    daemon.write(lambda connection: keep_remade(connection, first.lane, f"{WORDS}\0"))
    assert daemon.prompt(first, "n-1").may_prompt
    daemon.finish(first)
    # Where the remembered place serves, and where earlier ones are looked at.
    for forgets in (False, True):
        if forgets:
            daemon.put(lanes, {"id": LANE}, workspace_id=None)
        daemon.say("go on")
        order = daemon.serve("n-1")
        (notice,) = order.plan.notices
        assert notice.reason is NoticeReason.WORKSPACE_REMADE
        assert notice.words.startswith(WORDS)
        assert "\0" not in notice.words
    daemon.write(lambda connection: clear_remade(connection, LaneId(LANE)))
    daemon.say("and on")
    assert daemon.claim_one().plan.notices == ()
