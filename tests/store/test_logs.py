"""Logs from a position onwards: between any two positions exactly the lines that became durable between them."""

from collections.abc import Iterator

import pytest

from clew.kernel import AgentId
from clew.protocol.live import TRACKED, LogLine, LogPosition, LogScope, RunLog, ThreadLog
from clew.protocol.orders import Order
from clew.protocol.reports import RunEventRecord
from clew.store.operations.cancel import cancel_run
from clew.store.queries.logs import log_head, positions_of, read_log
from clew.store.schema.tables import runs
from tests.store.kit import ADA, BOB, OTHER_THREAD, THREAD, Daemon

ALL = ThreadLog(THREAD)
Line = tuple[str, int]


def line(each: LogLine) -> Line:
    return each.view.run, each.view.seq


def begin(daemon: Daemon, agent: AgentId = ADA) -> Order:
    daemon.say("go on", agent=agent)
    order = daemon.claim_one()
    assert daemon.prompt(order).may_prompt
    return order


def write(daemon: Daemon, order: Order, *lines: int) -> None:
    daemon.report(order, events=tuple(RunEventRecord(each, "text", '{"text": "word"}') for each in lines))


def run(daemon: Daemon, lines: int, agent: AgentId = ADA) -> Order:
    order = begin(daemon, agent)
    write(daemon, order, *range(1, lines + 1))
    assert daemon.finish(order).taken
    return order


def rest(
    daemon: Daemon, after: LogPosition, upto: LogPosition | None = None, most: int = 3, scope: LogScope = ALL
) -> Iterator[tuple[LogLine, LogPosition]]:
    """Every line after a position, read page by page, and the position after each."""
    more = True
    while more:
        page = daemon.database.read(lambda tx, after=after: read_log(tx, scope, after, upto, most))  # type: ignore[misc]
        assert len(page.lines) <= most
        more = page.more
        for each in page.lines:
            after = after.past(each)
            yield each, after


def lines(
    daemon: Daemon, after: LogPosition, upto: LogPosition | None = None, most: int = 3, scope: LogScope = ALL
) -> list[Line]:
    return [line(each) for each, _ in rest(daemon, after, upto, most, scope)]


def head(daemon: Daemon, scope: LogScope = ALL) -> LogPosition:
    return daemon.database.read(lambda tx: log_head(tx, scope)).position


@pytest.mark.case("U02")
def test_between_any_two_positions_come_exactly_the_lines_between_them(daemon: Daemon) -> None:
    for number, agent in enumerate((ADA, BOB, ADA, ADA, BOB, ADA, ADA, ADA, BOB)):
        run(daemon, number % 4, agent)
    going = begin(daemon)
    write(daemon, going, 1, 2)
    passed = [*rest(daemon, LogPosition())]
    whole = [line(each) for each, _ in passed]
    assert len(whole) == len(set(whole)) == sum(number % 4 for number in range(9)) + 2
    places = [LogPosition(), *(place for _, place in passed)]
    for first, after in enumerate(places):
        assert lines(daemon, after) == whole[first:]
        for last in range(first, len(places)):
            assert lines(daemon, after, places[last]) == whole[first:last]


def test_the_end_of_the_logs_has_nothing_after_it_and_everything_before_it(daemon: Daemon) -> None:
    assert head(daemon) == LogPosition()
    for _ in range(TRACKED + 2):
        run(daemon, 2)
    run(daemon, 2, BOB)
    end = head(daemon)
    assert {len(listed) for listed in end.lanes.values()} == {TRACKED, 1}
    assert lines(daemon, end) == []
    assert len(lines(daemon, LogPosition(), end)) == 2 * (TRACKED + 3)
    going = begin(daemon)
    assert lines(daemon, end) == []
    write(daemon, going, 1)
    assert lines(daemon, end) == [(going.run, 1)]
    assert lines(daemon, end, end) == []


@pytest.mark.case("U02")
def test_a_line_that_comes_after_the_end_of_its_run_is_found(daemon: Daemon) -> None:
    late = run(daemon, 2)
    run(daemon, 0)
    later = run(daemon, 2)
    end = head(daemon)
    assert lines(daemon, LogPosition(), end) == [(late.run, 1), (late.run, 2), (later.run, 1), (later.run, 2)]
    write(daemon, late, 3)
    assert lines(daemon, end) == [(late.run, 3)]
    # It is hinted at: nobody would look for it.
    hints = daemon.database.subscribe()
    write(daemon, late, 4)
    assert f"run:{late.run}" in hints.wait(5)


def test_runs_are_in_the_order_of_their_numbers_though_a_clock_is_set_back(daemon: Daemon) -> None:
    first = run(daemon, 1)
    end = head(daemon)
    second = run(daemon, 1)
    daemon.put(runs, {"id": second.run}, queued_at=daemon.run(first.run).queued_at - 300)
    assert lines(daemon, end) == [(second.run, 1)]
    assert lines(daemon, LogPosition()) == [(first.run, 1), (second.run, 1)]


def test_a_run_without_a_line_is_in_nobodys_way(daemon: Daemon) -> None:
    run(daemon, 1)
    start = head(daemon)
    for _ in range(5):
        order = begin(daemon)
        daemon.write(lambda tx, order=order: cancel_run(tx, order.run))  # type: ignore[misc]
        daemon.finish(order)
    last = run(daemon, 2)
    assert lines(daemon, start, most=1) == [(last.run, 1), (last.run, 2)]


def test_the_log_of_one_run_alone(daemon: Daemon) -> None:
    first = run(daemon, 3)
    run(daemon, 1)
    scope = RunLog(first.run)
    end = head(daemon, scope)
    ((lane, listed),) = end.lanes.items()
    ((number, last),) = listed.items()
    assert last == 3
    for after in range(4):
        place = LogPosition({lane: {number: after}})
        assert lines(daemon, place, scope=scope) == [(first.run, each) for each in range(after + 1, 4)]
        assert lines(daemon, place, end, scope=scope) == [(first.run, each) for each in range(after + 1, 4)]


def test_positions_are_found_again_by_the_numbers_of_runs(daemon: Daemon) -> None:
    for agent in (ADA, ADA, BOB):
        run(daemon, 2, agent)
    daemon.say("elsewhere", thread=OTHER_THREAD)
    daemon.serve()
    listed = {number: seq for lane in head(daemon).lanes.values() for number, seq in lane.items()}
    elsewhere = {number: 0 for lane in head(daemon, ThreadLog(OTHER_THREAD)).lanes.values() for number in lane}
    found = daemon.database.read(lambda tx: positions_of(tx, {**listed, **elsewhere, 999: 4}))
    assert found == {THREAD: head(daemon), OTHER_THREAD: head(daemon, ThreadLog(OTHER_THREAD))}
    assert daemon.database.read(lambda tx: positions_of(tx, {})) == {}
