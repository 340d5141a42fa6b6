"""Cycles: runs that are claimed and finished each second, beside the floor."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from bench.store.databases import Ground, Kind
from bench.store.floor import floor
from bench.store.scene import Place, accept_all, complete, furnish, new_threads, tell
from bench.table import Table, ratio
from bench.timing import Work, rate, ratios, rounds, spread
from clew.protocol.orders import ClaimRequest, Order
from clew.store.engine.database import Database
from clew.store.operations.claim import claim

PART = "cycles"
SECONDS = 25.0
CYCLES = 16
"""Runs of each caller in a round. The floor is faster and takes six times as many."""

CALLERS = (1, 8)
TARGETS = {Kind.SQLITE: 0.5, Kind.POSTGRESQL: 0.25}
BATCHES = (1, 8)
"""How many runs one claim asks for: a daemon asks for as many as it has places free. The larger is judged."""


def measure(ground: Ground) -> Table:
    table = Table(
        PART,
        ("database", "callers", "runs in a claim", "ours /s", "floor /s", "ratio", "lowest to highest", "at least"),
    )
    for kind in Kind:
        with (
            ground.fresh(kind) as database,
            ground.empty(kind) as bare,
            floor(kind, bare, max(CALLERS)) as below,
        ):
            callers = [furnish(database, str(at)) for at in range(max(CALLERS))]
            for many in CALLERS:
                _compare(table, kind, database, callers[:many], below)
    return table


def _compare(
    table: Table, kind: Kind, database: Database, callers: Sequence[Place], below: Callable[[int], Work]
) -> None:
    ours: dict[int, list[float]] = {batch: [] for batch in BATCHES}
    floors: list[float] = []
    for number in rounds(SECONDS):
        taken = {batch: _ours(database, callers, batch) for batch in BATCHES}
        under = rate(len(callers), CYCLES * 6, below)
        if number:
            floors.append(under)
            for batch, speed in taken.items():
                ours[batch].append(speed)
    for batch in BATCHES:
        against, wanted = ratios(ours[batch], floors), ""
        if len(callers) == max(CALLERS) and batch == max(BATCHES):
            name = f"{kind}, {len(callers)} callers, {batch} in a claim"
            wanted = table.judge(name, against.median >= TARGETS[kind], f"{TARGETS[kind]}")
        speeds = (f"{spread(each).median:,.0f}" for each in (ours[batch], floors))
        table.add(kind, str(len(callers)), str(batch), *speeds, *ratio(against), wanted)


def _ours(database: Database, callers: Sequence[Place], batch: int) -> float:
    """Every caller claims its runs, then each of them is told to its agent, then every caller finishes its own.

    The claims and the finishes are what is timed. A prompt goes out between them, and is reported: a run that told
    its agent nothing cannot have been answered.
    """
    for place in callers:
        accept_all(database, new_threads(database, CYCLES), place.agent)
    orders: list[list[Order]] = [[] for _ in callers]

    def claims(at: int) -> None:
        asks = ClaimRequest("bench", (callers[at].runtime,), batch)
        while len(orders[at]) < CYCLES:
            orders[at] += database.do(lambda connection: claim(connection, asks))

    def finishes(at: int) -> None:
        for order in orders[at]:
            complete(database, order)

    with ThreadPoolExecutor(len(callers), thread_name_prefix="caller") as pool:
        claiming = _timed(pool, len(callers), claims)
        for own in orders:
            for order in own:
                tell(database, order)
        finishing = _timed(pool, len(callers), finishes)
    return len(callers) * CYCLES / (claiming + finishing)


def _timed(pool: ThreadPoolExecutor, many: int, work: Callable[[int], object]) -> float:
    """Seconds until all of them are done, from the moment when all could begin."""
    start = Barrier(many + 1)

    def each(at: int) -> float:
        start.wait()
        work(at)
        return time.perf_counter()

    going = [pool.submit(each, at) for at in range(many)]
    start.wait()
    began = time.perf_counter()
    return max(one.result() for one in going) - began
