"""A waiting message that is changed in the very moment in which a run takes it: one of the two came first, the agent is
told one text, once, and whoever came too late is answered so. The database decides it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import URL, Connection, select

from clew.kernel import WakeId, WakeState
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Completed, Finish, Report, Reported, Steered
from clew.protocol.wakes import Said
from clew.store.engine.database import Database
from clew.store.engine.postgres import PostgresDatabase
from clew.store.faults import MessageTaken, NotWithinTurn
from clew.store.operations import claim_sql, steering
from clew.store.operations.claim import claim
from clew.store.operations.finish import finish
from clew.store.operations.message_changes import arrange_messages, edit_message, steer_message, take_back
from clew.store.operations.report import report
from clew.store.operations.wakes import accept_wake
from clew.store.schema.check import check
from clew.store.schema.tables import runs, wakes
from tests.store.halting import Act, one_by_one, overtaken, two_servers
from tests.store.kit import PERSON, RUNTIME, Daemon, bodies, empty, furnish, overlapping, request

MOST_STATEMENTS = 12
"""None has more; who has fewer has ended when the other comes."""

LATE = (MessageTaken, NotWithinTurn)

Change = Callable[[WakeId, WakeId], Act]


def edits(wake: WakeId, _: WakeId) -> Act:
    return lambda connection: edit_message(connection, wake, Said(PERSON, "one, changed", 3))


def edits_differently(wake: WakeId, _: WakeId) -> Act:
    return lambda connection: edit_message(connection, wake, Said(PERSON, "one, again", 3))


def moves(wake: WakeId, other: WakeId) -> Act:
    return lambda connection: arrange_messages(connection, [other, wake])


def steers(wake: WakeId, _: WakeId) -> Act:
    return lambda connection: steer_message(connection, wake)


def withdraws(wake: WakeId, _: WakeId) -> Act:
    return lambda connection: take_back(connection, wake, PERSON, "a person")


CHANGES: dict[str, tuple[Change, list[str]]] = {
    "edit": (edits, ["one, changed", "two"]),
    "move": (moves, ["two", "one"]),
    "take back": (withdraws, ["two"]),
}
"""Each with what the agent is told if the change came before the run."""


def claims(connection: Connection) -> tuple[Order, ...]:
    return claim(connection, ClaimRequest("daemon-1", (RUNTIME,)))


def anew(connection: Connection) -> None:
    empty(connection)
    furnish(connection)


@pytest.fixture(scope="module")
def servers(postgres: URL) -> Iterator[list[PostgresDatabase]]:
    with two_servers(postgres) as opened:
        yield opened


@pytest.fixture
def deadlocks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return one_by_one(monkeypatch)


def late(answer: Any) -> bool:
    """Whether a change was answered that it came too late."""
    try:
        answer.result(60)
    except LATE:
        return True
    return False


def waiting(daemon: Daemon) -> tuple[WakeId, WakeId]:
    return daemon.say("one").wake, daemon.say("two").wake


def claimed_then(daemon: Daemon, orders: tuple[Order, ...]) -> list[str]:
    """What the agent was told, once all that waits was served: the claim that was overtaken found nothing, perhaps,
    because the run was locked."""
    told: list[str] = []
    for order in orders or daemon.claim():
        told += bodies(order)
        daemon.prompt(order, "n-1")
        daemon.finish(order)
    assert daemon.claim() == ()
    return told


@pytest.mark.case("W17", "P20")
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("claim_first", [True, False])
def test_a_claim_and_a_change_have_an_order(
    servers: list[PostgresDatabase], deadlocks: list[str], name: str, claim_first: bool
) -> None:
    changes, changed = CHANGES[name]
    seen = set()
    for at in range(1, MOST_STATEMENTS + 1):
        servers[0].do(anew)
        daemon = Daemon(servers[0])
        change = changes(*waiting(daemon))
        first, second = (claims, change) if claim_first else (change, claims)
        answers = overtaken(servers, first, second, at)
        orders, answer = answers if claim_first else reversed(answers)
        too_late = late(answer)
        told = claimed_then(daemon, orders.result(60))
        assert (at, told) == (at, ["one", "two"] if too_late else changed)
        assert servers[0].read(check) == ()
        seen.add(too_late)
    assert not deadlocks
    assert seen == {True, False}, "both orders came about"


@pytest.mark.case("W17")
@pytest.mark.parametrize(
    ("second", "possible"),
    [
        (edits_differently, (["one, changed", "two"], ["one, again", "two"])),
        (moves, (["two", "one, changed"],)),
        (withdraws, (["two"],)),
    ],
)
def test_two_changes_at_once_come_one_after_the_other(
    servers: list[PostgresDatabase], deadlocks: list[str], second: Change, possible: tuple[list[str], ...]
) -> None:
    for at in range(1, MOST_STATEMENTS + 1):
        servers[0].do(anew)
        daemon = Daemon(servers[0])
        pair = waiting(daemon)
        answers = overtaken(servers, edits(*pair), second(*pair), at)
        assert [late(answer) for answer in answers].count(True) <= int(second is withdraws)
        told = claimed_then(daemon, ())
        assert told in possible, at
        assert servers[0].read(check) == ()
    assert not deadlocks


def at_work(daemon: Daemon) -> Order:
    """A turn that is going, and that was told one entry."""
    daemon.put_capability("steers", value=True)
    daemon.say("zero")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    return order


def asks(order: Order) -> Act:
    return lambda connection: report(connection, Report(order.run, order.attempt, steers=True))


@pytest.mark.case("W17", "W13", "P20")
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("report_first", [True, False])
def test_a_turn_that_asks_for_messages_and_a_change_have_an_order(
    servers: list[PostgresDatabase], deadlocks: list[str], name: str, report_first: bool
) -> None:
    changes, changed = CHANGES[name]
    for at in range(1, MOST_STATEMENTS + 1):
        servers[0].do(anew)
        daemon = Daemon(servers[0])
        order = at_work(daemon)
        one, two = waiting(daemon)
        daemon.write(steers(one, two))
        change, asking = changes(one, two), asks(order)
        first, second = (asking, change) if report_first else (change, asking)
        answers = overtaken(servers, first, second, at)
        reported, answer = answers if report_first else reversed(answers)
        too_late = late(answer)
        told = told_within(daemon, order, reported.result(60))
        daemon.finish(order, Completed(None))
        told += claimed_then(daemon, ())
        assert (at, told) == (at, ["one", "two"] if too_late else changed)
        assert servers[0].read(check) == ()
    assert not deadlocks


def told_within(daemon: Daemon, order: Order, reported: Reported) -> list[str]:
    """What the turn took, until nothing more is to be told within it."""
    told: list[str] = []
    while reported.steer is not None:
        told += [entry.body for entry in reported.steer.entries]
        reported = daemon.report(order, steered=Steered(True, reported.steer.through), steers=True)
    return told


@pytest.mark.case("W17", "W13")
@pytest.mark.parametrize("end_first", [True, False])
def test_a_turn_that_ends_and_a_message_that_is_to_be_told_within_it_have_an_order(
    servers: list[PostgresDatabase], deadlocks: list[str], end_first: bool
) -> None:
    for at in range(1, MOST_STATEMENTS + 1):
        servers[0].do(anew)
        daemon = Daemon(servers[0])
        order = at_work(daemon)
        one, two = waiting(daemon)
        promotes = steers(two, one)

        def ends(connection: Connection, order: Order = order) -> Any:
            return finish(connection, Finish(order.run, order.attempt, Completed(None)))

        first, second = (ends, promotes) if end_first else (promotes, ends)
        answers = overtaken(servers, first, second, at)
        ended, answer = answers if end_first else reversed(answers)
        assert ended.result(60).taken
        too_late = late(answer)
        assert (at, claimed_then(daemon, ())) == (at, ["one", "two"] if too_late else ["two", "one"])
        assert servers[0].read(check) == ()
    assert not deadlocks


@pytest.mark.case("W17")
@pytest.mark.parametrize("change", [edits, moves, withdraws])
def test_on_both_databases_whoever_comes_second_sees_what_the_first_did(database: Database, change: Change) -> None:
    database.write(furnish).result(30)
    daemon = Daemon(database)
    pair = waiting(daemon)
    orders, answer = overlapping(database, claims, change(*pair))
    assert late(answer)
    assert bodies(orders.result(30)[0]) == ["one", "two"]
    states = database.read(lambda connection: set(connection.execute(select(wakes.c.state)).scalars()))
    assert states == {WakeState.CLAIMED}
    assert database.read(check) == ()


@pytest.mark.case("W17")
def test_a_message_that_comes_while_another_is_edited_is_told_after_it(
    servers: list[PostgresDatabase], deadlocks: list[str]
) -> None:
    for edit_first in (True, False):
        for at in range(1, MOST_STATEMENTS + 1):
            servers[0].do(anew)
            daemon = Daemon(servers[0])
            pair = waiting(daemon)
            asked = request(said=Said(PERSON, "three", 3))

            def comes(connection: Connection, asked: Any = asked) -> Any:
                return accept_wake(connection, asked)

            first, second = (edits(*pair), comes) if edit_first else (comes, edits(*pair))
            for answer in overtaken(servers, first, second, at):
                answer.result(60)
            assert claimed_then(daemon, ()) == ["one, changed", "two", "three"], at
            assert servers[0].read(check) == ()
    assert not deadlocks


@pytest.mark.case("W17", "P20")
def test_a_claim_that_has_read_the_former_text_takes_nothing(daemon: Daemon) -> None:
    """On PostgreSQL a statement may read the wake just before the change is committed, and lock the run just after."""
    wake, other = waiting(daemon)
    daemon.write(edits(wake, other))
    stale = {"wake": wake, "entry": 1, "run": daemon.rows(runs)[0].id, "words": "x"}
    assert daemon.write(lambda connection: claim_sql.carry.count(connection, **stale, scope="")) == 0
    assert daemon.write(lambda connection: steering._tell.count(connection, **stale)) == 0  # noqa: SLF001
    assert bodies(daemon.claim_one()) == ["one, changed", "two"]
