"""Resuming: the same session, by its own id, with all its history, and none of it told twice."""

import pytest

from clew.kernel import LandingField, ProbeKind
from tests.providers.contract.stage import Stage, core, named


@core
@pytest.mark.case("P02", "P07", "C32")
async def test_a_session_goes_on_where_it_was(stage: Stage) -> None:
    cursor, _ = await stage.begun("first")
    if not stage.provider.capabilities.resume:
        await stage.refused(stage.open(cursor), "sessions cannot be resumed")
        return
    session = await stage.open(cursor)
    assert session.landing.native_id == (cursor.native_id if stage.provider.capabilities.names_itself else None)
    if LandingField.TURNS in stage.provider.capabilities.reports:
        assert session.landing.turns == 1
    turned = await stage.turn(session, "second")
    assert (turned.seen.users, turned.seen.first, turned.seen.last) == (2, "first", "second")
    assert session.cursor == cursor
    assert all(event.native_id == cursor.native_id for event in named(turned))


@pytest.mark.case("C34", "P07")
async def test_a_session_is_found_again_after_a_restart(stage: Stage) -> None:
    cursor, _ = await stage.begun("first")
    again = stage.anew()
    if not stage.provider.capabilities.resume:
        await stage.refused(stage.open(cursor, provider=again), "sessions cannot be resumed")
        return
    assert (await again.probe(cursor, stage.directory())).kind is ProbeKind.FOUND_HERE
    session = await stage.open(cursor, provider=again)
    assert (await stage.turn(session, "second")).seen.users == 2


@pytest.mark.case("S02", "S13")
async def test_two_sessions_in_one_directory_keep_apart(stage: Stage) -> None:
    one, _ = await stage.begun("one")
    two, _ = await stage.begun("two")
    assert one.native_id != two.native_id
    if not stage.provider.capabilities.resume:
        await stage.refused(stage.open(one), "sessions cannot be resumed")
        return
    for cursor, first in ((one, "one"), (two, "two"), (one, "one")):
        session = await stage.open(cursor)
        assert (await stage.turn(session, "go on")).seen.first == first
        assert session.cursor == cursor
        await session.close()


@pytest.mark.case("P10")
async def test_what_was_said_before_is_not_told_again(stage: Stage) -> None:
    cursor, turned = await stage.begun(stage.rig.say("said-once-4711"))
    assert "said-once-4711" in turned.text
    if not stage.provider.capabilities.resume:
        await stage.refused(stage.open(cursor), "sessions cannot be resumed")
        return
    session = await stage.open(cursor)
    turned = await stage.turn(session, stage.rig.say("something else"))
    assert "said-once-4711" not in repr(turned.events)


@pytest.mark.case("P02")
async def test_the_cursor_stays_the_same_from_turn_to_turn(stage: Stage) -> None:
    session = await stage.open()
    await stage.turn(session, "first")
    cursor = session.cursor
    for prompt in ("second", "third"):
        turned = await stage.turn(session, prompt)
        assert session.cursor == cursor
        assert {event.native_id for event in named(turned)} <= {cursor.native_id if cursor else None}


@pytest.mark.case("C22")
async def test_a_session_goes_on_under_another_model(stage: Stage) -> None:
    session = await stage.open()
    await stage.turn(session, "first")
    other = stage.rig.other_model
    if not stage.provider.capabilities.change_model:
        await stage.refused(session.set_model(other or "another"), "the model of a session cannot be changed")
        return
    assert other is not None, "a rig of a provider that changes models names another model"
    await session.set_model(other)
    assert (await stage.turn(session, "second")).seen.users == 2
    assert other.rpartition("/")[2] in stage.rig.heard()
    cursor = session.cursor
    await session.close()
    again = await stage.open(cursor, model=other)
    assert stage.landed(again, LandingField.MODEL, other)
    assert (await stage.turn(again, "third")).seen.users == 3
