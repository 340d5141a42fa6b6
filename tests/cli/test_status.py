"""`clew` alone: what needs the person, what runs, and the one next step."""

import fcntl
import json
import time
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


WAITS = replace(BUSY.queued[0], held="time", words="Waiting for the usage limit to reset.")


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
        screen.until("  run-1 chat-1 ada: The branch is gone. Once that is fixed, run")
        screen.until("`clew retry run-1`.\n")
        screen.until("Running\n  run-1 chat-1 ada running for ")
        screen.until("Waiting\n  run-9 issue-3 ada: Until 14:20, in 3 h.\n")
        screen.until("Next: `clew approvals allow ap_1`; all of them: `clew approvals`.\n")
        assert screen.ended() == 0


def test_the_next_step_is_the_one_that_helps_most() -> None:
    for found, step in (
        (BUSY, "`clew approvals allow ap_1`"),
        (replace(BUSY, approvals=(samples.QUESTION,)), "`clew approvals answer ap_2 TEXT`"),
        (replace(BUSY, approvals=()), "`clew why run-1`"),
        (replace(BUSY, approvals=(), failed=(samples.RUN,), held=()), "`clew why run-1` says why it failed"),
        (replace(BUSY, approvals=(), held=()), "`clew logs chat-1 -f`"),
        (
            replace(QUIET, queued=(WAITS,)),
            "nothing is needed: run-9 goes on by itself. `clew retry run-9` tries it now.",
        ),
        (replace(QUIET, ready=(samples.ISSUE,)), "`clew issue show issue-3` has the reply, `clew diff issue-3` what"),
        (replace(QUIET, ready=(replace(samples.ISSUE, project=None),)), "`clew issue show issue-3` has the reply."),
        (QUIET, "`clew threads`"),
        (replace(QUIET, threads=0), "`clew chat ada`"),
        (replace(QUIET, agents=("guide",)), "`clew chat guide`"),
    ):
        assert next_step(found).startswith(step)


def test_issues_that_are_ready_for_review_are_named(held: Stub) -> None:
    held.on("GET", "/overview", replace(QUIET, ready=(samples.ISSUE,)))
    with terminal("status", CLEW_DATA=str(held.data)) as screen:
        screen.until("Ready for review\n  issue-3 ada: The page is blank\n\nNext: ")
        assert screen.ended() == 0
        assert "Nothing needs you" not in screen.seen


def test_a_chat_without_a_title_is_listed_by_its_name(held: Stub) -> None:
    held.on("GET", "/overview", replace(QUIET, unread=(replace(samples.THREAD, title="", assignee="ada"),)))
    with terminal("status", CLEW_DATA=str(held.data)) as screen:
        screen.until("Unread\n  chat-1 ada\n")
        assert screen.ended() == 0


def test_a_server_that_is_not_ready_yet_is_not_called_stopped(held: Stub) -> None:
    (held.data / "address").unlink()
    with terminal("status", CLEW_DATA=str(held.data)) as screen:
        assert screen.ended() == 0
        assert screen.seen == "Clew is starting or stopping (process 4711).\n"


@pytest.mark.case("R13")
def test_a_run_that_waits_for_a_time_has_a_countdown(held: Stub) -> None:
    held.on("GET", "/overview", replace(QUIET, queued=(replace(WAITS, not_before=time.time() + 3 * 3600 + 60),)))
    with terminal("status", columns=200, CLEW_DATA=str(held.data)) as screen:
        screen.until("Waiting\n  run-9 issue-3 ada held until ")
        screen.until(", in 3 h: Waiting for the usage limit to reset.\n")
        assert screen.ended() == 0
