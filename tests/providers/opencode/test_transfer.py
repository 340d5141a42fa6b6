"""Transfer of the real OpenCode: the same history on the other side, added to and never put over what is there."""

import asyncio
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Cursor, Directory, NativeId
from clew.programs.archive import pack, unpack
from clew.programs.faults import BadArchive, ProgramFault, Refused, SessionBusy, SessionDiverged
from clew.providers.opencode.archive import FORMAT, PROVIDER
from clew.providers.opencode.restore import run_import
from tests.providers.opencode.kit import FULL, READ, Lab, path, subagent, turn

Document = dict[str, Any]


async def archived(lab: Lab, cursor: Cursor, name: str, home: str = "a") -> Path:
    into = path(lab.directory("archives"), name)
    await lab.at(home).archive(cursor, lab.directory(), into)
    return into


def history(lab: Lab) -> list[Any]:
    """The last request to the model, without what names the place: its system prompt."""
    return [message for message in lab.model.work[-1].body["messages"] if message["role"] != "system"]


def changed(archive: Path, change: Callable[[Document], None]) -> Path:
    """The archive with its session changed, and whole by its own list."""
    contents, files = unpack(archive, PROVIDER, frozenset({FORMAT}))
    own = f"{contents.native_id}/"
    names = [name for name in files if name.startswith(own)]
    info, *messages = (json.loads(files.pop(name)) for name in names)
    document = {"info": info, "messages": messages}
    change(document)
    named = {f"{own}session.json": document["info"]}
    for number, message in enumerate(document["messages"]):
        name = f"{own}messages/{message['info']['id']}.json"
        named[name if name not in named else f"{own}messages/{number}.json"] = message
    files = {**{name: json.dumps(each).encode() for name, each in named.items()}, **files}
    into = archive.with_name(f"changed-{archive.name}")
    pack(into, contents.provider, contents.format, contents.native_id, files, contents.facts)
    return into


async def ids(lab: Lab, home: str) -> set[str]:
    return {found.cursor.native_id for found in await lab.at(home).sessions()}


@pytest.mark.proof
@pytest.mark.case("T01", "T03")
def test_a_session_goes_to_another_home_and_back_with_the_same_history(lab: Lab) -> None:
    async def scene() -> None:
        here, there = lab.directory("transfer"), lab.directory("there")
        cursor = await lab.begun(
            "first",
            "RUN: seq 1 2000",
            f"WRITE: {path(here, 'note')} text",
            subagent("general", "SAY: hi"),
            directory=here,
        )
        archive = await archived(lab, cursor, "out.zip")
        before = history_after(lab, await lab.goes_on(cursor, "compare", directory=here))
        # The first home and its directory are not there while the second goes on.
        await lab.end("a")
        home, work = lab.rig.root / "a", Path(here.path)
        home.rename(home.with_name("a-gone"))
        work.rename(work.with_name("transfer-gone"))
        try:
            moved = await lab.at("b").restore(archive, there)
            assert moved == cursor
            after = history_after(lab, await lab.goes_on(moved, "compare", "b", directory=there))
            assert after == before
            marked = await lab.goes_on(moved, "RUN: touch marker", "b", directory=there)
            assert marked.seen.users == 6
            assert path(there, "marker").exists()
            assert len(await (await lab.api("b")).children(cursor.native_id)) == 1
            back = await archived(lab, moved, "back.zip", "b")
            there_now = history_after(lab, await lab.goes_on(moved, "again", "b", directory=there))
        finally:
            home.with_name("a-gone").rename(home)
            work.with_name("transfer-gone").rename(work)
        # The first home had gone on by itself, with the same words but another message.
        with pytest.raises(SessionDiverged):
            await lab.at("a").restore(back, here)
        await (await lab.api("a")).delete(cursor.native_id)
        assert await lab.at("a").restore(back, here) == cursor
        assert history_after(lab, await lab.goes_on(cursor, "again", directory=here)) == there_now

    lab.play(scene())


