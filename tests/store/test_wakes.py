"""Accepting wakes: durable, once, in order, and with a reason for each one that is skipped."""

from collections.abc import Callable
from concurrent.futures import wait
from functools import partial
from threading import Event
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, update

from clew.kernel import Origin, OriginKind, Overlap, WakeReason, WakeState, lane_id, own_thread
from clew.kernel.ids import subject_thread
from clew.protocol.wakes import Accepted, Said, WakeRequest
from clew.store.engine.database import Database
from clew.store.engine.dialect import now
from clew.store.engine.statement import POSTGRESQL
from clew.store.faults import KeyConflict, NoSuchAgent, NoSuchThread, Unreadable
from clew.store.operations.ids import new_id
from clew.store.operations.wakes import accept_wake
from clew.store.schema.tables import agents, lanes, runs, threads, wakes
from tests.store.kit import ADA, BOB, OTHER_THREAD, PERSON, RUNTIME, THREAD, furnish, queued, request, said_in, states


def _accept_one(connection: Connection, asked: WakeRequest) -> Accepted:
    return accept_wake(connection, asked)


Accept = Callable[[WakeRequest], Accepted]


@pytest.fixture
def accept(database: Database) -> Accept:
    database.write(furnish).result(30)

    def accepting(asked: WakeRequest) -> Accepted:
        return database.write(lambda connection: accept_wake(connection, asked)).result(30)

    return accepting


def test_comments_are_kept_in_order_and_one_run_waits_for_all_of_them(accept: Accept, database: Database) -> None:
    answers = [accept(request(said=Said(PERSON, text))) for text in ("one", "two", "three")]
    assert [answer.entry for answer in answers] == [1, 2, 3]
    assert {(answer.state, answer.code) for answer in answers} == {(WakeState.PENDING, "accepted:lane-free")}
    assert database.read(said_in) == [(1, "one"), (2, "two"), (3, "three")]
    (run,) = database.read(queued)
    assert (run.lane_id, run.agent_id, run.runtime_id) == (lane_id(ADA, THREAD), ADA, RUNTIME)


@pytest.mark.case("W03")
def test_the_same_key_twice_is_one_wake(accept: Accept, database: Database) -> None:
    first = accept(request(dedupe_key="k"))
    again = accept(request(dedupe_key="k"))
    assert (again.wake, again.entry, again.repeated) == (first.wake, first.entry, True)
    assert len(database.read(said_in)) == 1
    assert len(database.read(states)) == 1


@pytest.mark.case("W03")
def test_the_same_key_on_another_thread_is_a_conflict(accept: Accept, database: Database) -> None:
    accept(request(dedupe_key="k"))
    with pytest.raises(KeyConflict, match="another thread"):
        accept(request(dedupe_key="k", thread=OTHER_THREAD))
    assert database.read(lambda connection: said_in(connection, OTHER_THREAD)) == []


def test_a_request_that_is_repeated_is_one_request(accept: Accept, database: Database) -> None:
    asked = request()
    first, again = accept(asked), accept(asked)
    assert (again.wake, again.repeated, first.repeated) == (first.wake, True, False)
    assert len(database.read(said_in)) == 1


@pytest.mark.case("W03")
def test_a_repeated_request_without_a_message_names_no_entry(accept: Accept) -> None:
    asked = request(said=None)
    first, again = accept(asked), accept(asked)
    assert (first.entry, again.entry, again.repeated) == (None, None, True)


@pytest.mark.case("W03")
def test_one_key_from_many_callers_at_once_is_one_wake(accept: Accept, database: Database) -> None:
    asked = [request(dedupe_key="k", said=Said(PERSON, str(number))) for number in range(12)]
    answers = [database.write(partial(_accept_one, asked=each)) for each in asked]
    wait(answers, timeout=60)
    assert len({answer.result().wake for answer in answers}) == 1
    assert len(database.read(said_in)) == 1
    assert accept(request()).entry == 2


def test_many_callers_at_once_share_a_journal_without_a_gap(accept: Accept, database: Database) -> None:
    answers = [database.write(lambda connection: accept_wake(connection, request())) for _ in range(40)]
    wait(answers, timeout=60)
    assert sorted(answer.result().entry or 0 for answer in answers) == list(range(1, 41))
    assert len(database.read(queued)) == 1
    assert accept(request()).entry == 41


@pytest.mark.case("W09")
@pytest.mark.parametrize("state", ["paused", "archived"])
def test_an_agent_that_may_not_work_refuses_at_once(accept: Accept, database: Database, state: str) -> None:
    database.write(lambda connection: connection.execute(update(agents).values(state=state)).rowcount).result(30)
    answer = accept(request())
    assert (answer.state, answer.code) == (WakeState.SKIPPED, f"refused:agent-{state}")
    assert database.read(queued) == []
    # What was said was said, whoever may act on it.
    assert len(database.read(said_in)) == 1


@pytest.mark.case("W10")
def test_a_flood_is_deferred_and_a_person_is_not(accept: Accept, database: Database) -> None:
    def started(connection: Any) -> None:
        lane = lane_id(ADA, THREAD)
        for number in range(5):
            connection.execute(
                insert(runs).values(
                    id=f"old-{number}",
                    number=10**9 + number,
                    lane_id=lane,
                    agent_id=ADA,
                    state="succeeded",
                    rank=0.0,
                    queued_at=0.0,
                    started_at=now(),
                    ended_at=1.0,
                )
            )

    accept(request())
    database.write(started).result(30)
    outside = Origin(OriginKind.OUTSIDE)
    answer = accept(request(reason=WakeReason.EVENT, origin=outside))
    assert (answer.state, answer.code) == (WakeState.PENDING, "deferred:flood")
    assert answer.until is not None
    assert accept(request(reason=WakeReason.MANUAL, origin=outside)).until is None
    assert accept(request()).until is None


