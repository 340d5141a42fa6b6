"""Permissions: four modes, applied on every opening, never wider than asked."""

import asyncio

import pytest

from clew.kernel import Answer, LandingField, PermissionMode, choose_mode
from clew.ports.events import ApprovalAsked, Ending, Text
from clew.programs.faults import NotAble
from tests.providers.contract.stage import Stage

READ, ASK, EDIT, FULL = PermissionMode


@pytest.mark.case("A01", "A02")
@pytest.mark.parametrize("mode", PermissionMode, ids=str)
async def test_a_mode_is_the_one_asked_or_the_next_stricter(stage: Stage, mode: PermissionMode) -> None:
    can = stage.provider.capabilities
    expected = choose_mode(mode, (), can.modes).mode
    if expected is None:
        await stage.refused(stage.open(mode=mode), f"neither {mode} nor anything stricter can be expressed")
        return
    session = await stage.open(mode=mode)
    assert stage.landed(session, LandingField.MODE, expected)
    if expected is not mode:
        stage.unable(f"{mode} cannot be expressed; it becomes {expected}")


@pytest.mark.case("A01")
async def test_read_changes_nothing(stage: Stage) -> None:
    if READ not in stage.provider.capabilities.modes:
        await stage.refused(stage.open(mode=READ), "read cannot be expressed")
        return
    session = await stage.open(mode=READ)
    ran, written = stage.file("ran"), stage.file("written")
    await stage.turn(session, stage.rig.run(f"touch {ran}"))
    await stage.turn(session, stage.rig.write(written, "text"))
    assert not ran.exists()
    assert not written.exists()
    assert (await stage.turn(session, "still there")).done.ending is Ending.COMPLETED


@pytest.mark.case("A01")
async def test_edit_writes_files_without_asking(stage: Stage) -> None:
    if EDIT not in stage.provider.capabilities.modes:
        stage.unable("edit cannot be expressed")
        return
    session = await stage.open(mode=EDIT)
    written = stage.file("written")
    turned = await stage.turn(session, stage.rig.write(written, "text"))
    assert written.read_text().strip() == "text"
    assert not turned.of(ApprovalAsked)


@pytest.mark.case("A01")
async def test_full_asks_nothing(stage: Stage) -> None:
    if FULL not in stage.provider.capabilities.modes:
        stage.unable("full cannot be expressed")
        return
    session = await stage.open(mode=FULL)
    ran = stage.file("ran")
    turned = await stage.turn(session, stage.rig.run(f"touch {ran}"))
    assert ran.exists()
    assert not turned.of(ApprovalAsked)


@pytest.mark.case("P03")
async def test_a_session_that_may_do_all_is_reopened_as_told(stage: Stage) -> None:
    can = stage.provider.capabilities
    cursor, _ = await stage.begun(mode=stage.widest)
    if not can.reapply_mode or READ not in can.modes:
        if READ in can.modes:
            await stage.refused(stage.open(cursor, mode=READ), "the mode of a session cannot be changed")
        else:
            await stage.refused(stage.open(cursor, mode=READ), "read cannot be expressed")
        return
    narrow = await stage.open(cursor, mode=READ)
    assert stage.landed(narrow, LandingField.MODE, READ)
    ran = stage.file("ran")
    await stage.turn(narrow, stage.rig.run(f"touch {ran}"))
    assert not ran.exists()
    await narrow.close()
    wide = await stage.open(cursor, mode=stage.widest)
    await stage.turn(wide, stage.rig.run(f"touch {ran}"), Answer.APPROVE)
    assert ran.exists()


@pytest.mark.case("P04")
async def test_applying_a_mode_fifty_times_leaves_as_many_rules_as_once(stage: Stage) -> None:
    can = stage.provider.capabilities
    session = await stage.open()
    await stage.turn(session, "first")
    if not can.reapply_mode:
        await stage.refused(session.set_mode(READ), "the mode of a session cannot be changed")
        return
    assert session.cursor is not None
    modes = [*sorted(can.modes), max(can.modes)]

    async def around(times: int) -> int | None:
        for _ in range(times):
            for mode in modes:
                assert await session.set_mode(mode) is mode
        assert session.cursor is not None
        return stage.rig.rules(session.cursor)

    once = await around(1)
    assert await around(50 // len(modes)) == once
    if once is None:
        stage.unable("the program keeps no rules for a session")


@pytest.mark.case("A04")
async def test_a_mode_changed_during_a_turn_counts_from_the_next(stage: Stage) -> None:
    can = stage.provider.capabilities
    session = await stage.open()
    if not can.reapply_mode:
        await stage.refused(session.set_mode(min(can.modes)), "the mode of a session cannot be changed")
        return
    if len(can.modes) < 2:
        stage.unable("it has one mode")
        return
    said = asyncio.Event()

    async def going() -> Ending:
        ending = Ending.FAILED
        async for event in session.turn(stage.rig.slow(1.0)):
            if isinstance(event, Text):
                said.set()
            ending = getattr(event, "ending", ending)
        return ending

    turn = asyncio.create_task(going())
    await said.wait()
    assert await session.set_mode(min(can.modes)) is min(can.modes)
    assert await turn is Ending.COMPLETED
    ran = stage.file("ran")
    await stage.turn(session, stage.rig.run(f"touch {ran}"))
    assert not ran.exists()


async def test_a_mode_that_cannot_be_expressed_is_not_set(stage: Stage) -> None:
    can = stage.provider.capabilities
    session = await stage.open()
    for mode in PermissionMode:
        expected = choose_mode(mode, (), can.modes).mode
        if expected is not None:
            assert await session.set_mode(mode) is expected
        else:
            with pytest.raises(NotAble):
                await session.set_mode(mode)
