"""History: whether what was does slow what is. A small and a large database are measured in turns."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from bench.store.databases import Ground, Kind, opened
from bench.store.filling import LONG, Size, fill
from bench.store.scene import ADA, ASKS, accept_one, complete, tell
from bench.table import Table, ratio
from bench.timing import milliseconds, percentile, ratios, rounds, spread
from clew.kernel import CANDIDATES, Outcome, lane_id
from clew.protocol.orders import Order
from clew.store.engine.database import Database
from clew.store.operations.claim import claim
from clew.store.operations.journal import entries_page
from clew.store.operations.sessions import lane_sessions

PART = "history"
SECONDS = 20.0
SAMPLES = 40
MOST = 1.3
PAGE = 20

SMALL = Size(lanes=5, runs=1_000, sessions=100, entries=20)
QUICK = Size(lanes=500, runs=100_000, sessions=10_000, entries=10_000)
LARGE = Size(lanes=1_000, runs=1_000_000, sessions=100_000, entries=10_000)

CLAIM, COMMITTED = "claim", "claim with its commit"
LOOK_UP, THREAD = "candidate sessions", "page of a thread"


@dataclass(frozen=True, slots=True)
class Filled:
    database: Database
    size: Size
    chance: random.Random

    def sample(self) -> dict[str, float]:
        """One time of each, in milliseconds; the lane is another one every time."""
        thread = self.size.thread(self.chance.randrange(self.size.lanes))
        accept_one(self.database, thread)
        inner, orders = [0.0], list[Order]()

        def claims(connection: Connection) -> None:
            inner[0] = milliseconds(lambda: orders.extend(claim(connection, ASKS)))

        committed = milliseconds(lambda: self.database.do(claims))
        (order,) = orders
        assert order.plan.outcome is Outcome.RESUME, order.plan.words
        tell(self.database, order)
        complete(self.database, order)
        lane = lane_id(ADA, thread)
        return {
            CLAIM: inner[0],
            COMMITTED: committed,
            LOOK_UP: self._read(lambda connection: len(lane_sessions(connection, lane)) == CANDIDATES),
            THREAD: self._read(lambda connection: len(entries_page(connection, LONG, most=PAGE)) == PAGE),
        }

    def _read(self, operation: Callable[[Connection], bool]) -> float:
        def timed(connection: Connection) -> float:
            found = [False]

            def once() -> None:
                found[0] = operation(connection)

            taken = milliseconds(once)
            assert found[0]
            return taken

        return self.database.read(timed)


def measure(ground: Ground, large: Size = LARGE) -> Table:
    table = Table(PART, ("database", "what, p50", "few ms", "many ms", "ratio", "lowest to highest", "at most"))
    for kind in Kind:
        with ground.empty(kind) as few, ground.empty(kind) as many:
            fill(kind, few, SMALL)
            fill(kind, many, large)
            with opened(few) as one, opened(many) as other:
                chance = random.Random(1)
                _compare(table, kind, Filled(one, SMALL, chance), Filled(other, large, chance))
    table.note = (
        f"Few is {SMALL.runs:,} finished runs and {SMALL.sessions:,} sessions in {SMALL.lanes} lanes, and a thread of"
        f" {SMALL.entries} entries; many is {large.runs:,} runs and {large.sessions:,} sessions in {large.lanes:,}"
        f" lanes, and a thread of {large.entries:,}."
    )
    return table


def _compare(table: Table, kind: Kind, few: Filled, many: Filled) -> None:
    middles: dict[str, tuple[list[float], list[float]]] = {
        name: ([], []) for name in (CLAIM, COMMITTED, LOOK_UP, THREAD)
    }
    for number in rounds(SECONDS):
        taken = [(few.sample(), many.sample()) for _ in range(SAMPLES)]
        if number:
            for name, sides in middles.items():
                for at, side in enumerate(sides):
                    side.append(percentile([sample[at][name] for sample in taken], 0.5))
    for name, (small, large) in middles.items():
        growth = ratios(large, small)
        wanted = table.judge(f"{kind}, {name}", growth.median <= MOST, f"{MOST}")
        table.add(kind, name, f"{spread(small).median:.3f}", f"{spread(large).median:.3f}", *ratio(growth), wanted)
