"""A row that cannot be read holds the run it belongs to and is named; other runs do not wait for it."""

from typing import Any

import pytest
from sqlalchemy import Table

from clew.kernel import (
    Outcome,
)
from clew.protocol.orders import ClaimRequest
from clew.store.operations.claim import claim
from clew.store.schema.tables import agents, journal, lanes, runs, runtimes, sessions, threads, wakes
from tests.store.kit import (
    ADA,
    BOB,
    ELSEWHERE,
    LANE,
    OTHER_THREAD,
    RUNTIME,
    Daemon,
)

# ---------------------------------------------------------------- rows that cannot be read

NO_JSON = "{not json"


@pytest.mark.case("S11", "L09")
@pytest.mark.parametrize(
    ("table", "where", "values", "named"),
    [
        (agents, {"id": ADA}, {"policy": NO_JSON}, "The row ada of agents cannot be read (policy)"),
        (agents, {"id": ADA}, {"policy": '{"reset": {"reasons": ["whim"]}}'}, "The row ada of agents"),
        (agents, {"id": ADA}, {"home": "not/absolute"}, "The row ada of agents cannot be read (home)"),
        (sessions, {"native_id": "n-1"}, {"also": '["one"]'}, "of sessions cannot be read (its values)"),
        (sessions, {"native_id": "n-1"}, {"state": "sleepy"}, "of sessions cannot be read (its values)"),
        (sessions, {"native_id": "n-1"}, {"directory": "."}, "of sessions cannot be read (its values)"),
        (lanes, {"id": LANE}, {"floor_kept": "[true]"}, "of lanes cannot be read (floor_kept)"),
        (wakes, {"state": "pending", "lane_id": LANE}, {"reason": "whim"}, "of wakes cannot be read (its values)"),
        (wakes, {"state": "pending", "lane_id": LANE}, {"route": '"x"'}, "of wakes cannot be read (its values)"),
        (wakes, {"state": "pending", "lane_id": LANE}, {"entry": 99}, "of wakes cannot be read (entry)"),
        (journal, {"seq": 3}, {"author_kind": "ghost"}, "The row issue-7/3 of journal cannot be read"),
    ],
)
def test_a_lane_with_a_row_that_cannot_be_read_says_which_and_stops_no_other(
    daemon: Daemon, table: Table, where: dict[str, Any], values: dict[str, Any], named: str
) -> None:
    daemon.accept()
    daemon.serve("n-1")
    daemon.accept()
    # Behind it, also where both came at the same moment.
    daemon.accept(agent=BOB, thread=OTHER_THREAD, priority=-1)
    (before,) = [{name: getattr(row, name) for name in values} for row in daemon.rows(table, *where, **where)]
    daemon.put(table, where, **values)
    order = daemon.claim_one()
    assert (order.agent.id, order.thread.id) == (BOB, OTHER_THREAD)
    (held,) = daemon.rows(runs, state="queued")
    assert (held.lane_id, held.hold, held.hold_code) == (LANE, "person", "store:unreadable")
    assert named in held.words
    assert "clew db check" in held.words
    # Mended, the lane goes on with the next word; nothing was lost meanwhile.
    mended = dict(where, **{name: value for name, value in values.items() if name in where})
    daemon.put(table, mended, **before)
    daemon.accept()
    order = daemon.claim_one()
    assert (order.lane, len(order.wakes), order.plan.outcome) == (LANE, 2, Outcome.RESUME)


@pytest.mark.case("S11")
def test_a_runtime_whose_capabilities_cannot_be_read_stops_no_other(daemon: Daemon) -> None:
    daemon.accept()
    daemon.put(agents, {"id": BOB}, runtime_id=ELSEWHERE)
    daemon.accept(agent=BOB)
    able = daemon.rows(runtimes, id=RUNTIME)[0].capabilities
    daemon.put(runtimes, {"id": RUNTIME}, capabilities=NO_JSON)
    both = ClaimRequest("daemon-1", (RUNTIME, ELSEWHERE), most=2)
    (order,) = daemon.write(lambda connection: claim(connection, both))
    assert order.agent.id == BOB
    (held,) = daemon.rows(runs, state="queued")
    assert f"The row {RUNTIME} of runtimes cannot be read (capabilities)" in held.words
    daemon.put(runtimes, {"id": RUNTIME}, capabilities=able)


def test_a_queue_full_of_unreadable_lanes_is_passed_in_one_claim(daemon: Daemon) -> None:
    for number in range(5):
        daemon.add(threads, id=f"t-{number}", kind="issue", created_at=0.0)
        daemon.accept(thread=f"t-{number}")
    daemon.accept(agent=BOB)
    before = daemon.rows(agents, id=ADA)[0].policy
    daemon.put(agents, {"id": ADA}, policy=NO_JSON)
    assert daemon.claim_one().agent.id == BOB
    daemon.put(agents, {"id": ADA}, policy=before)
