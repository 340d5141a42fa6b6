"""Moving a session to another home: its whole history, what it rests on, and none of its grants."""

import asyncio
import fcntl
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Cursor, ProbeKind
from clew.programs.archive import pack, unpack
from clew.programs.faults import BadArchive, Refused, SessionBusy, SessionDiverged
from clew.providers.codex import locks
from clew.providers.codex.archive import FORMAT
from clew.providers.codex.provider import CodexProvider
from clew.providers.codex.store import SessionArchived
from tests.providers.codex.kit import FULL, READ, Lab, lines_of, told_to_the_model, turn


async def archived(lab: Lab, provider: CodexProvider, cursor: Cursor, name: str = "session.zip") -> Path:
    return (await provider.archive(cursor, lab.directory(), lab.file(name, "archives"))).path


def everything(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted((root / "sessions").rglob("*.jsonl*"))}


@pytest.mark.case("T01", "T03")
def test_the_model_is_told_the_same_when_the_first_home_is_gone(lab: Lab) -> None:
    async def scene() -> None:
        one = lab.provider("a")
        session = await lab.open(one)
        for prompt in ("first", "RUN: pwd; seq 1 400", "THINK: hm", f"WRITE: {lab.file('made')} text"):
            await turn(session, prompt)
        cursor = session.cursor
        assert cursor is not None
        await session.close()
        archive = await archived(lab, one, cursor)
        await lab.goes_on(one, cursor, "compare")
        before = told_to_the_model(lab.model)
        lab.root("a").rename(lab.root("a").with_name("gone"))
        Path(lab.directory().path).rename(lab.file("gone", "elsewhere"))
        other = lab.provider("b")
        moved = await other.restore(archive, lab.directory("there"))
        assert moved == cursor
        session = await lab.open(other, moved, "there")
        assert session.landing.turns == 4
        await turn(session, "compare")
        after = told_to_the_model(lab.model)
        # The history is the same to the letter; only what is told of the new place comes before the prompt.
        assert after[: len(before) - 1] == before[:-1]
        assert after[-1] == before[-1]
        between = after[len(before) - 1 : -1]
        assert between
        assert all(part["text"].startswith("<") for item in between for part in item["content"]), between
        assert lab.directory("there").path in (await turn(session, "RUN: pwd")).reply

    lab.play(scene())


@pytest.mark.case("T01", "T07")
def test_there_and_back_again(lab: Lab) -> None:
    async def scene() -> None:
        one, other = lab.provider("a"), lab.provider("b")
        cursor = await lab.begun(one, "first")
        out = await archived(lab, one, cursor)
        # A look at it in between writes a line, but says nothing.
        session = await lab.open(one, cursor, "elsewhere", mode=READ)
        await session.close()
        await other.restore(out, lab.directory("there"))
        await lab.goes_on(other, cursor, "second", directory="there")
        back = await archived(lab, other, cursor, "back.zip")
        await one.restore(back, lab.directory())
        assert (await one.probe(cursor, lab.directory())).kind is ProbeKind.FOUND_HERE
        session = await lab.open(one, cursor)
        assert session.landing.turns == 2
        seen = (await turn(session, "third")).seen
        assert (seen.users, seen.first, seen.last) == (3, "first", "third")
        await session.close()
        (found,) = await one.sessions()
        assert (found.turns, found.title, found.directory) == (3, "first", lab.directory())

    lab.play(scene())


@pytest.mark.case("T01")
def test_a_fork_of_a_fork_travels_with_all_it_rests_on(lab: Lab) -> None:
    async def scene() -> None:
        one, other = lab.provider("a"), lab.provider("b")
        root = await lab.begun(one, "root")
        fork = await lab.open(one, root, fork=True)
        await turn(fork, "fork")
        assert fork.cursor is not None
        await fork.close()
        twig = await lab.open(one, fork.cursor, fork=True)
        await turn(twig, "twig")
        # Asked for now: who asks when the home is gone is told that nobody could find the session.
        cursor = twig.cursor
        assert cursor is not None
        await twig.close()
        await lab.goes_on(one, root, "the root went on")
        copy = await one.archive(cursor, lab.directory(), lab.file("session.zip", "archives"))
        assert copy.turns == 3
        with zipfile.ZipFile(copy.path) as inside:
            assert b"the root went on" not in b"".join(inside.read(name) for name in inside.namelist())
        lab.root("a").rename(lab.root("a").with_name("gone"))
        await other.restore(copy.path, lab.directory("there"))
        session = await lab.open(other, cursor, "there")
        assert session.landing.turns == 3
        seen = (await turn(session, "there")).seen
        assert (seen.users, seen.first, seen.last) == (4, "root", "there")
        # And on from there: the copy of a copy is as whole.
        again = await archived(lab, other, cursor, "again.zip")
        lab.root("b").rename(lab.root("b").with_name("gone"))
        last = lab.provider("c")
        await last.restore(again, lab.directory("last"))
        assert (await lab.goes_on(last, cursor, "last", directory="last")).seen.users == 5

    lab.play(scene())


