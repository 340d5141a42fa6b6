"""Adoption: a session that a person already has continues under a thread."""

from dataclasses import replace

import pytest

from clew.kernel import AgentId, Cursor, Directory, EntrySeq, NativeId, Outcome, RuntimeId, ThreadId
from clew.protocol.reports import NewSession
from clew.store.faults import NoSuchAgent, NoSuchRuntime, NoSuchThread, SessionHeld
from clew.store.operations.sessions import Adopted, Adoption, adopt_session
from clew.store.schema.tables import lanes, sessions
from tests.store.kit import ADA, BOB, ELSEWHERE, LANE, OTHER_THREAD, RUNTIME, THREAD, Daemon, bodies

MINE = Adoption(ADA, THREAD, RUNTIME, NewSession(Cursor(1, NativeId("n-mine")), Directory("/srv/ada"), mode="read"), 7)


def adopt(daemon: Daemon, adoption: Adoption) -> Adopted:
    return daemon.write(lambda connection: adopt_session(connection, adoption))


def test_an_adopted_session_goes_on_with_the_next_wake(daemon: Daemon) -> None:
    adopted = adopt(daemon, MINE)
    assert (adopted.generation, adopted.lane, adopted.repeated) == (1, LANE, False)
    (kept,) = daemon.rows(sessions)
    assert (kept.native_id, kept.turns, kept.run_id, kept.adopted_at is not None) == ("n-mine", 7, None, True)
    daemon.say("go on")
    order = daemon.claim_one()
    assert (order.plan.outcome, order.session, bodies(order)) == (Outcome.RESUME, adopted.session, ["go on"])


def test_an_adopted_session_is_told_of_a_thread_what_came_after_it_began(daemon: Daemon) -> None:
    for text in ("one", "two"):
        daemon.say(text)
    daemon.serve("n-1")
    adopted = adopt(daemon, replace(MINE, session=replace(MINE.session, begins=EntrySeq(2))))
    assert (adopted.generation, daemon.sessions()[-1]) == (2, (2, "n-mine", "healthy"))
    daemon.say("three")
    order = daemon.claim_one()
    assert (order.plan.native_id, bodies(order)) == ("n-mine", ["done", "three"])


def test_a_new_lane_works_where_its_session_is(daemon: Daemon) -> None:
    adopt(daemon, replace(MINE, runtime=ELSEWHERE))
    daemon.say("go on")
    assert daemon.claim() == ()
    order = replace(daemon, runtime=ELSEWHERE).claim_one()
    assert (order.plan.outcome, order.plan.native_id) == (Outcome.RESUME, "n-mine")


def test_adopting_twice_is_adopting_once(daemon: Daemon) -> None:
    first, again = adopt(daemon, MINE), adopt(daemon, MINE)
    assert (again.session, again.generation, again.repeated) == (first.session, 1, True)
    assert len(daemon.rows(sessions)) == 1


@pytest.mark.case("S03")
@pytest.mark.parametrize("other", [replace(MINE, thread=OTHER_THREAD), replace(MINE, agent=BOB)])
def test_a_session_that_another_lane_has_stays_there(daemon: Daemon, other: Adoption) -> None:
    adopt(daemon, MINE)
    before = daemon.rows(sessions), daemon.rows(lanes)
    with pytest.raises(SessionHeld, match="Session n-mine belongs to thread issue-7, generation 1"):
        adopt(daemon, other)
    assert (daemon.rows(sessions), daemon.rows(lanes)) == before


@pytest.mark.case("S03")
def test_of_many_who_adopt_one_session_at_once_one_gets_it(daemon: Daemon) -> None:
    threads = (THREAD, OTHER_THREAD)
    asked = [replace(MINE, thread=threads[number % 2]) for number in range(8)]
    answers = [
        daemon.database.write(lambda connection, each=each: adopt_session(connection, each))  # type: ignore[misc]
        for each in asked
    ]
    faults = [answer.exception(30) for answer in answers]
    assert sorted(type(fault).__name__ for fault in faults) == ["NoneType"] * 4 + ["SessionHeld"] * 4
    assert len(daemon.rows(sessions)) == 1


def test_what_is_not_there_is_named_and_nothing_is_kept(daemon: Daemon) -> None:
    with pytest.raises(NoSuchRuntime, match="There is no runtime rt-none"):
        adopt(daemon, replace(MINE, runtime=RuntimeId("rt-none")))
    with pytest.raises(NoSuchAgent, match="There is no agent nobody"):
        adopt(daemon, replace(MINE, agent=AgentId("nobody")))
    with pytest.raises(NoSuchThread, match="There is no thread nowhere"):
        adopt(daemon, replace(MINE, thread=ThreadId("nowhere")))
    assert daemon.rows(lanes) == []
