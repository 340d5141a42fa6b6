"""Interrupts: they reach the agent and what it runs, and the session goes on afterwards."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.ports.events import Ending, Event, Text
from clew.ports.fault import Fault
from clew.ports.provider import LiveSession
from tests.providers.contract.stage import Stage, Turned, core, eventually


async def until(session: LiveSession, prompt: str, reached: Callable[[Event], bool]) -> "asyncio.Task[Turned]":
    """Begin a turn and come back when it has come so far."""
    events: list[Event] = []
    there = asyncio.Event()

    async def follow() -> Turned:
        async for event in session.turn(prompt):
            events.append(event)
            if reached(event):
                there.set()
        there.set()
        return Turned(tuple(events))

    task = asyncio.create_task(follow())
    await there.wait()
    assert not task.done(), f"the turn ended before it came so far: {events}"
    return task


async def stands_still(file: Path) -> bool:
    """Whether it stops growing before what writes to it would end by itself."""
    for _ in range(20):
        before = file.stat().st_size
        await asyncio.sleep(0.6)
        if file.stat().st_size == before:
            return True
    return False


@core
@pytest.mark.case("L05")
async def test_an_interrupt_ends_the_turn_and_not_the_session(stage: Stage) -> None:
    session = await stage.open()
    await stage.turn(session, "first")
    turn = await until(session, stage.rig.hang(), lambda event: isinstance(event, Text))
    began = time.monotonic()
    await session.interrupt()
    assert (await turn).done.ending is Ending.INTERRUPTED
    assert time.monotonic() - began < 10
    seen = (await stage.turn(session, "after")).seen
    assert (seen.first, seen.last) == ("first", "after")
    assert seen.users in (2, 3)


@pytest.mark.case("L05", "P12")
async def test_an_interrupted_session_is_found_again(stage: Stage) -> None:
    if not stage.provider.capabilities.resume:
        stage.unable("sessions cannot be resumed")
        return
    session = await stage.open()
    await stage.turn(session, "first")
    turn = await until(session, stage.rig.hang(), lambda event: isinstance(event, Text))
    await session.interrupt()
    await turn
    cursor = session.cursor
    await session.close()
    again = await stage.open(cursor)
    assert (await stage.turn(again, "after")).seen.first == "first"


@pytest.mark.case("L05")
async def test_an_interrupt_ends_what_the_turn_runs(stage: Stage) -> None:
    session = await stage.open()
    ticks = stage.file("ticks")
    goes_on = f"for i in $(seq 600); do echo $i >> {ticks}; sleep 0.1; done"
    turn = asyncio.create_task(stage.turn(session, stage.rig.run(goes_on)))
    assert await eventually(ticks.exists, 20.0)
    await session.interrupt()
    assert (await turn).done.ending is Ending.INTERRUPTED
    assert await stands_still(ticks), "what the turn ran goes on"


async def test_an_interrupt_of_nothing_does_nothing(stage: Stage) -> None:
    session = await stage.open()
    await session.interrupt()
    assert (await stage.turn(session, "first")).done.ending is Ending.COMPLETED
    await session.interrupt()
    assert (await stage.turn(session, "second")).seen.users == 2


@pytest.mark.case("C29")
async def test_a_session_takes_one_turn_at_a_time(stage: Stage) -> None:
    session = await stage.open()
    turn = await until(session, stage.rig.slow(1.0), lambda event: isinstance(event, Text))
    with pytest.raises(Fault):
        await stage.turn(session, "beside it")
    assert (await turn).done.ending is Ending.COMPLETED
    assert (await stage.turn(session, "after")).seen.users == 2
