"""Wakes that are accepted together leave what each of them would have left alone, and are what they would have been."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

import pytest
from sqlalchemy import Connection, literal_column, select

from clew.kernel import (
    AdmissionPolicy,
    Freshness,
    Origin,
    OriginKind,
    RouteKey,
    RouteKind,
    RunId,
    ThreadId,
    WakeId,
    WakeReason,
    WakeState,
    lane_id,
)
from clew.protocol.wakes import Accepted, Said, WakeRequest
from clew.store import statement
from clew.store.accept import Accepting, accept_wake
from clew.store.admitting import admit_all
from clew.store.faults import BadText, KeyConflict, NoSuchThread
from clew.store.moving import move_lane
from clew.store.tables import agents, journal, lanes, runs, threads, wakes
from clew.store.threads import close_thread, give_thread, hold_thread
from tests.store.kit import ADA, BOB, ELSEWHERE, PERSON, RUNTIME, THREAD, Daemon, overlapping, request
from tests.store.test_together import left_by, on_postgresql, together

RICH: dict[str, Any] = {
    "reason": WakeReason.MANUAL,
    "said": Said(PERSON, 'with "quotes", a \\ and \0 in it', 9, pair="p-1"),
    "freshness": Freshness.FRESH,
    "resume_run": RunId("rn-earlier"),
    "priority": 3,
    "route": RouteKey(RouteKind.WEBHOOK, "https://example.org/hook"),
    "isolated": True,
    "entries": (1, 2),
}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group waits for whoever is before it, however long that takes."""
    monkeypatch.setattr(statement, "_impatient", statement.Statement(lambda _: select(literal_column("1"))))


def asked_in(daemon: Daemon, name: str, **changes: Any) -> WakeRequest:
    daemon.add(threads, id=name, kind="issue", created_at=0.0)
    return request(thread=ThreadId(name), **changes)


@on_postgresql
@pytest.mark.parametrize("changes", [{}, RICH, {"said": None}, {"agent": BOB, "reason": WakeReason.CHAT}])
def test_wakes_together_leave_what_each_leaves_alone(daemon: Daemon, changes: dict[str, Any]) -> None:
    first, second, alone = (asked_in(daemon, name, **changes) for name in ("t-1", "t-2", "t-3"))
    said = together(daemon, Accepting(first), Accepting(second))
    told = daemon.write(partial(accept_wake, request=alone))
    assert [replace(each, wake=told.wake) for each in said] == [told, told]
    assert told.state is WakeState.PENDING
    assert left_by(daemon, "t-1") == left_by(daemon, "t-2") == left_by(daemon, "t-3")
    ranks = [row.rank - row.queued_at for row in daemon.rows(runs)]
    assert max(ranks) - min(ranks) < 1e-3
    assert {row.runtime_id for row in daemon.rows(runs)} == {RUNTIME}


@on_postgresql
def test_a_lane_that_is_there_is_used_where_it_was_put_and_the_journal_goes_on(daemon: Daemon) -> None:
    daemon.say("earlier")
    daemon.serve("n-1")
    daemon.write(lambda connection: move_lane(connection, lane_id(ADA, THREAD), ELSEWHERE, "to have it there"))
    (said,) = together(daemon, Accepting(request()))
    assert said.entry == 3
    (queued,) = daemon.rows(runs, state="queued")
    assert (queued.lane_id, queued.runtime_id) == (lane_id(ADA, THREAD), ELSEWHERE)
    assert len(daemon.rows(lanes)) == 1


@on_postgresql
def test_an_agent_that_lives_nowhere_works_where_its_provider_was_heard_of(daemon: Daemon) -> None:
    daemon.put(agents, {"id": ADA}, runtime_id=None)
    (said,) = together(daemon, Accepting(request()))
    (alone,) = [daemon.write(partial(accept_wake, request=asked_in(daemon, "t-1")))]
    assert said is not None
    one, other = daemon.rows(runs)
    assert one.runtime_id == other.runtime_id
    assert alone.state is said.state


def busy(daemon: Daemon) -> None:
    daemon.say("do it")
    daemon.prompt(daemon.claim_one(), "n-1")


def waiting(daemon: Daemon) -> None:
    daemon.say("do it")