def history_after(lab: Lab, turned: object) -> list[Any]:
    assert turned
    return history(lab)


@pytest.mark.proof
@pytest.mark.case("T01", "T08")
def test_an_earlier_state_is_added_to(lab: Lab) -> None:
    async def scene() -> None:
        here, there = lab.directory("earlier"), lab.directory("earlier-there")
        cursor = await lab.begun("first", directory=here)
        out = await archived(lab, cursor, "earlier.zip")
        await lab.at("b").restore(out, there)
        await lab.goes_on(cursor, "second", "b", directory=there)
        back = await archived(lab, cursor, "later.zip", "b")
        before = await lab.messages(cursor)
        await lab.at("a").restore(back, here)
        after = await lab.messages(cursor)
        assert [each["info"]["id"] for each in after[: len(before)]] == [each["info"]["id"] for each in before]
        assert [each["parts"] for each in after] == [each["parts"] for each in await lab.messages(cursor, "b")]
        assert (await lab.goes_on(cursor, "third", directory=here)).seen.users == 3
        # And the older archive is nothing to put over it now.
        with pytest.raises(SessionDiverged):
            await lab.at("a").restore(back, here)

    lab.play(scene())


def _no_role(document: Document) -> None:
    del document["messages"][0]["info"]["role"]


def _bad_part(document: Document) -> None:
    document["messages"][-1]["parts"][-1] = {**document["messages"][-1]["parts"][-1], "type": "nonsense"}


def _of_another(document: Document) -> None:
    document["messages"][0]["info"]["sessionID"] = "ses_another"


def _twice(document: Document) -> None:
    document["messages"].append(document["messages"][0])


def _of_a_parent(document: Document) -> None:
    document["info"]["id"] = "ses_another"


def _of_a_subagent(document: Document) -> None:
    document["info"]["parentID"] = "ses_another"


def _of_nobody(document: Document) -> None:
    document["info"]["parentID"] = ""


def _no_messages(document: Document) -> None:
    document["messages"] = [{"info": {"id": 7}}]


@pytest.mark.proof
@pytest.mark.case("T02")
@pytest.mark.parametrize(
    "spoil",
    [_no_role, _bad_part, _of_another, _twice, _of_a_parent, _of_a_subagent, _of_nobody, _no_messages],
)
def test_an_archive_that_opencode_would_half_import_changes_nothing(
    lab: Lab, spoil: Callable[[Document], None]
) -> None:
    async def scene() -> None:
        cursor = await lab.begun("first")
        archive = changed(await archived(lab, cursor, f"{spoil.__name__}.zip"), spoil)
        before = await ids(lab, "b")
        with pytest.raises(BadArchive):
            await lab.at("b").restore(archive, lab.directory("there"))
        assert await ids(lab, "b") == before

    lab.play(scene())


@pytest.mark.case("T02")
def test_the_session_of_a_subagent_is_not_archived_alone(lab: Lab) -> None:
    async def scene() -> None:
        cursor = await lab.begun(subagent("general", "SAY: hi"))
        # With the one that it belongs to it is.
        with zipfile.ZipFile(await archived(lab, cursor, "with.zip")) as whole:
            named = {name.partition("/")[0] for name in whole.namelist() if name.endswith("/session.json")}
        (child,) = named - {cursor.native_id}
        with pytest.raises(Refused, match=cursor.native_id):
            await archived(lab, replace(cursor, native_id=NativeId(child)), "alone.zip")

    lab.play(scene())


