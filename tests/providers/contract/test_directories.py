"""Directories: a session works where it says, and its history comes along only as declared."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import Cursor, Directory, LandingField, ProbeKind
from clew.ports.fault import Fault
from clew.ports.provider import LiveSession
from tests.providers.contract.stage import Stage


async def works_in(stage: Stage, session: LiveSession) -> Directory:
    """Where its commands really run."""
    marker = f"here-{os.urandom(4).hex()}"
    await stage.turn(session, stage.rig.run(f"touch {marker}"))
    places = list((stage.rig.root / "work").rglob(marker))
    assert len(places) == 1, f"the command made {len(places)} files"
    return Directory(str(places[0].parent))


def symlink(stage: Stage) -> Directory:
    link = stage.file("link", "links")
    link.symlink_to(stage.directory().path)
    return Directory(str(link), os.path.realpath(link))


@pytest.mark.case("D10")
async def test_a_session_works_in_its_directory(stage: Stage) -> None:
    session = await stage.open()
    assert await works_in(stage, session) == stage.directory()
    assert stage.landed(session, LandingField.DIRECTORY, stage.directory())


@pytest.mark.case("D03")
async def test_a_directory_that_is_not_there_is_refused(stage: Stage) -> None:
    before = stage.rig.processes("a")
    gone = Directory(str(stage.file("gone")))
    with pytest.raises(Fault):
        await stage.open(directory=gone)
    assert stage.rig.processes("a") == before
    assert not Path(gone.path).exists()


@pytest.mark.case("C18")
async def test_another_spelling_is_the_same_directory(stage: Stage) -> None:
    link = symlink(stage)
    session = await stage.open(directory=link)
    await stage.turn(session, "first")
    assert stage.landed(session, LandingField.DIRECTORY, stage.directory())
    assert await works_in(stage, session) == stage.directory()
    cursor = session.cursor
    assert cursor is not None
    await session.close()
    if not stage.provider.capabilities.resume:
        await stage.refused(stage.open(cursor), "sessions cannot be resumed")
        return
    slashed = replace(stage.directory(), path=f"{stage.directory().path}/../{Path(stage.directory().path).name}/")
    for spelled in (link, stage.directory(), slashed):
        assert (await stage.provider.probe(cursor, spelled)).kind is ProbeKind.FOUND_HERE


@pytest.mark.case("C16")
async def test_a_session_of_another_directory_is_said_to_be_there(stage: Stage) -> None:
    can = stage.provider.capabilities
    cursor, _ = await stage.begun()
    probe = await stage.provider.probe(cursor, stage.directory("elsewhere"))
    if not can.resume:
        assert probe.kind is not ProbeKind.FOUND_HERE
        stage.unable("sessions cannot be resumed")
    elif LandingField.DIRECTORY not in can.reports and probe.kind is ProbeKind.FOUND_HERE:
        stage.unable("the program does not say in which directory a session is")
    else:
        assert probe.kind is ProbeKind.FOUND_ELSEWHERE
        assert probe.directory == stage.directory()


@pytest.mark.case("C16", "C17", "D10")
async def test_a_fork_takes_the_history_into_another_directory(stage: Stage) -> None:
    cursor, _ = await stage.begun("first")
    elsewhere = stage.directory("elsewhere")
    if not stage.provider.capabilities.fork_into:
        attempt = stage.open(cursor, fork=True, directory=elsewhere)
        await stage.refused(attempt, "a fork cannot be put into another directory")
        return
    fork = await stage.open(cursor, fork=True, directory=elsewhere)
    assert fork.landing.native_id != cursor.native_id
    assert stage.landed(fork, LandingField.DIRECTORY, elsewhere)
    seen = (await stage.turn(fork, "on the fork")).seen
    assert (seen.users, seen.first) == (2, "first")
    assert await works_in(stage, fork) == elsewhere
    assert fork.cursor is not None
    assert fork.cursor.native_id != cursor.native_id
    await _untouched(stage, cursor)
    await fork.close()
    again = await stage.open(fork.cursor, directory=elsewhere)
    assert (await stage.turn(again, "later")).seen.users == 4


@pytest.mark.case("C29")
async def test_a_fork_beside_its_origin_keeps_both_apart(stage: Stage) -> None:
    cursor, _ = await stage.begun("first")
    if not stage.provider.capabilities.fork:
        await stage.refused(stage.open(cursor, fork=True), "sessions cannot be forked")
        return
    fork = await stage.open(cursor, fork=True)
    assert (await stage.turn(fork, "on the fork")).seen.users == 2
    assert fork.cursor is not None
    assert fork.cursor.native_id != cursor.native_id
    await _untouched(stage, cursor)


async def _untouched(stage: Stage, cursor: Cursor) -> None:
    origin = await stage.open(cursor)
    seen = (await stage.turn(origin, "on the origin")).seen
    assert (seen.users, seen.first, seen.last) == (2, "first", "on the origin")
    await origin.close()


@pytest.mark.case("C17", "D10")
async def test_a_session_resumed_elsewhere_says_where_it_works(stage: Stage) -> None:
    cursor, _ = await stage.begun("first")
    elsewhere = stage.directory("elsewhere")
    if not stage.provider.capabilities.resume_elsewhere:
        try:
            session = await stage.open(cursor, directory=elsewhere)
        except Fault:
            pass
        else:
            assert session.landing.directory == stage.directory()
        stage.unable("a session cannot be resumed in another directory")
        return
    session = await stage.open(cursor, directory=elsewhere)
    assert session.landing.native_id == (cursor.native_id if stage.provider.capabilities.names_itself else None)
    assert (await stage.turn(session, "second")).seen.users == 2
    assert await works_in(stage, session) == elsewhere
    assert stage.landed(session, LandingField.DIRECTORY, elsewhere)
