"""History: whether many old runs slow a new one. Two servers, one with few runs and one with many, asked by turns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from bench.process import Failed
from bench.server import Server
from bench.store.agent import NAME
from bench.store.databases import Ground, Kind
from bench.store.long_history import LONG, Size, fill
from bench.table import Table, ratio
from bench.timing import milliseconds, percentile, ratios, spread
from bench.wakes import one

PART = "history"
MOST = 1.3
PAGE = 20
WARM_UP = 5
_STRIDE = 7919


@dataclass(frozen=True, slots=True)
class Amount:
    large: Size
    rounds: int
    samples: int


FEW = Size(lanes=50, runs=1_000, sessions=1_000, entries=20)
"""More lanes than a daemon keeps warm sessions: with few and with many, every sample opens its session."""

FULL = Amount(Size(lanes=1_000, runs=1_000_000, sessions=100_000, entries=10_000), rounds=9, samples=20)
SMALL = Amount(Size(lanes=100, runs=20_000, sessions=2_000, entries=1_000), rounds=3, samples=5)

ANSWERED, CLAIMED, FINISHED, THREAD = "say: answered", "say: claimed", "say: finished", "page of a thread"


@dataclass(frozen=True, slots=True)
class Filled:
    server: Server
    size: Size
    numbers: Iterator[int] = field(default_factory=count)

    def sample(self) -> dict[str, float]:
        """One time of each, in milliseconds. The wake resumes a session of its lane; all lanes have their turn, in an
        order that is not the order of their rows."""
        thread = self.size.thread(next(self.numbers) * _STRIDE % self.size.lanes)
        said = {"text": "look at this", "agent": NAME}
        taken = one(self.server, lambda: self.server.post(f"/threads/{thread}/words", said)["wake"])
        if taken.decision != "resume":
            raise Failed(f"A wake in a lane with sessions should resume one, and the decision was {taken.decision!r}.")
        page = milliseconds(lambda: self.server.get(f"/threads/{LONG}?limit={PAGE}"))
        return {ANSWERED: taken.answered, CLAIMED: taken.claimed, FINISHED: taken.whole, THREAD: page}


def measure(ground: Ground, amount: Amount) -> Sequence[Table]:
    head = ("database", "what", "few p50 ms", "p95 ms", "many p50 ms", "p95 ms", "ratio of p50", "lowest to highest")
    table = Table(PART, (*head, "wanted"))
    for kind in Kind:
        with ground.store(kind) as few, ground.store(kind) as many:
            fill(few, FEW)
            fill(many, amount.large)
            with few.server() as one, many.server() as other:
                _compare(table, kind, amount, Filled(one, FEW), Filled(other, amount.large))
    large = amount.large
    table.note = (
        f"Few is {FEW.runs:,} finished runs and {FEW.sessions:,} sessions in {FEW.lanes} lanes, and a thread of"
        f" {FEW.entries} entries; many is {large.runs:,} runs and {large.sessions:,} sessions in {large.lanes:,}"
        f" lanes, and a thread of {large.entries:,}. {amount.rounds} rounds of {amount.samples} samples, by turns."
    )
    return (table,)


def _pair(few: Filled, many: Filled, few_first: bool) -> tuple[dict[str, float], dict[str, float]]:
    """Each goes first half of the time."""
    if few_first:
        return few.sample(), many.sample()
    later = many.sample()
    return few.sample(), later


def _compare(table: Table, kind: Kind, amount: Amount, few: Filled, many: Filled) -> None:
    rounds: list[list[tuple[dict[str, float], dict[str, float]]]] = []
    for number in range(amount.rounds + 1):
        taken = [_pair(few, many, at % 2 == 0) for at in range(amount.samples if number else WARM_UP)]
        if number:
            rounds.append(taken)
    for name in (ANSWERED, CLAIMED, FINISHED, THREAD):
        cells: list[str] = []
        middles: list[list[float]] = []
        for at in range(2):
            middles.append([percentile([pair[at][name] for pair in each], 0.5) for each in rounds])
            slow = percentile([pair[at][name] for each in rounds for pair in each], 0.95)
            cells += [f"{spread(middles[at]).median:.2f}", f"{slow:.2f}"]
        growth = ratios(middles[1], middles[0])
        met = growth.median <= MOST
        wanted = table.judge(f"{kind}, {name}", met, f"at most {MOST}", f"{growth.median:.2f}")
        table.add(kind, name, *cells, *ratio(growth), wanted)
