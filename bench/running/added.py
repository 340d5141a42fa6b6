"""What Clew adds to a warm turn of a real agent: the same turn by its provider alone, and from the wake to its end."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.running.server import PATIENCE, Server, server
from bench.table import Table
from bench.timing import spread
from clew.kernel import PermissionMode
from clew.ports.events import Done
from clew.ports.provider import OpenSpec
from tests.providers.agents import installed
from tests.providers.rig import Rig, rigs

TURNS = 15
MOST = 30.0


def measure(agents: Sequence[str]) -> Table:
    table = Table("added", ("agent", "turn by its provider", "wake to finished", "added", "wanted"))
    for name in agents:
        with tempfile.TemporaryDirectory(prefix="clew-bench-") as directory:
            root = Path(directory).resolve()
            (made,) = (rig for rig in rigs() if rig.name == name)
            rig = made(root / "rig", installed())
            try:
                alone = asyncio.run(_alone(rig))
                with server(root / "data") as running:
                    through = _through(running, rig)
            finally:
                rig.close()
        more = statistics.median(through) - statistics.median(alone)
        met = table.judge(name, more <= MOST, f"{MOST:.0f} ms at most")
        table.add(name, _cell(alone), _cell(through), f"{more:.0f} ms", met)
    return table


def _cell(taken: Sequence[float]) -> str:
    found = spread(taken)
    return f"{found.median:.0f} ms ({found.low:.0f} to {found.high:.0f})"


async def _alone(rig: Rig) -> list[float]:
    provider = rig.make(rig.settings("a"))
    try:
        session = await provider.open(OpenSpec(rig.directory("alone"), PermissionMode.EDIT))
        taken = []
        for number in range(TURNS + 2):
            began = time.perf_counter()
            events = [event async for event in session.turn(rig.say(f"turn {number}"))]
            assert isinstance(events[-1], Done)
            taken.append((time.perf_counter() - began) * 1e3)
        await session.close()
    finally:
        await provider.close()
    return taken[2:]


def _through(running: Server, rig: Rig) -> list[float]:
    settings = rig.settings("b")
    asked = {
        "name": "warm",
        "provider": rig.name,
        "program": list(settings.program),
        "home": dict(settings.home),
        "environment": dict(settings.environment),
        "options": dict(settings.options),
    }
    running.post("/agents", asked)
    ref = running.post("/chats", {"agent": "warm"})["ref"]
    return [_turn(running, ref, rig.say(f"turn {number}")) for number in range(TURNS + 2)][2:]


def _turn(running: Server, ref: str, words: str) -> float:
    began, until = time.time(), time.monotonic() + PATIENCE
    wake = running.post(f"/threads/{ref}/words", {"text": words})["wake"]["id"]
    while (seen := running.get(f"/wakes/{wake}"))["ended_at"] is None:
        if time.monotonic() > until:
            raise SystemExit(f"The turn did not end: {seen['words']}")
        time.sleep(0.005)
    ended: float = seen["ended_at"]
    return (ended - began) * 1e3
