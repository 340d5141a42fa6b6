"""Ends and reports that are done together leave what each of them would have left alone."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, text

from clew.kernel import PinReason, RunOutcome, RunState, ThreadId
from clew.protocol.orders import Order
from clew.protocol.prompted import read_prompted
from clew.protocol.reports import Asked, Completed, End, Finish, Landed, Report, RunEventRecord, Usage
from clew.store.accept import accept_wake
from clew.store.cancel import cancel_run
from clew.store.faults import SessionHeld
from clew.store.finish import Finishing, finish
from clew.store.joining import Joint
from clew.store.report import Reporting, report
from clew.store.statement import POSTGRESQL
from clew.store.tables import approvals, events, journal, runs, sessions, threads, wakes
from tests.store.kit import BOB, THREAD, TRANSIENT, Daemon, overlapping, pin_of, prompted_of, request

# A run that ends by itself has its clock and its chance; all else is the same however it was done.
_BY_CHANCE = {"at", "queued_at", "accepted_at", "started_at", "ended_at", "lease_until", "born_at", "proven_at", "rank"}
_BY_CHANCE |= {"evidence_at", "prompt"}
_BY_CHANCE |= {"agent_place", "runtime_place", "asked_at", "expires_at"}

on_postgresql = pytest.mark.parametrize("address", [POSTGRESQL], indirect=True)


@pytest.fixture(autouse=True)
def roomy(request: pytest.FixtureRequest) -> None:
    if "daemon" in request.fixturenames:
        daemon: Daemon = request.getfixturevalue("daemon")
        daemon.make_room()


def claimed(daemon: Daemon, *names: str) -> dict[str, Order]:
    """A run of each of these threads."""
    for name in names:
        daemon.add(threads, id=name, kind="issue", created_at=0.0)
        daemon.say("do it", thread=ThreadId(name))
    orders = {order.thread.id: order for order in daemon.claim(most=len(names))}
    return {name: orders[ThreadId(name)] for name in names}


def going(daemon: Daemon, *names: str) -> dict[str, Order]:
    orders = claimed(daemon, *names)
    for name, order in orders.items():
        assert daemon.prompt(order, f"n-{name}").may_prompt
    return orders


def ending(order: Order, end: End | None = None, **changes: Any) -> Finish:
    return replace(Finish(order.run, order.attempt, end or Completed("done", 1, Usage(1, 20, 300))), **changes)


def prompting(order: Order, native: str | None = None, **said: Any) -> Report:
    pin = None if native is None else pin_of(order.plan, native)
    plain = Report(
        order.run,
        order.attempt,
        opens=True,
        landed=Landed("{}", "started"),
        told=order.plan.situation.head,
        prompted=prompted_of(order, native),
    )
    return replace(plain, pin=pin, **said)


def together(daemon: Daemon, *asked: Joint[Any]) -> list[Any]:
    """In one group, in the order in which a group stands."""
    group = sorted(asked, key=lambda each: each.about)
    answers = daemon.write(lambda connection: type(group[0]).together(connection, group))
    return [answers[group.index(each)] for each in asked]


def left_by(daemon: Daemon, thread: str) -> dict[str, list[dict[str, Any]]]:
    """All that is known of a thread, without what chance or the clock has put there."""
    lanes_of = {row.lane_id for row in daemon.rows(wakes, thread_id=thread)}
    found = {
        "wakes": daemon.rows(wakes, thread_id=thread),
        "journal": daemon.rows(journal, "seq", thread_id=thread),
        "runs": [row for row in daemon.rows(runs) if row.lane_id in lanes_of],
        "sessions": [row for row in daemon.rows(sessions) if row.lane_id in lanes_of],
    }
    names = dict.fromkeys(lanes_of, "LANE")
    names |= {row.session_id: "SESSION" for row in found["runs"] if row.session_id is not None}
    for kind, rows in found.items():
        names |= {row.id: f"{kind}-{at}" for at, row in enumerate(rows) if hasattr(row, "id")}

    def plain(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        for name, stands_for in names.items():
            value = value.replace(name, stands_for)
        return value.replace(thread, "THREAD")

    return {
        kind: [
            {key: value is None if key in _BY_CHANCE else plain(value) for key, value in row._asdict().items()}
            for row in rows
        ]
        for kind, rows in found.items()
    }


# ---------------------------------------------------------------- ends


@on_postgresql
@pytest.mark.case("P19")
def test_prompts_that_are_reported_together_are_each_on_record(daemon: Daemon) -> None:
    orders = claimed(daemon, "t-1", "t-2", "t-3")
    said = {name: prompting(order, f"n-{name}") for name, order in orders.items()}
    pinned = said["t-1"], replace(said["t-2"], pin=None), said["t-3"]
    assert all(answer is not None and answer.may_prompt for answer in together(daemon, *map(Reporting, pinned)))
    for each in pinned:
        assert read_prompted(daemon.run(each.run).prompt) == each.prompted
    # Ended together, it is known of each that it was taken, and its session has seen it.
    assert all(together(daemon, *(Finishing(ending(order)) for order in orders.values())))
    runs_now = [daemon.run(order.run) for order in orders.values()]
    assert {(run.evidence, run.evidence_words, run.evidence_asked) for run in runs_now} == {("finished", None, 0)}
    assert all(run.evidence_at == pytest.approx(run.ended_at, abs=1) for run in runs_now)
    assert {(row.seen, row.inherited, row.cut_off) for row in daemon.rows(sessions)} == {(2, 0, 0)}


@on_postgresql
def test_ends_together_leave_what_each_leaves_alone(daemon: Daemon) -> None:
    orders = going(daemon, "t-1", "t-2", "t-3", "t-4")
    silent, stopped = Completed(None, 0, Usage(1, 5, 7)), Completed("late", 1)
    for name in ("t-3", "t-4"):
        daemon.write(partial(cancel_run, run=orders[name].run, why=RunOutcome.BY_USER))
    ends = {"t-1": silent, "t-2": silent, "t-3": stopped, "t-4": stopped}
    first, third = together(daemon, *(Finishing(ending(orders[name], ends[name])) for name in ("t-1", "t-3")))
    second, fourth = (daemon.write(partial(finish, said=ending(orders[name], ends[name]))) for name in ("t-2", "t-4"))
    assert (first, third) == (second, fourth)
    assert third.state is RunState.CANCELLED
    assert left_by(daemon, "t-1") == left_by(daemon, "t-2")
    assert left_by(daemon, "t-3") == left_by(daemon, "t-4")


@on_postgresql
def test_a_reply_goes_into_the_journal_and_is_seen_unless_somebody_spoke_in_between(daemon: Daemon) -> None:
    orders = going(daemon, "t-1", "t-2")
    daemon.add(journal, thread_id="t-2", seq=2, author_kind="human", author_name="b", body="wait", size=1, at=1.0)
    one, other = together(daemon, *(Finishing(ending(order)) for order in orders.values()))
    assert (one.reply, other.reply) == (2, 3)
    (seen,), (waits) = ([row.seen for row in daemon.rows(sessions, run_id=orders[name].run)] for name in orders)
    assert (seen, waits) == (2, [1])
    assert [(row.author_name, row.body) for row in daemon.rows(journal, "seq", thread_id="t-1")][1:] == [
        ("ada", "done")
    ]


@on_postgresql
def test_whoever_takes_more_is_left_alone_and_the_others_are_done(daemon: Daemon) -> None:
    orders = going(daemon, "plain", "waits", "asks", "stale", "fails")
    daemon.say("and this", thread=ThreadId("waits"))
    daemon.report(orders["asks"], asks=(Asked("ap-1", "May I?"),))  # type: ignore[arg-type]
    before = {name: left_by(daemon, name) for name in orders}
    said = {name: ending(order) for name, order in orders.items()}
    said["stale"] = replace(said["stale"], attempt=0)
    said["fails"] = replace(said["fails"], end=TRANSIENT)
    answers = dict(zip(said, together(daemon, *map(Finishing, said.values())), strict=True))
    assert answers.pop("plain").taken
    assert set(answers.values()) == {None}
    assert {name: left_by(daemon, name) for name in answers} == {name: before[name] for name in answers}
    for name in answers:
        assert daemon.write(Finishing(said[name])).taken == (name != "stale")
    assert [row.state for row in daemon.rows(wakes, "accepted_at", thread_id="waits")] == ["served", "pending"]
    assert [row.state for row in daemon.rows(approvals)] == ["stale"]


@on_postgresql
@pytest.mark.case("L03")
@pytest.mark.parametrize("first", ["wake", "end"])
def test_a_wake_that_comes_at_the_same_moment_gets_a_run(daemon: Daemon, first: str) -> None:
    (order,) = going(daemon, "t-1").values()
    # Nothing is said with it: an entry in the journal would be in the way of the reply.
    asked, said = request(thread=ThreadId("t-1"), said=None), Finishing(ending(order))

    def ends(connection: Connection) -> Any:
        # Something was asked before, so that the end waits for the commit as it does on its way to the disk.
        connection.execute(text("SELECT 1"))
        return said.together(connection, [said])

    def wakes_it(connection: Connection) -> Any:
        return accept_wake(connection, asked)

    if first == "wake":
        one, other = overlapping(daemon.database, wakes_it, said)
        assert other.result(30).taken
    else:
        one, other = overlapping(daemon.database, ends, wakes_it)
        assert one.result(30)[0].taken
    one.result(30), other.result(30)
    assert [row.state for row in daemon.rows(wakes, "accepted_at", thread_id="t-1")] == ["served", "pending"]
    (queued,) = daemon.rows(runs, state="queued")
    assert queued.lane_id == order.lane


@on_postgresql
def test_two_agents_who_end_in_one_thread_both_have_their_say(daemon: Daemon) -> None:
    daemon.accept()
    daemon.accept(agent=BOB)
    orders = daemon.claim(most=2)
    for order in orders:
        daemon.prompt(order, f"n-{order.lane}")
    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(lambda order: daemon.finish(order).taken, orders))
    assert [row.author_name for row in daemon.rows(journal, "seq", thread_id=THREAD)][2:] in (
        ["ada", "bob"],
        ["bob", "ada"],
    )


# ---------------------------------------------------------------- reports


@on_postgresql
def test_reports_together_leave_what_each_leaves_alone(daemon: Daemon) -> None:
    orders = claimed(daemon, "t-1", "t-2", "t-3", "t-4")
    lines = (RunEventRecord(1, "text", '{"text": "a"}'), RunEventRecord(2, "text", '{"text": "b \\" \\\\ ,{}"}'))
    said = {name: prompting(orders[name], f"n-{name}", events=lines) for name in ("t-1", "t-2")}
    said |= {name: Report(orders[name].run, orders[name].attempt, opens=True) for name in ("t-3", "t-4")}
    first, third = together(daemon, *(Reporting(said[name]) for name in ("t-1", "t-3")))
    second, fourth = (daemon.write(partial(report, said=said[name])) for name in ("t-2", "t-4"))
    assert first.pinned is PinReason.FIRST
    for one, other in ((first, second), (third, fourth)):
        assert replace(one, lease_until=None) == replace(other, lease_until=None)
    assert left_by(daemon, "t-1") == left_by(daemon, "t-2")
    assert left_by(daemon, "t-3") == left_by(daemon, "t-4")
    logged = {name: daemon.rows(events, "seq", run_id=orders[name].run) for name in ("t-1", "t-2")}
    assert [(row.seq, row.attempt, row.kind, row.body) for row in logged["t-1"]] == [
        (row.seq, row.attempt, row.kind, row.body) for row in logged["t-2"]
    ]
    assert len(logged["t-1"]) == len(lines)


@on_postgresql
def test_of_a_report_that_was_refused_nothing_is_kept(daemon: Daemon) -> None:
    orders = claimed(daemon, "t-1", "t-2")
    line = (RunEventRecord(1, "text", "{}"),)
    stale = replace(prompting(orders["t-1"], "n-1", events=line), attempt=7)
    good = prompting(orders["t-2"], "n-2", events=line)
    assert [each and each.may_prompt for each in together(daemon, Reporting(stale), Reporting(good))] == [None, True]
    assert daemon.rows(events, "seq", run_id=orders["t-1"].run) == []
    assert daemon.rows(sessions, run_id=orders["t-1"].run) == []
    assert not daemon.write(Reporting(stale)).held


@on_postgresql
@pytest.mark.case("C24")
def test_a_session_of_another_lane_fails_its_own_report_and_no_other(daemon: Daemon) -> None:
    going(daemon, "theirs")
    orders = claimed(daemon, *(f"t-{number}" for number in range(6)))
    said = [Reporting(prompting(order, f"n-{name}")) for name, order in orders.items()]
    taken = Reporting(prompting(orders["t-3"], "n-theirs"))
    said[3] = taken
    gate = threading.Barrier(len(said))

    def tell(each: Reporting) -> Any:
        gate.wait(30)
        try:
            return daemon.write(each).may_prompt
        except SessionHeld as fault:
            return fault.code

    with ThreadPoolExecutor(len(said)) as pool:
        answers = list(pool.map(tell, said))
    assert answers == [True, True, True, SessionHeld.code, True, True]
    assert daemon.run(orders["t-3"].run).prompt_sent == 0


@on_postgresql
def test_what_is_pinned_twice_is_the_same_session(daemon: Daemon) -> None:
    (order,) = going(daemon, "t-1").values()
    again = Report(order.run, order.attempt, pin=pin_of(order.plan, "n-t-1"))
    assert together(daemon, Reporting(again)) == [None]
    assert daemon.write(Reporting(again)).pinned is PinReason.SAME
    assert [row.generation for row in daemon.rows(sessions, run_id=order.run)] == [1]
