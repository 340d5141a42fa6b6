"""Events: the logs of many runs come in while somebody claims."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from bench.store.databases import Ground, Kind
from bench.store.scene import accept_all, claim_one, furnish, give_up, new_threads, tell
from bench.table import Table
from bench.timing import milliseconds, percentile, rate, rounds, spread
from clew.kernel import RunId
from clew.protocol.orders import Order
from clew.protocol.reports import Report, RunEventRecord
from clew.store.engine.database import Database
from clew.store.operations.report import report

PART = "events"
SECONDS = 15.0
RUNS, BATCHES, BATCH = 16, 13, 50
_BODY = '{"type":"message","text":"' + "what an agent says " * 5 + '"}'


def measure(ground: Ground) -> Table:
    table = Table(PART, ("database", "events /s", "claim", "alone ms", "meanwhile ms", "ratio"))
    for kind in Kind:
        with ground.fresh(kind) as database:
            furnish(database)
            _compare(table, kind, database)
    return table


def _compare(table: Table, kind: Kind, database: Database) -> None:
    alone: list[float] = []
    meanwhile: list[float] = []
    speeds: list[float] = []
    for number in rounds(SECONDS, least=3, most=8):
        speed, busy, quiet = _round(database)
        if number:
            speeds.append(speed)
            meanwhile += busy
            alone += quiet
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        one, other = percentile(alone, share), percentile(meanwhile, share)
        table.add(kind, f"{spread(speeds).median:,.0f}", name, f"{one:.2f}", f"{other:.2f}", f"{other / one:.2f}")
    table.note = f"{RUNS * BATCHES * BATCH:,} events a round, {BATCH} in a report, from {RUNS} runs at once."


def _round(database: Database) -> tuple[float, list[float], list[float]]:
    """Events a second, and the times of claims while they come in and while they do not."""
    writers = [Writer(database, order) for order in _live(database)]
    speed: list[float] = []
    busy = _claims_while(database, lambda: speed.append(rate(RUNS, BATCHES, lambda at: writers[at].batch) * BATCH))
    quiet = _claims_while(database, None, len(busy))
    for writer in writers:
        give_up(database, writer.run, writer.attempt)
    return speed[0], busy, quiet


class Writer:
    """One run that tells what happens in it."""

    def __init__(self, database: Database, order: Order) -> None:
        self.run: RunId = order.run
        self.attempt = order.attempt
        self._database = database
        self._seq = 0

    def batch(self) -> None:
        lines = tuple(RunEventRecord(self._seq + at, "message", _BODY) for at in range(BATCH))
        self._seq += BATCH
        said = Report(self.run, self.attempt, events=lines)
        assert self._database.do(lambda connection: report(connection, said)).held


def _live(database: Database) -> list[Order]:
    accept_all(database, new_threads(database, RUNS))
    orders = [claim_one(database) for _ in range(RUNS)]
    for order in orders:
        tell(database, order)
    return orders


def _claims_while(database: Database, going: Callable[[], object] | None, least: int = 20) -> list[float]:
    """How long claims take, one after the other: while something else is going, or so many of them."""
    taken: list[float] = []
    orders: list[Order] = []
    waiting = 0
    with ThreadPoolExecutor(1) as pool:
        other = None if going is None else pool.submit(going)
        while len(taken) < least or not (other is None or other.done()):
            if waiting == 0:
                waiting = 60
                accept_all(database, new_threads(database, waiting))
            taken.append(milliseconds(lambda: orders.append(claim_one(database))))
            waiting -= 1
            order = orders.pop()
            give_up(database, order.run, order.attempt)
    for _ in range(waiting):
        order = claim_one(database)
        give_up(database, order.run, order.attempt)
    return taken