@pytest.mark.case("T01")
def test_a_session_that_was_rewound_travels_as_it_is_now(lab: Lab) -> None:
    async def scene() -> None:
        one, other = lab.provider("a"), lab.provider("b")
        session = await lab.open(one)
        for prompt in ("first", "regretted", "regretted too"):
            await turn(session, prompt)
        cursor = session.cursor
        assert cursor is not None
        await session.close()
        await rewind(cursor, 1)
        assert (await lab.goes_on(one, cursor, "instead")).seen.users == 2
        assert len(lab.rollouts()) == 2
        copy = await one.archive(cursor, lab.directory(), lab.file("session.zip", "archives"))
        assert copy.turns == 2
        await other.restore(copy.path, lab.directory("there"))
        seen = (await lab.goes_on(other, cursor, "there", directory="there")).seen
        assert (seen.users, seen.first, seen.last) == (3, "first", "there")
        (found,) = await other.sessions()
        assert found.turns == 3
        # A home that knows the session from before the rewind would go on in the old file.
        third = lab.provider("c")
        rewind_free_copy(cursor)
        with pytest.raises(SessionDiverged):
            await third.restore(copy.path, lab.directory("there"))

    async def rewind(cursor: Cursor, to: int) -> None:
        turns = (await lab.raw("thread/turns/list", {"threadId": cursor.native_id, "sortDirection": "asc"}))["data"]
        program, peer = await lab.client("a")
        try:
            await peer.call("thread/resume", {"threadId": cursor.native_id}, 30)
            await peer.call("thread/revert", {"threadId": cursor.native_id, "beforeTurnId": turns[to]["id"]}, 30)
        finally:
            await program.end(5)
            await peer.close()

    def rewind_free_copy(cursor: Cursor) -> None:
        old = next(path for path in lab.rollouts() if path.name.endswith(f"{cursor.native_id}.jsonl"))
        to = lab.root("c") / old.relative_to(lab.root("a"))
        to.parent.mkdir(parents=True)
        to.write_bytes(old.read_bytes())

    lab.play(scene())


@pytest.mark.case("A01", "T01")
def test_full_access_in_an_archive_takes_no_effect(lab: Lab) -> None:
    async def scene() -> None:
        one, other = lab.provider("a"), lab.provider("b")
        cursor = await lab.begun(one, f"RUN: touch {lab.file('allowed')}", mode=FULL)
        assert lab.file("allowed").exists()
        # This is why: whoever just resumes a session gets what it had.
        bare = {"threadId": cursor.native_id}
        assert (await lab.raw("thread/resume", bare))["sandbox"]["type"] == "dangerFullAccess"
        archive = await archived(lab, one, cursor)
        await other.restore(archive, lab.directory("there"))
        # Restored, it has lost it for every client.
        answer = await lab.raw("thread/resume", bare, "b")
        assert (answer["sandbox"]["type"], answer["approvalPolicy"]) == ("readOnly", "never")
        session = await lab.open(other, cursor, "there", mode=READ)
        await turn(session, f"RUN: touch {lab.file('forbidden')}\nRUN: touch {lab.file('forbidden', 'there')}")
        assert not lab.file("forbidden").exists()
        assert not lab.file("forbidden", "there").exists()

    lab.play(scene())


