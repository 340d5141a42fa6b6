"""Transfer: a session as one file, restored in another home whole or not at all."""

import asyncio
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.kernel import Cursor, LandingField, PermissionMode, ProbeKind
from clew.ports.fault import Fault
from clew.ports.provider import ArchiveFile
from clew.programs.archive import file_digest, join
from clew.programs.faults import BadArchive
from tests.providers.contract.stage import Stage, core
from tests.providers.contract.test_missing import unknown


def cannot(stage: Stage) -> bool:
    return not stage.provider.capabilities.archive


async def archived(
    stage: Stage, cursor: Cursor, name: str = "session.zip", since: ArchiveFile | None = None
) -> ArchiveFile:
    earlier = since.path if since is not None else None
    return await stage.provider.archive(cursor, stage.directory(), stage.file(name, "archives"), earlier)


async def not_able(stage: Stage) -> None:
    cursor, _ = await stage.begun()
    path = stage.file("session.zip", "archives")
    await stage.refused(stage.provider.archive(cursor, stage.directory(), path), "sessions cannot be archived")
    assert not path.exists()
    await stage.refused(stage.other.restore(path, stage.directory("there")), "sessions cannot be restored")


async def there(stage: Stage) -> set[str]:
    return {found.cursor.native_id for found in await stage.other.sessions()}


