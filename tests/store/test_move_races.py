"""A wake that comes in the very moment in which its lane or its agent is moved waits where they are then, whoever was
faster; and so does what follows a run that ends in that moment."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import URL, Connection, select

from clew.kernel import Cursor, Directory, LaneId, NativeId, RuntimeId
from clew.protocol.reports import Completed, Finish, NewSession
from clew.store.engine.postgres import PostgresDatabase
from clew.store.operations.agents import change_agent
from clew.store.operations.finish import finish
from clew.store.operations.moves import move_lane
from clew.store.operations.sessions import Adoption, adopt_session
from clew.store.operations.updates import AgentUpdate
from clew.store.operations.wakes import accept_wake
from clew.store.schema.check import check
from clew.store.schema.tables import lanes, runs
from tests.store.halting import Act, one_by_one, overtaken, two_servers
from tests.store.kit import ADA, ELSEWHERE, LANE, RUNTIME, THREAD, Daemon, empty, furnish, request

MOST_STATEMENTS = 8
"""Neither has more; who has fewer has ended when the other comes."""

Scene = Callable[[Daemon], Act]


def a_wake(_: Daemon) -> Act:
    asked = request()
    return lambda connection: accept_wake(connection, asked)


def a_wake_among_others(_: Daemon) -> Act:
    return lambda connection: accept_wake(connection, request())


def an_end_with_more_to_do(daemon: Daemon) -> Act:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    daemon.say("two")
    return lambda connection: finish(connection, Finish(order.run, order.attempt, Completed("done", 1)))


def its_lane_moves(connection: Connection) -> Any:
    return move_lane(connection, LANE, ELSEWHERE, "it was asked for")


def its_agent_moves(connection: Connection) -> Any:
    change_agent(connection, ADA, AgentUpdate(runtime=ELSEWHERE))


@pytest.fixture(scope="module")
def servers(postgres: URL) -> Iterator[list[PostgresDatabase]]:
    with two_servers(postgres) as opened:
        yield opened


@pytest.fixture
def deadlocks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return one_by_one(monkeypatch)


def anew(connection: Connection) -> None:
    empty(connection)
    furnish(connection)


def where_it_waits(connection: Connection, lane: LaneId = LANE) -> list[RuntimeId]:
    waits = select(runs.c.runtime_id).where(runs.c.lane_id == lane, runs.c.state == "queued")
    return list(connection.execute(waits).scalars())


@pytest.mark.case("R08")
@pytest.mark.parametrize("moves", [its_lane_moves, its_agent_moves])
@pytest.mark.parametrize("scene", [a_wake, a_wake_among_others, an_end_with_more_to_do])
@pytest.mark.parametrize("mover_first", [True, False])
def test_what_comes_as_its_place_is_moved_waits_in_the_new_one(
    servers: list[PostgresDatabase], deadlocks: list[str], moves: Act, scene: Scene, mover_first: bool
) -> None:
    for at in range(1, MOST_STATEMENTS + 1):
        servers[0].do(anew)
        daemon = Daemon(servers[0])
        daemon.say("before")
        daemon.serve("n-0")
        comes = scene(daemon)
        first, second = (moves, comes) if mover_first else (comes, moves)
        for answer in overtaken(servers, first, second, at):
            answer.result(60)
        assert (at, servers[0].read(where_it_waits)) == (at, [ELSEWHERE])
        assert servers[0].read(check) == ()
    assert not deadlocks


@pytest.mark.case("R08")
@pytest.mark.parametrize("adopter_first", [True, False])
def test_a_wake_that_comes_as_its_lane_is_made_elsewhere_waits_there_or_came_before(
    servers: list[PostgresDatabase], deadlocks: list[str], adopter_first: bool
) -> None:
    session = NewSession(Cursor(1, NativeId("n-9")), Directory("/srv/ada"), mode="read")

    def adopts(connection: Connection) -> Any:
        return adopt_session(connection, Adoption(ADA, THREAD, ELSEWHERE, session))

    for at in range(1, MOST_STATEMENTS + 1):
        servers[0].do(anew)
        comes = a_wake(Daemon(servers[0]))
        first, second = (adopts, comes) if adopter_first else (comes, adopts)
        for answer in overtaken(servers, first, second, at):
            answer.result(60)
        made_at = servers[0].read(lambda connection: connection.execute(select(lanes.c.runtime_id)).scalar_one())
        assert (at, servers[0].read(where_it_waits)) == (at, [made_at or RUNTIME])
    assert not deadlocks