@pytest.mark.case("A01", "T01")
@pytest.mark.parametrize("known", [False, True])
def test_full_access_of_what_a_fork_rests_on_takes_no_effect(lab: Lab, known: bool) -> None:
    async def scene() -> None:
        one, other = lab.provider("a"), lab.provider("b")
        root = await lab.begun(one, "root", mode=FULL)
        if known:
            # There is an earlier state of it there, which the archive goes on with.
            await other.restore(await archived(lab, one, root, "root.zip"), lab.directory("there"))
            await lab.goes_on(one, root, "second", mode=FULL)
        cursors = [root]
        for prompt in ("fork", "twig"):
            session = await lab.open(one, cursors[-1], fork=True, mode=FULL)
            await turn(session, prompt)
            assert session.cursor is not None
            cursors.append(session.cursor)
            await session.close()
        await other.restore(await archived(lab, one, cursors[-1]), lab.directory("there"))
        for cursor in cursors:
            answer = await lab.raw("thread/resume", {"threadId": cursor.native_id}, "b")
            assert (answer["sandbox"]["type"], answer["approvalPolicy"]) == ("readOnly", "never")
            assert answer["cwd"] == lab.directory("there").path

    lab.play(scene())


@pytest.mark.case("T02")
@pytest.mark.parametrize("what", ["line", "head", "tail", "beneath", "id", "names"])
def test_an_archive_that_codex_would_load_with_a_loss_is_refused(lab: Lab, what: str) -> None:
    """Its digests are right, so only the history itself can tell."""

    async def scene() -> None:
        one, other = lab.provider("a"), lab.provider("b")
        root = await lab.begun(one, "root")
        fork = await lab.open(one, root, fork=True)
        await turn(fork, "fork")
        assert fork.cursor is not None
        await fork.close()
        contents, files = unpack(await archived(lab, one, fork.cursor), "codex", frozenset({FORMAT}))
        beneath, own = files
        lines = files[own].splitlines(keepends=True)
        match what:
            case "line":
                files[own] = b"".join(lines[:4] + lines[5:])
            case "head":
                files[own] = b"".join(lines[1:])
            case "tail":
                files[own] = files[own][:-20]
            case "beneath":
                del files[beneath]
            case "id":
                files[own] = files[own].replace(fork.cursor.native_id.encode(), root.native_id.encode())
            case _:
                files = {name.replace("sessions/", "sessions/x/"): data for name, data in files.items()}
        bad = lab.file("bad.zip", "archives")
        pack(bad, "codex", FORMAT, contents.native_id, files, contents.facts)
        before = everything(lab.root("b"))
        with pytest.raises(BadArchive):
            await other.restore(bad, lab.directory("there"))
        assert everything(lab.root("b")) == before

    lab.play(scene())


@pytest.mark.case("T02", "T07")
def test_a_restore_that_codex_refuses_changes_nothing(lab: Lab) -> None:
    async def scene() -> None:
        one = lab.provider("a")
        cursor = await lab.begun(one)
        archive = await archived(lab, one, cursor)
        other = lab.provider("b")
        config = lab.root("b") / "config.toml"
        config.write_text(config.read_text().replace("loopback", "another"))
        with pytest.raises(Refused):
            await other.restore(archive, lab.directory("there"))
        assert everything(lab.root("b")) == {}
        assert (await other.probe(cursor, lab.directory("there"))).kind is ProbeKind.MISSING

    lab.play(scene())


@pytest.mark.case("T08")
def test_a_session_is_not_restored_over_while_another_program_has_it(lab: Lab) -> None:
    async def scene() -> None:
        one, other = lab.provider("a"), lab.provider("b")
        cursor = await lab.begun(one)
        archive = await archived(lab, one, cursor)
        await other.restore(archive, lab.directory("there"))
        end = await lab.holding(cursor, "b")
        try:
            before = everything(lab.root("b"))
            with pytest.raises(SessionBusy):
                await other.restore(archive, lab.directory("there"))
            assert everything(lab.root("b")) == before
        finally:
            await end()
        await other.restore(archive, lab.directory("there"))

    lab.play(scene())


