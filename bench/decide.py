"""How long one decision takes, and whether it grows with a lane's history. `make bench` runs this.

The caller passes the 20 newest generations of the lane in this scope, newest first, read by an index on (lane, scope,
generation). Older ones are never read, so a decision cannot grow with them; the second table shows it, with a real
index over up to 10,000 generations.

The machine may be busy, so every figure is taken in interleaved rounds, beside a yardstick of plain Python in the same
round. The ratio to the yardstick is judged, because it holds whatever else the machine does. The yardstick
takes 4 µs on the machine that the limit of 60 µs was set for, which makes the limit 15 times the yardstick.
"""

import sqlite3
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from clew.kernel import (
    Archive,
    Capabilities,
    Cursor,
    Demand,
    Directory,
    EntrySeq,
    Here,
    LaneId,
    LaneScope,
    MachineId,
    NativeId,
    PermissionMode,
    PlaceFacts,
    Policy,
    ProjectId,
    ProviderName,
    ReadState,
    RunId,
    Session,
    SessionId,
    SessionLimits,
    SessionState,
    Situation,
    Source,
    SourceRead,
    Wake,
    WakeId,
    WakeReason,
    Workspace,
    WorkspaceId,
    WorkspaceKind,
    coalesce,
    decide,
    runtime_id,
)

CANDIDATES = 20
LIMIT_US = 60.0
YARDSTICK_US = 4.0
GROWTH_LIMIT = 1.3
ROUNDS = 60
CALLS = 60

LANE = LaneId("lane")
LAPTOP, PROVIDER = MachineId("laptop"), ProviderName("coder")
HERE = runtime_id(LAPTOP, PROVIDER, "/srv/home")
THERE = runtime_id(MachineId("server"), PROVIDER, "/srv/home")
PLACE = Workspace(WorkspaceId("w"), WorkspaceKind.WORKTREE, Directory("/srv/work"), ProjectId("p"), LAPTOP)
HOME = Workspace(WorkspaceId("h"), WorkspaceKind.AGENT_HOME, Directory("/srv/agent"))
DEMAND: Demand = coalesce([Wake(WakeId("w"), LANE, WakeReason.COMMENT, entries=(EntrySeq(40),))])
ABLE = Capabilities(
    resume=True,
    fork=True,
    fork_into=True,
    archive=True,
    archive_formats=frozenset({"coder/1"}),
    choose_id=True,
    reapply_mode=True,
    change_model=True,
    modes=frozenset(PermissionMode),
    id_shape=r"[0-9a-f-]{8,}",
)


def session(generation: int) -> Session:
    return Session(
        id=SessionId(f"s{generation}"),
        generation=generation,
        lane=LaneId("la" + "ne"),
        scope=LaneScope(LaneId("la" + "ne")),
        provider=PROVIDER,
        runtime=HERE,
        directory=Directory("/srv/work"),
        cursor=Cursor(1, NativeId(f"{generation:08x}-0000")),
        seen=EntrySeq(30),
        mode=PermissionMode.EDIT,
        turns=5,
    )


def situation(sessions: list[Session], able: Capabilities = ABLE, policy: Policy | None = None) -> Situation:
    return Situation(
        run=RunId("run"),
        lane=LANE,
        scope=LaneScope(LANE),
        here=Here(LAPTOP, HERE, PROVIDER, able, mode=PermissionMode.EDIT),
        demand=DEMAND,
        sources=(SourceRead(Source.LANE, ReadState.ANSWERED, tuple(sessions)),),
        head=EntrySeq(40),
        place=PlaceFacts(agent_home=HOME, project=ProjectId("p"), remembered=PLACE, prepared=PLACE),
        policy=policy or Policy(),
        now=1000.0,
        fresh_id=NativeId("ffffffff-0000"),
    )


def scenarios() -> dict[str, Situation]:
    newest_first = [session(generation) for generation in range(CANDIDATES, 0, -1)]
    elsewhere = [replace(each, runtime=THERE) for each in newest_first]
    archived = [replace(each, archive=Archive("coder/1", EntrySeq(30))) for each in elsewhere]
    poisoned = [replace(each, state=SessionState.POISONED) for each in newest_first[:-1]] + newest_first[-1:]
    wider = [replace(each, mode=PermissionMode.FULL) for each in newest_first]
    return {
        "the newest fits (most wakes)": situation(newest_first),
        "19 are poisoned, the oldest fits": situation(poisoned),
        "all live on another machine": situation(elsewhere),
        "all would have to be carried": situation(archived),
        "all have a wider mode that stays": situation(wider, replace(ABLE, reapply_mode=False)),
        "all are over their limit": situation(newest_first, policy=Policy(limits=SessionLimits(turns=5))),
    }


