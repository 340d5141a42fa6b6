"""Words within a turn are prompts, too: where nobody knows whether the agent took them, its own store is asked."""

from collections.abc import Callable

import pytest

from clew.kernel import AdmissionPolicy, Evidence, Outcome, Overlap, RunState
from clew.protocol.orders import Order
from clew.protocol.reports import Completed, Steer, Steered, read_prompted, read_steer
from clew.protocol.wakes import Accepted, Said
from clew.store.operations.evidence import attest_by_person
from clew.store.operations.leases import end_orphans
from clew.store.operations.wakes import accept_wake
from clew.store.schema.tables import runs, sessions, wakes
from tests.store.kit import LANE, PERSON, RUNTIME, STOPPED, TRANSIENT, Daemon, bodies, request, said_in

UNSENT, TAKEN, CUT_OFF = Evidence.UNSENT, Evidence.TAKEN, Evidence.CUT_OFF
FINISHED, UNKNOWN = Evidence.FINISHED, Evidence.UNKNOWN


def steer(daemon: Daemon, text: str) -> Accepted:
    asked = request(said=Said(PERSON, text, len(text)))
    return daemon.write(lambda connection: accept_wake(connection, asked, AdmissionPolicy(overlap=Overlap.STEER)))


def telling(daemon: Daemon) -> tuple[Order, Steer]:
    """A run that was told the first entry, and is just being told the second."""
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    steer(daemon, "two")
    found = daemon.report(order, steers=True).steer
    assert found is not None
    return order, found


def restart(daemon: Daemon, _: Order) -> None:
    daemon.write(lambda connection: end_orphans(connection, daemon.by, [RUNTIME]))


def state(daemon: Daemon, wake: str) -> tuple[str, str | None]:
    row = daemon.wake(wake)  # type: ignore[arg-type]
    return row.state, row.run_id


def seen(daemon: Daemon) -> tuple[int, int]:
    (row,) = daemon.rows(sessions)
    return row.seen, row.turns


@pytest.mark.case("P20", "W13")
def test_what_is_told_within_the_turn_is_on_record_before_it_goes_out(daemon: Daemon) -> None:
    order, found = telling(daemon)
    kept = read_steer(daemon.run(order.run).steer)
    assert (kept.id, kept.wakes, kept.through) == (found.id, (found.wakes[0].id,), 2)
    # The same while it is being told, however often it is asked for.
    again = daemon.report(order, steers=True).steer
    assert again == found
    daemon.report(order, steered=Steered(True, found.through))
    assert daemon.run(order.run).steer is None
    steer(daemon, "three")
    later = daemon.report(order, steers=True).steer
    assert later is not None
    assert later.id > found.id


ENDS: dict[str, Callable[[Daemon, Order], object]] = {
    "restarted": restart,
    "failed": lambda daemon, order: daemon.finish(order, TRANSIENT),
    "stopped": lambda daemon, order: daemon.finish(order, STOPPED),
    "completed": lambda daemon, order: daemon.finish(order, Completed("done")),
}


@pytest.mark.case("P19", "P20", "W13")
@pytest.mark.parametrize("evidence", [UNSENT, TAKEN, CUT_OFF, FINISHED])
@pytest.mark.parametrize("how", ENDS)
def test_words_of_which_nobody_said_whether_they_were_taken_are_asked_for(
    daemon: Daemon, how: str, evidence: Evidence
) -> None:
    order, found = telling(daemon)
    first, second = order.wakes[0].id, found.wakes[0].id
    ENDS[how](daemon, order)
    assert state(daemon, second) == ("pending", None)
    daemon.put(runs, {"state": "queued"}, not_before=None)
    daemon.put(wakes, not_before=None)
    asks = daemon.claim_one()
    (question,) = asks.questions
    assert question.steered is not None
    assert (question.run, question.steered.id) == (order.run, found.id)
    # Of the prompt itself it is known, unless its daemon was gone.
    assert (question.prompt is None) is (how != "restarted")
    assert daemon.answer(asks, CUT_OFF, steered=evidence).taken
    assert daemon.run(order.run).steer is None
    taken = evidence is not UNSENT
    prompt_seen, turns = (1, 1) if how == "completed" else (1, 0)
    assert seen(daemon) == (2 if taken else prompt_seen, turns)
    if how == "completed":
        assert state(daemon, first) == ("served", order.run)
        if taken:
            # The turn that took it came to its end.
            assert state(daemon, second) == ("served", order.run)
            assert daemon.wake(second).code == "served:read-back"
            assert (daemon.run(asks.run).outcome, daemon.claim()) == ("run:read-back", ())
            return
    after = daemon.claim_one()
    assert after.plan.outcome is Outcome.RESUME
    told = ["done"] if how == "completed" else []
    assert bodies(after) == (told if taken else ["two", *told])
    assert (2 in after.plan.already_told) is taken