@pytest.mark.case("T08")
@pytest.mark.parametrize("seconds", [0.5, 60])
def test_nobody_is_waited_for_without_end(lab: Lab, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """All locks of a home come and go under one; a program that hangs may hold it."""
    monkeypatch.setattr(locks, "_PATIENCE", 1.5)

    async def scene() -> None:
        one = lab.provider()
        cursor = await lab.begun(one)
        archive = await archived(lab, one, cursor)
        before = everything(lab.root())
        with (lab.root() / "thread-writer-locks" / ".coordination.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            asyncio.get_running_loop().call_later(seconds, fcntl.flock, file, fcntl.LOCK_UN)
            async with asyncio.timeout(15):
                if seconds < 1:
                    assert await one.restore(archive, lab.directory()) == cursor
                    return
                with pytest.raises(SessionBusy, match=r"coordination\.lock"):
                    await one.restore(archive, lab.directory())
        assert everything(lab.root()) == before
        # Nothing that was taken on the way is still held.
        await lab.goes_on(one, cursor)

    lab.play(scene())


@pytest.mark.case("T08")
def test_a_damaged_session_is_set_aside_and_not_deleted(lab: Lab) -> None:
    async def scene() -> None:
        one = lab.provider("a")
        cursor = await lab.begun(one)
        await lab.goes_on(one, cursor, "second")
        archive = await archived(lab, one, cursor)
        (path,) = lab.rollouts()
        lines = path.read_bytes().splitlines(keepends=True)
        damaged = b"".join(lines[:6] + lines[8:])
        path.write_bytes(damaged)
        with pytest.raises(BadArchive):
            await archived(lab, one, cursor, "of-a-loss.zip")
        await one.restore(archive, lab.directory())
        (aside,) = path.parent.glob("*.damaged-*")
        assert aside.read_bytes() == damaged
        assert (await lab.goes_on(one, cursor, "third")).seen.users == 3

    lab.play(scene())


@pytest.mark.case("T08")
def test_a_session_that_went_on_here_and_there_is_refused(lab: Lab) -> None:
    async def scene() -> None:
        one, other = lab.provider("a"), lab.provider("b")
        cursor = await lab.begun(one)
        await other.restore(await archived(lab, one, cursor), lab.directory("there"))
        await lab.goes_on(one, cursor, "here")
        await lab.goes_on(other, cursor, "there", directory="there")
        before = everything(lab.root("a"))
        with pytest.raises(SessionDiverged):
            await one.restore(await archived(lab, other, cursor, "back.zip"), lab.directory())
        assert everything(lab.root("a")) == before

    lab.play(scene())


@pytest.mark.case("T08")
def test_a_session_that_its_person_archived_is_left_alone(lab: Lab) -> None:
    async def scene() -> None:
        one = lab.provider("a")
        cursor = await lab.begun(one)
        archive = await archived(lab, one, cursor)
        await lab.raw("thread/archive", {"threadId": cursor.native_id})
        with pytest.raises(SessionArchived):
            await one.restore(archive, lab.directory())
        assert lab.rollouts() == []

    lab.play(scene())


@pytest.mark.case("P12", "T03")
def test_a_line_that_was_torn_by_a_kill_costs_nothing_else(lab: Lab) -> None:
    async def scene() -> None:
        one, other = lab.provider("a"), lab.provider("b")
        cursor = await lab.begun(one)
        (path,) = lab.rollouts()
        path.write_bytes(path.read_bytes() + b'{"timestamp":"2026-11-16T00:0')
        assert (await lab.goes_on(one, cursor, "second")).seen.users == 2
        with pytest.raises(json.JSONDecodeError):
            lines_of(path)
        await other.restore(await archived(lab, one, cursor), lab.directory("there"))
        assert (await lab.goes_on(other, cursor, "third", directory="there")).seen.users == 3

    lab.play(scene())


@pytest.mark.case("T03")
def test_a_session_is_archived_while_it_is_open_and_at_work(lab: Lab) -> None:
    async def scene() -> Any:
        one, other = lab.provider("a"), lab.provider("b")
        session = await lab.open(one)
        await turn(session, "first")
        assert session.cursor is not None
        working = asyncio.create_task(turn(session, "RUN: sleep 1"))
        await asyncio.sleep(0.5)
        archive = await archived(lab, one, session.cursor)
        await working
        await other.restore(archive, lab.directory("there"))
        assert (await lab.goes_on(other, session.cursor, "there", directory="there")).seen.first == "first"

    lab.play(scene())
