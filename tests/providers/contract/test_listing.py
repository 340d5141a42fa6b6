"""Listing: the sessions a program has, as its own store tells them."""

import asyncio

import pytest

from clew.programs.faults import NotAble
from tests.providers.contract.stage import Stage


@pytest.mark.case("S09", "S12", "S13")
async def test_every_session_of_the_home_is_listed_once(stage: Stage) -> None:
    one, _ = await stage.begun("one")
    two, _ = await stage.begun("two", directory=stage.directory("elsewhere"))
    try:
        found = await stage.provider.sessions()
    except NotAble:
        stage.unable("the program cannot list its sessions")
        return
    listed = [each.cursor.native_id for each in found]
    assert len(listed) == len(set(listed)), "a session is listed twice"
    mine = {each.cursor.native_id: each for each in found if each.cursor.native_id in (one.native_id, two.native_id)}
    assert set(mine) == {one.native_id, two.native_id}
    assert mine[one.native_id].directory == stage.directory()
    assert mine[two.native_id].directory == stage.directory("elsewhere")
    assert listed.index(two.native_id) < listed.index(one.native_id), "the newest comes first"
    assert mine[one.native_id].cursor == one
    times = [each.updated_at for each in found if each.updated_at is not None]
    assert len(times) > 1
    assert times == sorted(times, reverse=True)


@pytest.mark.case("S09")
async def test_listing_changes_nothing_and_stays_in_its_home(stage: Stage) -> None:
    mine, _ = await stage.begun("one")
    try:
        before, again = await stage.provider.sessions(), await stage.provider.sessions()
        for _ in range(100):
            if before == again:
                break
            # A program may name a session by itself, a moment after its first turn.
            await asyncio.sleep(0.1)
            before, again = again, await stage.provider.sessions()
        assert before == again
        assert mine.native_id not in {found.cursor.native_id for found in await stage.other.sessions()}
    except NotAble:
        stage.unable("the program cannot list its sessions")


@pytest.mark.case("S12")
async def test_a_listed_session_can_be_opened(stage: Stage) -> None:
    cursor, _ = await stage.begun("one")
    try:
        found = {each.cursor.native_id: each for each in await stage.anew().sessions()}
    except NotAble:
        stage.unable("the program cannot list its sessions")
        return
    session = await stage.open(found[cursor.native_id].cursor)
    assert (await stage.turn(session, "two")).seen.users == 2
