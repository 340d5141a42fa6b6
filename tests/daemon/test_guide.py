"""The guide, a real program, through the daemon: kept warm, asked, killed idle and killed at work."""

import json
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from clew.daemon.limits import Limits
from clew.kernel import Answer, SilenceLimits
from clew.ports.provider import Deadlines
from clew.protocol.machine import AgentProgram
from clew.store.operations.approvals import answer_approval, expire_approvals
from clew.store.schema.tables import approvals
from tests.daemon.kit import DEADLINES, QUICK, World, run, until, world


@asynccontextmanager
async def guided(
    place: Path, mode: str = "full", limits: Limits = QUICK, deadlines: Deadlines = DEADLINES
) -> AsyncIterator[World]:
    async with world(place, limits, deadlines=deadlines) as there:
        await there.add_agent("ada", AgentProgram("guide", home={"GUIDE_HOME": str(place / "guide")}), mode=mode)
        there.add_thread()
        yield there


def processes(place: Path) -> list[int]:
    """The guide's own, by the home they were given."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            mine = f"GUIDE_HOME={place / 'guide'}".encode() in (entry / "environ").read_bytes().split(b"\0")
            program = b"clew.providers.guide.agent" in (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if mine and program:
            found.append(int(entry.name))
    return found


@pytest.mark.case("X01", "P10")
def test_it_is_kept_warm_and_goes_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with guided(tmp_path) as there:
            await there.tell("SAY: one")
            (first,) = processes(tmp_path)
            row = await there.tell("and now?")
            assert processes(tmp_path) == [first]
            assert row.claim == "resumed"
            assert 'Prompts that I remember: 2, from "SAY: one" to "and now?"' in there.said()[-1][1]

    run(scene())


@pytest.mark.case("A03")
def test_a_command_waits_for_a_person(tmp_path: Path) -> None:
    async def scene() -> None:
        async with guided(tmp_path, "ask") as there:
            said = there.say("RUN: echo was-allowed")
            await until(lambda: len(there.rows(approvals)) == 1, "it is asked")
            (asked,) = there.rows(approvals)
            assert json.loads(asked.question)["command"] == "echo was-allowed"
            there.write(lambda link: answer_approval(link, asked.id, Answer.APPROVE, "a person"))
            await there.served(said)
            assert "was-allowed" in there.said()[-1][1]

    run(scene())


@pytest.mark.case("A03")
def test_a_command_that_nobody_allows_in_time_is_not_run(tmp_path: Path) -> None:
    async def scene() -> None:
        async with guided(tmp_path, "ask") as there:
            said = there.say("RUN: touch it-was-run; pwd")
            await until(lambda: len(there.rows(approvals)) == 1, "it is asked")
            there.write(lambda link: link.execute(update(approvals).values(expires_at=1.0)))
            there.write(expire_approvals)
            await there.served(said)
            assert "This was not allowed in the mode ask." in there.said()[-1][1]
            assert not list(tmp_path.rglob("it-was-run"))

    run(scene())


def test_what_was_done_before_is_not_done_again_in_a_new_session(tmp_path: Path) -> None:
    async def scene() -> None:
        async with guided(tmp_path) as there:
            file = tmp_path / "done"
            await there.tell(f"RUN: echo one >> {file}")
            await there.restart()
            for kept in (tmp_path / "guide" / "sessions").iterdir():
                kept.unlink()
            row = await there.tell(f"RUN: echo two >> {file}")
            assert row.claim == "started"
            # It was told of both, and did what it was asked for.
            (kept,) = (tmp_path / "guide" / "sessions").glob("*.json")
            assert "echo one" in kept.read_text()
            assert file.read_text() == "one\ntwo\n"

    run(scene())


@pytest.mark.case("L13", "P08")
def test_one_that_was_killed_while_idle_is_started_anew_and_told(tmp_path: Path) -> None:
    async def scene() -> None:
        async with guided(tmp_path) as there:
            await there.tell("SAY: one")
            (pid,) = processes(tmp_path)
            os.kill(pid, signal.SIGKILL)
            await until(lambda: processes(tmp_path) == [], "it is gone")
            row = await there.tell("and now?")
            assert (row.state, row.claim) == ("succeeded", "resumed"), row.words
            assert "Prompts that I remember: 2" in there.said()[-1][1]

    run(scene())


@pytest.mark.case("L12", "P12", "L11")
def test_one_that_was_killed_at_work_is_resumed_and_told_what_is_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with guided(tmp_path) as there:
            said = there.say("HANG")
            await until(lambda: len(there.sessions()) == 1, "its session is pinned")
            (pid,) = processes(tmp_path)
            os.kill(pid, signal.SIGKILL)
            await until(lambda: there.runs()[0].state == "failed", "the run has ended", 20)
            assert there.runs()[0].outcome == "run:retrying"
            # A person goes earlier than the retry, and takes it along.
            row = await there.tell("SAY: still here")
            assert (row.state, row.claim) == ("succeeded", "resumed"), row.words
            assert there.wake_row(said).state == "served"

    run(scene())


@pytest.mark.case("L07")
def test_a_turn_that_hangs_is_said_to_end_when_its_program_is_ended(tmp_path: Path) -> None:
    async def scene() -> None:
        limits = replace(QUICK, silence=SilenceLimits(flag_after=0.3, end_after=60.0))
        async with guided(tmp_path, "full", limits, replace(DEADLINES, silence=2.0)) as there:
            there.say("HANG")
            await until(lambda: "No output" in (there.waits().words or ""), "it is said that it is silent")
            said = there.waits()
            assert said.state == "running"
            # Its provider ends it after 2 s, which is sooner than the limit of a turn.
            assert re.search(r"The turn is ended in [0-2] s if nothing comes\.", said.words or ""), said.words
            await until(lambda: there.runs()[0].state == "failed", "it is ended")
            assert "The agent said nothing for 2 s." in there.runs()[0].words

    run(scene())