def yardstick() -> None:
    total = 0
    for number in range(200):
        total += number


def timed(call: Callable[[], object], calls: int = CALLS) -> float:
    """The median of that many calls, in microseconds."""
    clock, taken = time.perf_counter_ns, []
    for _ in range(calls):
        began = clock()
        call()
        taken.append(clock() - began)
    return statistics.median(taken) / 1000


def in_rounds(calls: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            rounds[name].append(timed(call))
    return rounds


def by_situation() -> bool:
    listed = scenarios()
    rounds = in_rounds({"yardstick": yardstick, **{name: deciding(each) for name, each in listed.items()}})
    base = rounds.pop("yardstick")
    limit = LIMIT_US / YARDSTICK_US
    print(f"decide() with {CANDIDATES} candidate sessions, µs (limit {LIMIT_US:.0f}, or {limit:.0f} x the yardstick)\n")
    print(f"{'':<36}{'quietest':>9}{'median':>9}{'x yardstick':>13}  outcome")
    ratios = []
    for name, taken in rounds.items():
        ratio = statistics.median(each / against for each, against in zip(taken, base, strict=True))
        ratios.append(ratio)
        plan = decide(listed[name])
        print(
            f"{name:<36}{min(taken):9.1f}{statistics.median(taken):9.1f}{ratio:13.1f}  {plan.outcome} ({plan.reason})"
        )
    pooled = [statistics.median(taken[at] for taken in rounds.values()) for at in range(ROUNDS)]
    print(f"{'median over all of them':<36}{min(pooled):9.1f}{statistics.median(pooled):9.1f}")
    print(f"{'the yardstick':<36}{min(base):9.1f}{statistics.median(base):9.1f}{1:13.1f}")
    return max(ratios) < limit


def deciding(known: Situation) -> Callable[[], object]:
    return lambda: decide(known)


def by_history() -> bool:
    """The newest 20 of ever more generations, read through an index and decided."""
    sizes = (20, 100, 1_000, 10_000)
    readers = {size: lane_with(size) for size in sizes}
    rounds = in_rounds(
        {
            **{f"read {size}": reader for size, reader in readers.items()},
            **{f"decide {size}": deciding(situation(list(map(session, reader())))) for size, reader in readers.items()},
        }
    )
    print(f"\n{'generations in the lane':<26}{'index read':>12}{'decide':>9}{'x the smallest':>16}")
    first = rounds[f"decide {sizes[0]}"]
    ratios = []
    for size in sizes:
        taken = rounds[f"decide {size}"]
        ratios.append(statistics.median(each / against for each, against in zip(taken, first, strict=True)))
        print(f"{size:<26,}{min(rounds[f'read {size}']):12.1f}{min(taken):9.1f}{ratios[-1]:16.2f}")
    return max(ratios) < GROWTH_LIMIT


def lane_with(generations: int) -> Callable[[], list[int]]:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE sessions (lane TEXT, scope TEXT, generation INTEGER)")
    database.execute("CREATE UNIQUE INDEX newest ON sessions (lane, scope, generation DESC)")
    rows = ((LANE, "lane", generation) for generation in range(1, generations + 1))
    database.executemany("INSERT INTO sessions VALUES (?, ?, ?)", rows)
    query = "SELECT generation FROM sessions WHERE lane = ? AND scope = ? ORDER BY generation DESC LIMIT ?"
    return lambda: [row[0] for row in database.execute(query, (LANE, "lane", CANDIDATES))]


if __name__ == "__main__":
    fast, flat = by_situation(), by_history()
    print(f"\nmedian under {LIMIT_US / YARDSTICK_US:.0f} x the yardstick in every situation: {'yes' if fast else 'NO'}")
    print(f"flat up to 10,000 generations (at most {GROWTH_LIMIT} times): {'yes' if flat else 'NO'}")
    sys.exit(0 if fast and flat else 1)
