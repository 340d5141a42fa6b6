"""Statements: how many one wake takes from its acceptance to its end, counted on SQLite as they are run."""

import json
from collections.abc import Callable

from sqlalchemy import Connection, update

from bench.store.databases import Ground, Kind
from bench.store.scene import accept_one, claim_one, complete, furnish, new_threads, tell
from bench.table import Table
from clew.kernel import Outcome, Policy, SessionLimits, ThreadId, policy_to_record
from clew.protocol.orders import Order
from clew.store.engine.database import Database
from clew.store.schema.tables import agents

PART = "statements"
MOST = 15
BEYOND = 2
"""What a fresh start takes beside: the session that it leaves is retired, and what the new one is told is read."""

_TRANSACTION = ("BEGIN", "SAVEPOINT", "RELEASE", "COMMIT", "ROLLBACK", "--")


def measure(ground: Ground) -> Table:
    table = Table(PART, ("wake", "accept", "claim", "report", "finish", "together", "at most"))
    with ground.fresh(Kind.SQLITE) as database:
        furnish(database)
        first, _ = new_threads(database, 2)
        counter = Counter(database)
        _count(table, counter, "the first of its lane", first, Outcome.BLANK)
        _count(table, counter, "a follow-up that resumes", first, Outcome.RESUME)
        database.do(_one_turn_only)
        _count(table, counter, "a fresh start by policy", first, Outcome.RESEED, MOST + BEYOND)
    return table


class Counter:
    """Sees every statement of the one connection that writes."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._seen = 0
        database.do(self._watch)

    def of(self, step: Callable[[], object]) -> int:
        self._seen = 0
        step()
        return self._seen

    def _watch(self, connection: Connection) -> None:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.set_trace_callback(self._see)

    def _see(self, statement: str) -> None:
        self._seen += not statement.startswith(_TRANSACTION)


def _count(table: Table, counter: Counter, name: str, thread: ThreadId, expected: Outcome, most: int = MOST) -> None:
    database, orders = counter.database, list[Order]()
    taken = [
        counter.of(lambda: accept_one(database, thread)),
        counter.of(lambda: orders.append(claim_one(database))),
        counter.of(lambda: tell(database, orders[0])),
        counter.of(lambda: complete(database, orders[0])),
    ]
    assert orders[0].plan.outcome is expected, orders[0].plan.outcome
    wanted = table.judge(name, sum(taken) <= most, str(most))
    table.add(name, *map(str, taken), str(sum(taken)), wanted)


def _one_turn_only(connection: Connection) -> None:
    policy = Policy(limits=SessionLimits(turns=1))
    connection.execute(update(agents).values(policy=json.dumps(policy_to_record(policy))))