def paused(daemon: Daemon) -> None:
    daemon.put(agents, {"id": ADA}, state="paused")


def closed(daemon: Daemon) -> None:
    daemon.put(threads, {"id": THREAD}, state="closed")


@on_postgresql
@pytest.mark.parametrize("before", [busy, waiting, paused, closed])
def test_whoever_takes_more_is_left_alone_and_the_others_are_done(
    daemon: Daemon, before: Callable[[Daemon], None]
) -> None:
    before(daemon)
    there = len(daemon.rows(wakes)), len(daemon.rows(runs)), len(daemon.rows(journal, "seq"))
    other = asked_in(daemon, "t-1", agent=BOB)
    one, done = together(daemon, Accepting(request()), Accepting(other))
    assert one is None
    assert done.state is WakeState.PENDING
    assert [row.wake for row in (done,)] == [other.id]
    assert (len(daemon.rows(wakes)), len(daemon.rows(runs)), len(daemon.rows(journal, "seq"))) == tuple(
        number + 1 for number in there
    )


@on_postgresql
@pytest.mark.usefixtures("patient")
def test_a_wake_of_whose_the_thread_is_waits_for_who_gives_it_away(daemon: Daemon) -> None:
    daemon.put(threads, {"id": THREAD}, assignee=ADA)
    mine = request()

    def as_assignee(connection: Connection) -> list[Accepted | None]:
        return admit_all(connection, [(mine, True)])

    given, said = overlapping(
        daemon.database, lambda connection: give_thread(connection, THREAD, BOB), as_assignee, hold=0.2
    )
    given.result(30)
    assert said.result(30) == [None]
    assert daemon.rows(wakes) == []
    daemon.put(threads, {"id": THREAD}, assignee=ADA)
    (accepted,) = daemon.write(as_assignee)
    assert accepted is not None


@on_postgresql
@pytest.mark.parametrize("first", ["wake", "close"])
@pytest.mark.usefixtures("patient")
def test_a_thread_that_is_closed_at_the_same_moment_leaves_no_wake_waiting(daemon: Daemon, first: str) -> None:
    asked = request()

    def wakes_it(connection: Connection) -> list[Accepted | None]:
        # Something was asked before, so that it waits for the commit as it does on its way to the disk.
        connection.exec_driver_sql("SELECT 1")
        return admit_all(connection, [(asked, False)])

    def closes(connection: Connection) -> int:
        return close_thread(connection, THREAD)

    one, other = overlapping(daemon.database, *((wakes_it, closes) if first == "wake" else (closes, wakes_it)))
    one.result(30), other.result(30)
    assert [row.state for row in daemon.rows(wakes)] == (["cancelled"] if first == "wake" else [])
    assert all(row.ended_at is not None for row in daemon.rows(runs))


@on_postgresql
@pytest.mark.case("W03")
def test_the_same_key_or_name_is_one_wake_however_many_come_at_once(daemon: Daemon) -> None:
    for number in range(8):
        daemon.add(threads, id=f"t-{number}", kind="issue", created_at=0.0)
    named = request(id=WakeId("wk-1"), thread=ThreadId("t-0"))
    keyed = [request(thread=ThreadId("t-1"), dedupe_key="k") for _ in range(4)]
    others = [request(thread=ThreadId(f"t-{number}")) for number in range(2, 8)]
    with ThreadPoolExecutor(16) as pool:
        said = list(pool.map(lambda each: daemon.database.do(Accepting(each)), [named, named, *keyed, *others]))
    assert [each.repeated for each in said[:2]].count(False) == 1
    assert [each.repeated for each in said[2:6]].count(False) == 1
    assert {each.wake for each in said[2:6]} < {each.id for each in keyed}
    assert not any(each.repeated for each in said[6:])
    assert len(daemon.rows(wakes)) == 8
    with pytest.raises(KeyConflict):
        daemon.database.do(Accepting(request(thread=ThreadId("t-2"), dedupe_key="k")))


