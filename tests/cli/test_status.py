"""`clew` alone: what needs the person, what runs, and the one next step."""

import fcntl
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from clew.cli.commands.status import next_step
from clew.protocol.overview import OverviewView
from tests.cli import samples
from tests.cli.stub import Stub
from tests.cli.terminal import terminal

QUIET = OverviewView((), (), (), (), ("ada", "guide"), 2)
BUSY = OverviewView(
    approvals=(samples.APPROVAL, samples.QUESTION),
    held=(samples.HELD,),
    live=(samples.GOING,),
    queued=(replace(samples.RUN, ref="run-9", thread="issue-3", state="queued", words="Until 14:20, in 3 h."),),
    agents=("ada",),
    threads=3,
)


@pytest.fixture
def held(stub: Stub) -> Iterator[Stub]:
    """The data directory is locked, as a running server has it."""
    with (stub.data / "holder").open("w") as file:
        json.dump({"pid": 4711, "host": "here", "since": samples.AT}, file)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        yield stub


@pytest.mark.parametrize("columns", [80, 200])
def test_what_needs_the_person_comes_first(held: Stub, columns: int) -> None:
    held.on("GET", "/overview", BUSY)
    with terminal(columns=columns, CLEW_DATA=str(held.data)) as screen:
        screen.until("Clew is running at http://127.0.0.1:")
        screen.until("Needs you\n  chat-1: ada wants to run a command:\n    $ rm -r build\n")
        screen.until("  chat-1: ada asks: Which one?\n    1. red\n")
        screen.until("  run-1 chat-1 ada: The branch is gone. Once that is fixed, run `clew retry run-1`.\n")
        screen.until("Running\n  run-1 chat-1 ada running for ")
        screen.until("Waiting\n  run-9 issue-3 ada: Until 14:20, in 3 h.\n")
        screen.until("Next: `clew approvals allow ap_1`; all of them: `clew approvals`.\n")
        assert screen.ended() == 0


def test_the_next_step_is_the_one_that_helps_most() -> None:
    for found, step in (
        (BUSY, "`clew approvals allow ap_1`"),
        (replace(BUSY, approvals=(samples.QUESTION,)), "`clew approvals answer ap_2 TEXT`"),
        (replace(BUSY, approvals=()), "`clew why run-1`"),
        (replace(BUSY, approvals=(), held=()), "`clew logs chat-1 -f`"),
        (QUIET, "`clew threads`"),
        (replace(QUIET, threads=0), "`clew chat ada`"),
        (replace(QUIET, agents=("guide",)), "`clew chat guide`"),
    ):
        assert next_step(found).startswith(step)


def test_a_server_that_is_not_ready_yet_is_not_called_stopped(held: Stub) -> None:
    (held.data / "address").unlink()
    with terminal("status", CLEW_DATA=str(held.data)) as screen:
        assert screen.ended() == 0
        assert screen.seen == "Clew is starting or stopping (process 4711).\n"