@pytest.mark.case("P19", "P20", "W13")
def test_words_that_nobody_can_tell_of_hold_the_lane(daemon: Daemon) -> None:
    order, found = telling(daemon)
    daemon.finish(order, Completed("done"))
    asks = daemon.claim_one()
    daemon.answer(asks, None, steered=UNKNOWN)
    run = daemon.run(order.run)
    assert (run.evidence, run.evidence_asked, read_steer(run.steer).id) == ("finished", 1, found.id)
    waiting = daemon.run(asks.run)
    assert (waiting.state, waiting.hold_code, waiting.not_before is None) == ("queued", "prompt:unheard", False)
    assert daemon.claim() == ()


@pytest.mark.case("P20")
@pytest.mark.parametrize("steered", [UNSENT, TAKEN, UNKNOWN])
def test_words_within_a_turn_that_never_began_were_not_taken(daemon: Daemon, steered: Evidence) -> None:
    order, found = telling(daemon)
    restart(daemon, order)
    daemon.answer(daemon.claim_one(), UNSENT, steered=steered)
    assert (daemon.run(order.run).steer, seen(daemon)) == (None, (0, 0))
    after = daemon.claim_one()
    assert (after.plan.already_told, bodies(after)) == ((), ["one", "two"])
    assert found.wakes[0].id in [wake.id for wake in after.wakes]


@pytest.mark.case("C35", "W07", "W13")
@pytest.mark.parametrize("settled", [True, False], ids=["taken", "not-settled"])
def test_a_turn_that_was_told_more_and_finished_serves_all_of_it(daemon: Daemon, settled: bool) -> None:
    order, found = telling(daemon)
    if settled:
        daemon.report(order, steered=Steered(True, found.through))
        assert read_prompted(daemon.run(order.run).prompt).wakes == (order.wakes[0].id, found.wakes[0].id)
    restart(daemon, order)
    later = daemon.say("three")
    asks = daemon.claim_one()
    daemon.answer(asks, FINISHED, "the answer", steered=FINISHED)
    assert state(daemon, order.wakes[0].id) == state(daemon, found.wakes[0].id) == ("served", order.run)
    assert daemon.database.read(said_in)[3:] == [(4, "the answer")]
    assert seen(daemon) == (2, 1)
    after = daemon.claim_one()
    assert ([wake.id for wake in after.wakes], bodies(after)) == ([later.wake], ["three", "the answer"])


@pytest.mark.case("L02", "W13")
@pytest.mark.parametrize("taken", [True, False])
def test_an_answer_that_was_lost_settles_nothing_that_came_with_it(daemon: Daemon, taken: bool) -> None:
    """What came meanwhile is asked for with the word of what became of the last: said again, that word is about the
    last one, and not about what was asked for with it."""
    order, found = telling(daemon)
    third = steer(daemon, "three")
    first = daemon.report(order, steered=Steered(taken, found.through), steers=True)
    assert first.steer is not None
    again = daemon.report(order, steered=Steered(taken, found.through), steers=True)
    assert again.steer == first.steer
    assert daemon.wake(third.wake).code == "carried:steering"
    assert daemon.run(order.run).told == (2 if taken else 1)


@pytest.mark.case("P20", "W13")
@pytest.mark.parametrize("taken", [True, False])
def test_a_person_decides_of_words_within_a_turn(daemon: Daemon, taken: bool) -> None:
    daemon.put_capability("hears", False)
    order, found = telling(daemon)
    daemon.finish(order, Completed("done"))
    assert daemon.claim() == ()
    assert daemon.write(lambda connection: attest_by_person(connection, LANE, taken)) == 1
    if taken:
        assert state(daemon, found.wakes[0].id) == ("served", order.run)
        assert seen(daemon) == (2, 1)
    else:
        assert state(daemon, found.wakes[0].id) == ("pending", None)
        assert seen(daemon) == (1, 1)
        daemon.put(runs, {"state": "queued"}, hold="", not_before=None)
        assert bodies(daemon.claim_one()) == ["two", "done"]


@pytest.mark.case("P20", "W13")
@pytest.mark.parametrize("taken", [True, False])
def test_a_person_decides_of_a_prompt_and_of_the_words_within_its_turn(daemon: Daemon, taken: bool) -> None:
    daemon.put_capability("hears", False)
    order, found = telling(daemon)
    restart(daemon, order)
    assert daemon.claim() == ()
    assert daemon.write(lambda connection: attest_by_person(connection, LANE, taken)) == 1
    daemon.put(runs, {"state": "queued"}, hold="", not_before=None)
    after = daemon.claim_one()
    assert after.questions == ()
    assert (after.plan.already_told, bodies(after)) == (((1, 2), []) if taken else ((), ["one", "two"]))
    assert daemon.run(order.run).state == RunState.LOST.value
    assert {wake.id for wake in after.wakes} == {order.wakes[0].id, found.wakes[0].id}
