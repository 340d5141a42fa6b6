"""Ending: nothing runs on, whoever ended it, and what is left of the session can be found again."""

import asyncio
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from clew.ports.events import Ending, ErrorCode, Text
from clew.ports.fault import Fault
from clew.ports.provider import Settings
from clew.programs.process_tag import Owner, new_tag
from clew.programs.state import Ledger
from tests.providers.contract.stage import Stage, core, eventually
from tests.providers.contract.test_interrupt import until

GONE = 2**22 + 1
"""The number of no process: it is beyond what the system gives out."""


async def test_a_close_ends_all_that_was_started(stage: Stage) -> None:
    session = await stage.open()
    pid = stage.file("pid")
    # A process that left its group, as a server started by an agent would.
    command = f"setsid sleep 300 >/dev/null 2>&1 </dev/null & echo $! > {pid}; sleep 0.1"
    await stage.turn(session, stage.rig.run(command))
    assert await eventually(pid.exists)
    await session.close()
    assert not stage.left()


async def test_a_session_that_is_closed_takes_no_prompt(stage: Stage) -> None:
    session = await stage.open()
    await session.close()
    await session.close()
    await session.interrupt()
    with pytest.raises(Fault):
        await stage.turn(session, "anybody there?")


@core
@pytest.mark.case("L12", "P12", "L11")
async def test_a_program_killed_in_a_turn_is_told_within_seconds(stage: Stage) -> None:
    session = await stage.open()
    await stage.turn(session, "first")
    turn = await until(session, stage.rig.hang(), lambda event: isinstance(event, Text))
    began = time.monotonic()
    stage.rig.kill("a")
    turned = await turn
    assert time.monotonic() - began < 10
    assert turned.done.ending is Ending.FAILED
    assert turned.failed.code is ErrorCode.PROGRAM_ENDED
    assert turned.failed.words
    cursor = session.cursor
    await session.close()
    if not stage.provider.capabilities.resume:
        stage.unable("sessions cannot be resumed")
        return
    again = await stage.open(cursor)
    seen = (await stage.turn(again, "after")).seen
    assert (seen.first, seen.last) == ("first", "after")


@pytest.mark.case("L12", "L11")
async def test_a_program_killed_in_a_tool_leaves_no_tool_behind(stage: Stage) -> None:
    session = await stage.open()
    await stage.turn(session, "first")
    begun, ended = stage.file("begun"), stage.file("ended")
    turn = asyncio.create_task(stage.turn(session, stage.rig.run(f"touch {begun}; sleep 2; touch {ended}")))
    assert await eventually(begun.exists, 20.0)
    stage.rig.kill("a")
    assert (await turn).done.ending is Ending.FAILED
    cursor = session.cursor
    await session.close()
    assert not stage.left()
    if stage.provider.capabilities.resume:
        again = await stage.open(cursor)
        assert (await stage.turn(again, "after")).seen.first == "first"
    await asyncio.sleep(max(0.0, 2.2 - (time.time() - begun.stat().st_mtime)))
    assert not ended.exists()


@pytest.mark.case("L01")
async def test_what_a_crash_left_is_ended_by_the_next_provider(stage: Stage, tmp_path: Path) -> None:
    def kept(settings: Settings) -> Settings:
        return replace(settings, state=tmp_path)

    if not stage.rig.starts_programs:
        stage.unable("it starts no program")
        return
    mark = new_tag()
    left = subprocess.Popen(["sleep", "300"], env=mark.environment)
    try:
        Ledger(tmp_path / "ledger").add(mark, Owner(GONE, 1))
        provider = stage.anew(change=kept)
        session = await stage.open(provider=provider)
        assert left.wait(5) < 0
        turn = asyncio.create_task(stage.turn(session, stage.rig.slow(1.0)))
        assert await eventually(lambda: any((tmp_path / "ledger").iterdir())), "a program that runs is in the ledger"
        await turn
        await session.close()
        await provider.close()
        assert not any((tmp_path / "ledger").iterdir()), "a program that has ended is still in the ledger"
    finally:
        left.kill()
        left.wait()