@pytest.mark.case("T01", "T06")
async def test_a_restored_session_goes_on_in_another_home(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    can = stage.provider.capabilities
    cursor, _ = await stage.begun("first")
    archive = await archived(stage, cursor)
    assert archive.digest == file_digest(archive.path)
    assert archive.format in can.archive_formats
    assert archive.native_id == cursor.native_id
    assert archive.turns == 1
    place = stage.directory("there")
    restored = await stage.other.restore(archive.path, place)
    assert (restored.native_id == cursor.native_id) is can.restore_keeps_id
    assert (await stage.other.probe(restored, place)).kind is ProbeKind.FOUND_HERE
    session = await stage.open(restored, provider=stage.other, directory=place)
    assert session.landing.native_id == restored.native_id
    assert stage.landed(session, LandingField.DIRECTORY, place)
    seen = (await stage.turn(session, "second")).seen
    assert (seen.users, seen.first) == (2, "first")
    origin = await stage.open(cursor)
    assert (await stage.turn(origin, "at home")).seen.users == 2


@pytest.mark.case("T01")
async def test_a_session_comes_back_with_what_was_said_meanwhile(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    cursor, _ = await stage.begun("first")
    place = stage.directory("there")
    out = await archived(stage, cursor)
    moved = await stage.other.restore(out.path, place)
    session = await stage.open(moved, provider=stage.other, directory=place)
    await stage.turn(session, "second")
    assert session.cursor is not None
    await session.close()
    back = await stage.other.archive(session.cursor, place, stage.file("back.zip", "archives"))
    home = await stage.provider.restore(back.path, stage.directory())
    again = await stage.open(home)
    seen = (await stage.turn(again, "third")).seen
    assert (seen.users, seen.first, seen.last) == (3, "first", "third")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = len(data) // 2
    data[at : at + 8] = bytes(byte ^ 0x55 for byte in data[at : at + 8])
    path.write_bytes(bytes(data))


def _foreign(path: Path) -> None:
    _relisted(path, {"provider": "somebody-else"})


def _later(path: Path) -> None:
    _relisted(path, {"format": "of-another-day"})


def _relisted(path: Path, change: dict[str, str]) -> None:
    with zipfile.ZipFile(path) as old:
        files = {name: old.read(name) for name in old.namelist()}
    name = next(name for name in files if name.endswith("archive.json"))
    files[name] = json.dumps({**json.loads(files[name]), **change}).encode()
    with zipfile.ZipFile(path, "w") as new:
        for each, data in files.items():
            new.writestr(each, data)


def _gone(path: Path) -> None:
    path.unlink()


_DAMAGES: tuple[Callable[[Path], None], ...] = (_cut, _empty, _flipped, _foreign, _later, _gone)


@pytest.mark.case("T02")
async def test_a_damaged_or_foreign_archive_changes_nothing(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    cursor, _ = await stage.begun()
    archive = await archived(stage, cursor)
    whole, before = archive.path.read_bytes(), await there(stage)
    for spoil in _DAMAGES:
        archive.path.write_bytes(whole)
        spoil(archive.path)
        with pytest.raises(BadArchive):
            await stage.other.restore(archive.path, stage.directory("there"))
    assert await there(stage) == before


@pytest.mark.case("T08")
async def test_a_session_that_has_gone_on_is_not_overwritten(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    cursor, _ = await stage.begun("first")
    archive = await archived(stage, cursor)
    place = stage.directory("there")
    moved = await stage.other.restore(archive.path, place)
    session = await stage.open(moved, provider=stage.other, directory=place)
    await stage.turn(session, "only there")
    await session.close()
    try:
        second = await stage.other.restore(archive.path, place)
    except Fault:
        pass
    else:
        assert second.native_id != moved.native_id, "the older copy was put over the newer session"
    again = await stage.open(moved, provider=stage.other, directory=place)
    assert (await stage.turn(again, "later")).seen.users == 3


@pytest.mark.case("T08")
async def test_an_open_session_is_not_restored_over(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    cursor, _ = await stage.begun("first")
    archive = await archived(stage, cursor)
    place = stage.directory("there")
    moved = await stage.other.restore(archive.path, place)
    session = await stage.open(moved, provider=stage.other, directory=place)
    try:
        second = await stage.other.restore(archive.path, place)
    except Fault:
        pass
    else:
        assert second.native_id != moved.native_id, "a session was restored over while it was open"
    assert (await stage.turn(session, "second")).seen.users == 2


async def test_the_same_archive_twice_is_one_session_with_one_history(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    cursor, _ = await stage.begun("first")
    archive = await archived(stage, cursor)
    place = stage.directory("there")
    one = await stage.other.restore(archive.path, place)
    two = await stage.other.restore(archive.path, place)
    for each in {one.native_id: one, two.native_id: two}.values():
        session = await stage.open(each, provider=stage.other, directory=place)
        assert (await stage.turn(session, "second")).seen.users == 2
        await session.close()


@pytest.mark.case("A01", "T01")
async def test_grants_do_not_travel(stage: Stage) -> None:
    can = stage.provider.capabilities
    if cannot(stage):
        await not_able(stage)
        return
    if PermissionMode.READ not in can.modes:
        stage.unable("read cannot be expressed")
        return
    cursor, _ = await stage.begun(mode=max(can.modes))
    archive = await archived(stage, cursor)
    place = stage.directory("there")
    moved = await stage.other.restore(archive.path, place)
    session = await stage.open(moved, provider=stage.other, directory=place, mode=PermissionMode.READ)
    ran = stage.file("ran", "there")
    await stage.turn(session, stage.rig.run(f"touch {ran}"))
    assert not ran.exists()


@pytest.mark.case("T02")
async def test_an_unknown_session_has_no_archive(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    cursor, _ = await stage.begun()
    path = stage.file("session.zip", "archives")
    with pytest.raises(Fault):
        await stage.provider.archive(unknown(cursor), stage.directory(), path)
    assert not path.exists()


async def test_two_archives_at_once_are_both_whole(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    cursor, _ = await stage.begun("first")
    both = await asyncio.gather(archived(stage, cursor, "one.zip"), archived(stage, cursor, "two.zip"))
    for archive in both:
        assert archive.digest == file_digest(archive.path)


_LONG = 40_000


async def gone_on(stage: Stage, cursor: Cursor, prompt: str) -> None:
    session = await stage.open(cursor)
    await stage.turn(session, prompt)
    await session.close()


@core
@pytest.mark.case("T01", "T03")
async def test_what_was_added_is_archived_alone_and_joined(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    first = f"first {os.urandom(_LONG // 2).hex()}"
    cursor, _ = await stage.begun(first)
    base = await archived(stage, cursor, "base.zip")
    await gone_on(stage, cursor, "SAY: second")
    one = await archived(stage, cursor, "one.zip", since=base)
    await gone_on(stage, cursor, "SAY: third")
    two = await archived(stage, cursor, "two.zip", since=one)
    whole = await archived(stage, cursor, "whole.zip")
    assert [each.whole for each in (base, one, two, whole)] == [True, False, False, True]
    assert {each.native_id for each in (base, one, two, whole)} == {cursor.native_id}
    for tail in (one, two):
        assert tail.digest == file_digest(tail.path)
        assert tail.path.stat().st_size < min(_LONG, base.path.stat().st_size) / 5
    between, joined = (stage.file(name, "archives") for name in ("between.zip", "joined.zip"))
    join(base.path, one.path, between)
    join(between, two.path, joined)
    place = stage.directory("there")
    moved = await stage.other.restore(joined, place)
    session = await stage.open(moved, provider=stage.other, directory=place)
    seen = (await stage.turn(session, "fourth")).seen
    assert (seen.users, seen.first[:40], seen.last) == (4, first[:40], "fourth")


@pytest.mark.case("T02")
async def test_what_was_added_is_nothing_alone_or_to_another(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    cursor, _ = await stage.begun("first")
    base = await archived(stage, cursor, "base.zip")
    await gone_on(stage, cursor, "second")
    tail = await archived(stage, cursor, "tail.zip", since=base)
    later = await archived(stage, cursor, "later.zip")
    other, _ = await stage.begun("of another")
    foreign = await archived(stage, other, "foreign.zip")
    before = await there(stage)
    with pytest.raises(BadArchive):
        await stage.other.restore(tail.path, stage.directory("there"))
    joined, refused = (stage.file(name, "archives") for name in ("joined.zip", "refused.zip"))
    for wrong in (foreign, later, tail):
        with pytest.raises(BadArchive):
            join(wrong.path, tail.path, joined)
    assert await there(stage) == before
    cut = stage.file("cut.zip", "archives")
    cut.write_bytes(base.path.read_bytes()[:-40])
    for wrong_since in (foreign.path, cut, stage.file("nowhere.zip", "archives")):
        with pytest.raises(Fault):
            await stage.provider.archive(cursor, stage.directory(), refused, wrong_since)
    nowhere = stage.file("no", "archives") / "such" / "session.zip"
    with pytest.raises(Fault):
        await stage.provider.archive(cursor, stage.directory(), nowhere)
    assert not any(path.exists() for path in (joined, refused, nowhere.parent))
