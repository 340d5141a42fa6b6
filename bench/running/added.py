"""What Clew adds to a warm turn of a real agent: the same turn by its provider alone, and from the wake to its end."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.server import Server, server
from bench.table import Table
from bench.timing import spread
from bench.wakes import served
from clew.kernel import PermissionMode
from clew.ports.events import Done
from clew.ports.provider import LiveSession, OpenSpec
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
                with server(root / "data") as running:
                    alone, through = asyncio.run(_in_turns(running, rig))
            finally:
                rig.close()
        more = statistics.median(through) - statistics.median(alone)
        met = table.judge(name, more <= MOST, f"{MOST:.0f} ms at most")
        table.add(name, _cell(alone), _cell(through), f"{more:.0f} ms", met)
    return table


def _cell(taken: Sequence[float]) -> str:
    found = spread(taken)
    return f"{found.median:.0f} ms ({found.low:.0f} to {found.high:.0f})"


async def _in_turns(running: Server, rig: Rig) -> tuple[list[float], list[float]]:
    """A turn of the one, a turn of the other: what else the machine does is borne by both."""
    provider = rig.make(rig.settings("a"))
    alone, through = [], []
    try:
        session = await provider.open(OpenSpec(rig.directory("alone"), PermissionMode.EDIT))
        ref = await asyncio.to_thread(_hire, running, rig)
        for number in range(TURNS + 2):
            words = rig.say(f"turn {number}")
            alone.append(await _by_itself(session, words))
            through.append(await asyncio.to_thread(_turn, running, ref, words))
        await session.close()
    finally:
        await provider.close()
    # The first ones open what the others find warm.
    return alone[2:], through[2:]


async def _by_itself(session: LiveSession, words: str) -> float:
    began = time.perf_counter()
    events = [event async for event in session.turn(words)]
    assert isinstance(events[-1], Done)
    return (time.perf_counter() - began) * 1e3


def _hire(running: Server, rig: Rig) -> str:
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
    ref: str = running.post("/chats", {"agent": "warm"})["ref"]
    return ref


def _turn(running: Server, ref: str, words: str) -> float:
    began = time.time()
    wake = running.post(f"/threads/{ref}/words", {"text": words})["wake"]["id"]
    (ended,) = served(running, [wake])
    return float((ended["ended_at"] - began) * 1e3)
