"""Cycles: runs that are claimed, reported and finished each second, beside the floor."""

from collections.abc import Callable

from bench.store.databases import Ground, Kind
from bench.store.floor import floor
from bench.store.scene import accept_all, furnish, new_threads, short_cycle, whole_cycle
from bench.store.table import Table, ratio
from bench.store.timing import Work, rate, ratios, rounds, spread
from clew.store.database import Database

PART = "cycles"
SECONDS = 25.0
CYCLES = {1: 60, 8: 20}
"""How many callers at once, and the cycles of each in a round. The floor is faster and takes three times as many."""

MANY = 8
TARGETS = {Kind.SQLITE: 0.5, Kind.POSTGRESQL: 0.25}
WHOLE, SHORT = "claim, report, finish", "claim, finish"


def measure(ground: Ground) -> Table:
    table = Table(
        PART, ("database", "callers", "what", "ours /s", "floor /s", "ratio", "lowest to highest", "at least")
    )
    for kind in Kind:
        with (
            ground.fresh(kind) as database,
            ground.empty(kind) as bare,
            floor(kind, bare, MANY) as below,
        ):
            furnish(database)
            for callers in CYCLES:
                _compare(table, kind, callers, database, below)
    return table


def _compare(table: Table, kind: Kind, callers: int, database: Database, below: Callable[[int], Work]) -> None:
    times = CYCLES[callers]
    steps: dict[str, Callable[[], float]] = {
        WHOLE: lambda: _ours(database, callers, times, whole_cycle),
        "floor": lambda: rate(callers, times * 3, below),
        SHORT: lambda: _ours(database, callers, times, short_cycle),
        "alone": lambda: rate(1, CYCLES[1] * 3, below),
    }
    got: dict[str, list[float]] = {name: [] for name in steps}
    for number in rounds(SECONDS):
        for name, step in steps.items():
            taken = step()
            if number:
                got[name].append(taken)
    shown = [(WHOLE, WHOLE, "floor"), (SHORT, SHORT, "floor")]
    if kind is Kind.SQLITE and callers == MANY:
        shown.append((f"{WHOLE}; the floor with one caller", WHOLE, "alone"))
    for what, ours, beside in shown:
        against = ratios(got[ours], got[beside])
        wanted = ""
        if callers == MANY and what == WHOLE:
            least = TARGETS[kind]
            wanted = table.judge(f"{kind}, {callers} callers, {what}", against.median >= least, f"{least}")
        speeds = (f"{spread(got[each]).median:,.0f}" for each in (ours, beside))
        table.add(kind, str(callers), what, *speeds, *ratio(against), wanted)


def _ours(database: Database, callers: int, times: int, cycle: Callable[[Database], None]) -> float:
    accept_all(database, new_threads(database, callers * times))
    return rate(callers, times, lambda _: lambda: cycle(database))
