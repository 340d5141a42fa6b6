"""Everything is killed at work, again and again; afterwards every wake is accounted for."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.control.runs import retry_run
from clew.programs.process_tag import VARIABLE
from clew.protocol.requests import Retry
from clew.store.faults import HeldByAnother
from clew.store.schema.tables import lanes, runs, wakes
from tests.control.kit import USER
from tests.daemon.killed import scribe
from tests.daemon.kit import World, run, until

KILLS = 12 if os.environ.get("CLEW_THOROUGH") else 6
ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def going(place: Path) -> Iterator[subprocess.Popen[str]]:
    """The process, killed in the end with nothing said to it."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.daemon.killed", str(place)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield child
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(20)
        assert child.stdout is not None
        child.stdout.close()


async def opened(place: Path) -> World:
    """A program that was being started when its parent was killed has the database's lock until it is started."""
    for _ in range(200):
        try:
            return World(place)
        except HeldByAnother:
            await asyncio.sleep(0.05)
    return World(place)


@pytest.mark.case("L01", "L02", "W07")
def test_no_wake_is_lost_and_none_is_told_twice(tmp_path: Path) -> None:
    chance = random.Random(7)
    texts: list[str] = []

    async def furnish() -> None:
        there = World(tmp_path)
        await there.add_agent("ada", scribe(there.place), max_live=4)
        await there.close()

    async def say() -> None:
        """While nobody serves, somebody writes."""
        there = await opened(tmp_path)
        for _ in range(3):
            texts.append(f"message {len(texts)}")
            there.say(texts[-1], thread=there.add_thread(f"chat-{len(texts)}"))
        await there.close()

    async def settle() -> None:
        there = await opened(tmp_path)
        there.programs = [scribe(there.place)]
        await there.start()
        await until(lambda: _undecided(there) == [], "everything comes to an end, or to a person", 60)
        # The agent keeps no record of its own, so a person says what it was told, who can look.
        for held in there.rows(runs, state="queued"):
            (lane,) = there.rows(lanes, id=held.lane_id)
            (text,) = [body for author, body in there.said(lane.thread_id) if author == "human"]
            await retry_run(there.services, USER, held.id, Retry(taken=text in _told(tmp_path)))
        await until(lambda: _open(there) == [], "what a person decided comes to an end", 60)
        assert {row.code for row in there.rows(wakes) if row.state != "served"} <= {"cancelled:by-user"}
        assert {row.state for row in there.rows(wakes)} <= {"served", "cancelled"}
        assert len(there.rows(wakes)) == len(texts)
        assert {row.state for row in there.rows(runs)} <= {"succeeded", "failed", "lost", "cancelled"}
        # Each text once, whatever was killed when.
        assert sorted(_told(tmp_path)) == sorted(texts)
        await there.close()

    run(furnish())
    for _ in range(KILLS):
        run(say())
        with going(tmp_path) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            # From before it has claimed anything to after it has served it all.
            _wait(chance.random() * 0.25)
    run(settle(), 120)
    assert _left_behind(tmp_path) == []


def _open(there: World) -> list[str]:
    return [row.id for row in there.rows(wakes) if row.state in ("pending", "claimed")]


def _undecided(there: World) -> list[str]:
    """The lanes of open wakes that are not held for a person."""
    held = {row.lane_id for row in there.rows(runs, state="queued") if row.hold == "person"}
    return [row.lane_id for row in there.rows(wakes) if row.state in ("pending", "claimed") and row.lane_id not in held]


def _told(place: Path) -> list[str]:
    return (place / "told.txt").read_text().splitlines()


def _wait(seconds: float) -> None:
    run(asyncio.sleep(seconds))


def _left_behind(place: Path) -> list[str]:
    """Processes of the agent that nobody ended."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str(place).encode() in (entry / "cmdline").read_bytes():
                environment = (entry / "environ").read_bytes()
                if VARIABLE.encode() in environment:
                    found.append(entry.name)
    return found
