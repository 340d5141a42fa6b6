"""Racing: what happens at the same time does not get mixed up, and a start that is called off leaves nothing."""

import asyncio

import pytest

from clew.kernel import Cursor, ProbeKind
from clew.ports.events import Ending
from clew.ports.fault import Fault
from tests.providers.contract.stage import Stage, core, eventually


@pytest.mark.case("P05", "S13")
async def test_two_starts_at_once_make_two_sessions(stage: Stage) -> None:
    one, two = await asyncio.gather(stage.open(), stage.open())
    first, second = await asyncio.gather(stage.turn(one, "one"), stage.turn(two, "two"))
    assert (first.seen.users, first.seen.last) == (1, "one")
    assert (second.seen.users, second.seen.last) == (1, "two")
    assert one.cursor is not None
    assert two.cursor is not None
    assert one.cursor.native_id != two.cursor.native_id


@core
@pytest.mark.case("P05", "C29")
@pytest.mark.parametrize("whose", ["the same provider's", "another's"])
async def test_an_open_session_is_not_opened_a_second_time(stage: Stage, whose: str) -> None:
    """Neither by the provider that has it open nor by another of the same home, as in another process of Clew."""
    cursor, _ = await stage.begun("first")
    if not stage.provider.capabilities.resume:
        stage.unable("sessions cannot be resumed")
        return
    other = stage.provider if whose == "the same provider's" else stage.anew()
    opened = await asyncio.gather(stage.open(cursor), stage.open(cursor, provider=other), return_exceptions=True)
    faults = [each for each in opened if isinstance(each, BaseException)]
    assert len(faults) == 1, f"{len(faults)} of two openings of one session were refused"
    assert isinstance(faults[0], Fault)
    (session,) = (each for each in opened if not isinstance(each, BaseException))
    for provider in {stage.provider, other}:
        assert (await provider.probe(cursor, stage.directory())).kind is ProbeKind.BUSY
        with pytest.raises(Fault):
            await stage.open(cursor, provider=provider)
    assert (await stage.turn(session, "second")).seen.users == 2
    await session.close()
    assert (await other.probe(cursor, stage.directory())).kind is ProbeKind.FOUND_HERE
    again = await stage.open(cursor, provider=other)
    assert (await stage.turn(again, "third")).seen.users == 3


async def called_off(stage: Stage, part: float, cursor: Cursor | None = None) -> bool:
    """Begin to open a session and call it off after that part of the usual time; False when it was too late."""
    start = asyncio.create_task(stage.open(cursor))
    await asyncio.sleep(part)
    start.cancel()
    try:
        session = await start
    except asyncio.CancelledError:
        return True
    await session.close()
    return False


@pytest.mark.case("P06")
async def test_a_start_that_is_called_off_leaves_nothing(stage: Stage) -> None:
    took = await _time_of_a_start(stage)
    before = await stage.ids()
    late = [not await called_off(stage, took * part) for part in (0.0, 0.3, 0.6, 0.9)]
    assert await eventually(lambda: not stage.left(), 5.0)
    after = await stage.ids()
    left = len(after - before) - sum(late) if before is not None and after is not None else 0
    if left > 0:
        assert not stage.rig.takes_back, "a start that was called off left its session"
        stage.unable("the program keeps an empty session of a start that was called off, and cannot delete it")


@pytest.mark.case("P06")
async def test_a_session_whose_reopening_is_called_off_stays(stage: Stage) -> None:
    cursor, _ = await stage.begun("first")
    if not stage.provider.capabilities.resume:
        stage.unable("sessions cannot be resumed")
        return
    took = await _time_of_a_start(stage)
    for part in (0.0, 0.5, 0.9):
        await called_off(stage, took * part, cursor)
    session = await stage.open(cursor)
    assert session.landing.native_id == (cursor.native_id if stage.provider.capabilities.names_itself else None)
    assert (await stage.turn(session, "second")).seen.users == 2


@pytest.mark.case("L05", "P06")
async def test_a_close_ends_the_turn_that_is_going(stage: Stage) -> None:
    session = await stage.open()
    await stage.turn(session, "first")
    turn = asyncio.create_task(stage.turn(session, stage.rig.hang()))
    await asyncio.sleep(0.3)
    await session.close()
    assert (await turn).done.ending in (Ending.INTERRUPTED, Ending.FAILED)


async def test_the_end_of_a_provider_is_the_end_of_its_sessions(stage: Stage) -> None:
    provider, before = stage.anew("b"), set(stage.rig.processes("b"))
    session = await stage.open(provider=provider)
    turn = asyncio.create_task(stage.turn(session, stage.rig.hang()))
    await asyncio.sleep(0.3)
    mine = set(stage.rig.processes("b")) - before
    await provider.close()
    assert (await turn).done.ending in (Ending.INTERRUPTED, Ending.FAILED)
    assert mine.isdisjoint(stage.rig.processes("b"))
    await provider.close()


async def _time_of_a_start(stage: Stage) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    session = await stage.open()
    took = loop.time() - began
    await session.close()
    return took