@pytest.mark.case("W11")
def test_an_agents_own_words_do_not_wake_it(accept: Accept, database: Database) -> None:
    answer = accept(request(origin=Origin(OriginKind.AGENT, ADA, 1)))
    assert (answer.state, answer.code) == (WakeState.SKIPPED, "skipped:self")
    assert database.read(states) == [("skipped", "skipped:self")]
    deep = accept(request(origin=Origin(OriginKind.AGENT, BOB, 7)))
    assert deep.code == "skipped:ping-pong"
    assert deep.words == "Agents have woken one another 7 times in a row; the limit is 6."


@pytest.mark.case("W12")
def test_a_wake_without_a_thread_lands_in_the_agents_own(accept: Accept, database: Database) -> None:
    answer = accept(request(thread=None))
    own = own_thread(ADA)
    assert database.read(lambda connection: said_in(connection, own)) == [(1, "look at this")]
    assert database.read(said_in) == []
    thread = select(wakes.c.thread_id).where(wakes.c.id == answer.wake)
    assert database.read(lambda connection: connection.execute(thread).scalar_one()) == own


@pytest.mark.case("W14")
def test_an_outside_subject_finds_its_thread_again_by_name_alone(accept: Accept, database: Database) -> None:
    subject = subject_thread("forge", "pull/12")
    row = insert(threads).values(id=subject, kind="subject", created_at=0.0)
    database.write(lambda connection: connection.execute(row).rowcount).result(30)
    accept(request(thread=subject))
    accept(request(thread=subject_thread("forge", "pull/12")))
    assert len(database.read(lambda connection: said_in(connection, subject))) == 2


@pytest.mark.case("W13")
@pytest.mark.parametrize(
    ("overlap", "state", "code"),
    [
        (Overlap.QUEUE, WakeState.PENDING, "accepted:queued"),
        (Overlap.STEER, WakeState.PENDING, "accepted:steered"),
        (Overlap.INTERRUPT, WakeState.PENDING, "accepted:interrupts"),
        (Overlap.REJECT, WakeState.SKIPPED, "skipped:overlap"),
    ],
)
def test_a_busy_lane_applies_its_policy_and_says_which(
    accept: Accept, database: Database, overlap: Overlap, state: WakeState, code: str
) -> None:
    accept(request())

    def goes(connection: Any) -> None:
        live = {"state": "running", "lease_until": 1e12, "agent_place": 0, "runtime_place": 0}
        connection.execute(update(runs).values(**live))
        connection.execute(update(lanes).values(overlap=overlap.value))

    database.write(goes).result(30)
    answer = accept(request())
    assert (answer.state, answer.code, answer.overlap) == (state, code, overlap)
    assert database.read(queued) == []


@pytest.mark.case("S11")
def test_a_lane_whose_policy_cannot_be_read_is_named_and_no_other_is_stopped(
    accept: Accept, database: Database
) -> None:
    accept(request())
    spoiled, mended = update(lanes).values(overlap="whatever"), update(lanes).values(overlap="queue")
    database.write(lambda connection: connection.execute(spoiled).rowcount).result(30)
    with pytest.raises(Unreadable, match=r"of lanes cannot be read \(overlap\)"):
        accept(request())
    assert accept(request(agent=BOB)).state is WakeState.PENDING
    database.write(lambda connection: connection.execute(mended).rowcount).result(30)
    assert accept(request()).state is WakeState.PENDING
    assert len(database.read(said_in)) == 3


def test_a_person_brings_a_parked_run_forward(accept: Accept, database: Database) -> None:
    accept(request(origin=Origin(OriginKind.CLEW), reason=WakeReason.RETRY))
    parked = update(runs).values(not_before=1e12)
    database.write(lambda connection: connection.execute(parked).rowcount).result(30)
    accept(request(priority=5))
    (run,) = database.read(queued)
    assert run.not_before is None
    assert run.rank < run.queued_at


def test_an_unknown_agent_or_thread_is_named_and_nothing_is_kept(accept: Accept, database: Database) -> None:
    with pytest.raises(NoSuchAgent, match="There is no agent nobody"):
        accept(request(agent="nobody"))
    with pytest.raises(NoSuchThread, match="There is no thread nowhere"):
        accept(request(thread="nowhere"))
    assert database.read(states) == []


def test_names_are_made_in_order() -> None:
    made = [new_id("wk") for _ in range(100)]
    assert len(set(made)) == 100
    assert [name[:15] for name in made] == sorted(name[:15] for name in made)
    assert all(name.startswith("wk_") for name in made)


@pytest.mark.parametrize("address", [POSTGRESQL], indirect=True)
def test_a_wake_does_not_wait_for_what_is_being_recorded_of_its_lane(accept: Accept, database: Database) -> None:
    """A claim records the lane's workspace, and a report its fresh start."""
    accept(request())
    recorded, may_end = Event(), Event()

    def records(connection: Connection) -> None:
        connection.execute(update(lanes).values(floor_entry=1))
        recorded.set()
        may_end.wait(60)

    recording = database.write(records)
    try:
        assert recorded.wait(30)
        assert accept(request()).state is WakeState.PENDING
    finally:
        may_end.set()
    recording.result(30)
