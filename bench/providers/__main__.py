"""`python -m bench.providers`: measures the agents that are named, or all of them, on the tests' loopback model."""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.process import Failed, run_benchmark
from bench.providers.contest import COMMAND_LINES, Contest, Memory, Round
from bench.table import Table, keep, ratio
from bench.timing import ratios, spread
from tests.providers.agents import Agents, installed
from tests.providers.rig import rigs
from tools.agents import CannotInstall, install

PART = "agents"
ROUNDS, FEW = 7, 2
"""The smaller is for a quick look."""

TARGETS: Mapping[str, float] = {"claude": 0.5, "codex": 0.5, "opencode": 0.1}
"""How long a warm turn may take at most, of the time that the program's own command line takes."""

COLD = 1.1


@dataclass(frozen=True, slots=True)
class Measured:
    agent: str
    version: str
    rounds: list[Round]
    memory: Memory


def main() -> int:
    asked = _asked()
    load = os.getloadavg()[0]
    agents = _agents()
    measured = [_measure(name, agents, FEW if asked.small else ROUNDS) for name in asked.agents or COMMAND_LINES]
    table = _table(measured)
    table.note = f"{os.cpu_count()} cores; load average {load:.1f} before, {os.getloadavg()[0]:.1f} after."
    print(f"\n{table.text()}")
    if asked.write:
        keep([(PART, table.text())])
    for row in table.missed:
        print(f"missed: {row}")
    return 1 if table.missed else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.providers", description="How fast agents answer.")
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=f"one or several of: {', '.join(COMMAND_LINES)}")
    parser.add_argument("--small", action="store_true", help=f"{FEW} rounds instead of {ROUNDS}, for a quick look")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/performance.md")
    asked = parser.parse_args()
    if asked.small and asked.write:
        parser.error("--small measures too little to be kept: leave out --write")
    unknown = set(asked.agents) - set(COMMAND_LINES)
    if unknown:
        parser.error(f"there is no agent {', '.join(sorted(unknown))}; there are {', '.join(COMMAND_LINES)}")
    return asked


def _agents() -> Agents:
    found = installed()
    if found is None:
        try:
            install()
        except CannotInstall as fault:
            raise Failed(f"the agents cannot be installed: {fault}") from fault
        found = installed()
    assert found is not None, "they were just installed"
    return found


def _measure(name: str, agents: Agents, many: int) -> Measured:
    print(f"{name} ...", file=sys.stderr, flush=True)
    (made,) = (rig for rig in rigs() if rig.name == name)
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as root:
        rig = made(Path(root).resolve(), agents)
        try:
            rounds, memory = asyncio.run(_contest(Contest(rig), many))
        finally:
            rig.close()
    return Measured(name, agents.programs[name].version, rounds, memory)


async def _contest(contest: Contest, many: int) -> tuple[list[Round], Memory]:
    memory = await contest.memory()
    provider, warm, _ = await contest.begin()
    beside, closes, other = await contest.begin()
    await closes.close()
    await beside.close()
    try:
        # The first warms up: files that are read for the first time, and a store that is made.
        rounds = [await contest.round(warm, other) for _ in range(many + 1)][1:]
    finally:
        await provider.close()
    return rounds, memory


def _table(measured: list[Measured]) -> Table:
    head = ("agent", "way", "median ms", "to its command line", "lowest to highest", "at most", "memory MiB")
    table = Table(PART, head)
    for each in measured:
        alone = [one.by_itself for one in each.rounds]
        ways = {
            "by its command line": (alone, None, ""),
            "resumed cold": ([one.cold for one in each.rounds], COLD, f"{_mib(each.memory.reaped)} once closed"),
            "warm": ([one.warm for one in each.rounds], TARGETS[each.agent], _mib(each.memory.warm)),
        }
        for way, (taken, most, memory) in ways.items():
            against, wanted = ratios(taken, alone), ""
            if most is not None:
                wanted = table.judge(f"{each.agent}, {way}", against.median <= most, f"{most}")
            named = f"{each.agent} {each.version}"
            middle = f"{spread(taken).median * 1000:,.0f}"
            table.add(named, way, middle, *(ratio(against) if most is not None else ("", "")), wanted, memory)
    return table


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f}"


if __name__ == "__main__":
    sys.exit(run_benchmark(main))