@on_postgresql
@pytest.mark.case("W01")
def test_many_words_at_once_in_few_threads_are_all_kept_in_order_and_wait_for_one_run_each(daemon: Daemon) -> None:
    asked = [
        request(thread=thread, agent=agent)
        for thread in (THREAD, ThreadId("issue-8"))
        for agent in (ADA, BOB)
        for _ in range(10)
    ]
    with ThreadPoolExecutor(16) as pool:
        said = list(pool.map(lambda each: daemon.database.do(Accepting(each)), asked))
    assert {each.state for each in said} == {WakeState.PENDING}
    assert len(daemon.rows(runs)) == 4
    for thread in (THREAD, "issue-8"):
        assert [row.seq for row in daemon.rows(journal, "seq", thread_id=thread)] == list(range(1, 21))
    assert {each.wake: each.entry for each in said} == {row.id: row.entry for row in daemon.rows(wakes)}


@pytest.mark.parametrize(
    ("changes", "joins"),
    [
        ({}, True),
        ({"thread": None}, False),
        ({"dedupe_key": "\0"}, False),
        ({"priority": 10_000}, False),
        ({"origin": Origin(OriginKind.AGENT, BOB)}, False),
        ({"origin": Origin(OriginKind.AGENT, BOB), "reason": WakeReason.MANUAL}, True),
        ({"origin": Origin(OriginKind.OUTSIDE, None, 7), "reason": WakeReason.MANUAL}, False),
    ],
)
def test_only_what_is_let_in_without_counting_joins(changes: dict[str, Any], joins: bool) -> None:
    assert Accepting(request(**changes)).joins() is joins


@on_postgresql
@pytest.mark.parametrize(
    ("changes", "fault"),
    [({"thread": ThreadId("nowhere")}, NoSuchThread), ({"dedupe_key": "\0"}, BadText), ({"priority": 1001}, BadText)],
)
def test_what_is_refused_is_refused_in_its_own_words(
    daemon: Daemon, changes: dict[str, Any], fault: type[Exception]
) -> None:
    with pytest.raises(fault):
        daemon.database.do(Accepting(request(**changes)))
    assert daemon.rows(wakes) == []


@on_postgresql
def test_a_policy_is_asked_before_anybody_joins(daemon: Daemon) -> None:
    asked = request(origin=Origin(OriginKind.AGENT, BOB, 3), reason=WakeReason.MANUAL)
    strict = Accepting(asked, AdmissionPolicy(depth_limit=1))
    assert Accepting(asked).joins()
    assert not strict.joins()
    assert daemon.database.do(strict).code == "skipped:ping-pong"


@on_postgresql
def test_a_thread_that_somebody_holds_stops_no_other(daemon: Daemon) -> None:
    others = [asked_in(daemon, f"t-{number}", agent=BOB) for number in range(6)]
    holds, may_go = Event(), Event()

    def held(connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT id FROM threads WHERE id = '{THREAD}' FOR UPDATE")
        holds.set()
        assert may_go.wait(60)

    holder = daemon.database.write(held)
    assert holds.wait(30)
    with ThreadPoolExecutor(8) as pool:
        waits = pool.submit(daemon.database.do, Accepting(request()))
        done = [pool.submit(daemon.database.do, Accepting(each)) for each in others]
        assert {each.result(30).state for each in done} == {WakeState.PENDING}
        assert not waits.done()
        may_go.set()
        assert waits.result(30).state is WakeState.PENDING
    holder.result(30)


@on_postgresql
@pytest.mark.case("L03")
def test_who_holds_a_thread_to_close_it_is_not_in_the_way_of_the_end_of_its_run(daemon: Daemon) -> None:
    daemon.say("do it")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    holds, may_go = Event(), Event()

    def closing(connection: Connection) -> int:
        hold_thread(connection, THREAD)
        holds.set()
        assert may_go.wait(60)
        return close_thread(connection, THREAD)

    closer = daemon.database.write(closing)
    assert holds.wait(30)
    assert daemon.finish(order).taken
    may_go.set()
    assert closer.result(30) == 0
    assert daemon.run(order.run).state == "succeeded"


@on_postgresql
def test_who_asks_again_because_the_answer_was_lost_calls_again(daemon: Daemon) -> None:
    asked = request()
    daemon.database.do(Accepting(asked))
    reader = daemon.database.subscribe()
    assert daemon.database.do(Accepting(asked)).repeated
    assert f"queue:{RUNTIME}" in reader.wait(10)