@pytest.mark.case("T01", "A01")
def test_what_the_archive_says_it_may_do_takes_no_effect(lab: Lab) -> None:
    async def scene() -> None:
        cursor = await lab.begun("first", mode=FULL)
        plain = await archived(lab, cursor, "granted.zip")
        assert b'"permission"' not in zipfile.ZipFile(plain).read(f"{cursor.native_id}/session.json")

        def grant(document: Document) -> None:
            document["info"]["permission"] = [{"permission": "*", "pattern": "*", "action": "allow"}]

        there = lab.new_directory()
        await lab.at("b").restore(changed(plain, grant), there)
        assert not (await lab.stored(cursor, "b")).get("permission")
        await lab.goes_on(cursor, f"RUN: touch {path(there, 'ran')}", "b", directory=there, mode=READ)
        assert not path(there, "ran").exists()

    lab.play(scene())


@pytest.mark.case("T08")
def test_a_session_that_is_open_is_neither_restored_over_nor_archived_in_a_turn(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        await turn(session, "first")
        assert session.cursor is not None
        archive = await archived(lab, session.cursor, "open.zip")
        with pytest.raises(SessionBusy):
            await lab.at("a").restore(archive, lab.directory())
        events = session.turn("SLOW: 2")
        await anext(events)
        while not await (await lab.api()).busy(session.cursor.native_id, lab.directory().path):
            await anext(events)
        with pytest.raises(SessionBusy):
            await archived(lab, session.cursor, "in-a-turn.zip")
        assert not path(lab.directory("archives"), "in-a-turn.zip").exists()

    lab.play(scene())


@pytest.mark.proof
@pytest.mark.case("T02", "P06")
def test_a_restore_that_fails_or_is_called_off_is_taken_back(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        cursor = await lab.begun("first", subagent("general", "SAY: hi"))
        archive = await archived(lab, cursor, "taken-back.zip")
        before = await ids(lab, "b")

        async def gone(*_: object) -> None:
            raise asyncio.CancelledError

        real, count = run_import, 0

        async def second_fails(launch: Any, document: Any, directory: str) -> None:
            nonlocal count
            count += 1
            await (real if count == 1 else gone)(launch, document, directory)

        monkeypatch.setattr("clew.providers.opencode.restore.run_import", second_fails)
        with pytest.raises(asyncio.CancelledError):
            await lab.at("b").restore(archive, lab.directory("there"))
        assert count == 2
        assert await ids(lab, "b") == before
        monkeypatch.undo()
        with pytest.raises(ProgramFault):
            await lab.at("b").restore(archive, Directory("/nowhere/at/all"))
        assert await ids(lab, "b") == before
        await lab.at("b").restore(archive, lab.directory("there"))
        assert len(await ids(lab, "b")) == len(before) + 1

    lab.play(scene())


@pytest.mark.case("T05")
def test_an_archive_lists_what_is_alive_in_it(lab: Lab) -> None:
    async def scene() -> None:
        cursor = await lab.begun("first", "second")
        archive = await archived(lab, cursor, "listed.zip")
        contents, _ = unpack(archive, PROVIDER, frozenset({FORMAT}))
        listed = [Path(item.name).stem for item in contents.items if "/messages/" in item.name]
        assert listed == [each["info"]["id"] for each in await lab.messages(cursor)]
        assert contents.facts["version"] == "1.18.33"

    lab.play(scene())


@pytest.mark.case("T05")
def test_what_was_added_holds_the_messages_that_changed_and_no_other(lab: Lab) -> None:
    async def scene() -> None:
        cursor = await lab.begun("first", "RUN: seq 1 3000", subagent("general", "SAY: hi"))
        base = await archived(lab, cursor, "added-base.zip")
        known = {each["info"]["id"] for each in await lab.messages(cursor)}
        await lab.goes_on(cursor, "third")
        tail = path(lab.directory("archives"), "added.zip")
        assert not (await lab.at().archive(cursor, lab.directory(), tail, base)).whole
        with zipfile.ZipFile(tail) as kept:
            held = [Path(name).stem for name in kept.namelist() if "/messages/" in name]
        new = {each["info"]["id"] for each in await lab.messages(cursor)} - known
        assert new <= set(held)
        # Of the prompt before it OpenCode writes down what changed because of it.
        assert len(set(held) & known) <= 1

    lab.play(scene())
