"""Carrying sessions of the real program: into other directories and other homes, and back."""

import asyncio
import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Cursor, Directory, ProbeKind
from clew.ports.events import Ending, ToolFinished
from clew.ports.provider import OpenSpec, Provider
from clew.programs.archive import join, pack, unpack
from clew.programs.faults import BadArchive, CannotStart, HomeFailed, NotAble, Refused
from clew.providers.claude.archive import FORMAT
from tests.providers.agents import run as by_itself
from tests.providers.claude.kit import ASK, EDIT, FULL, READ, Place, begun, call, run, turn
from tests.providers.loopback.server import Model

FORMATS = frozenset({"claude-jsonl-1"})


def history(model: Model, *places: Place) -> list[Any]:
    """What the model was sent last, block by block, but for where homes and directories are."""
    text = json.dumps(model.work[-1].body["messages"])
    for each in places:
        text = text.replace(str(each.root), "PLACE")
    blocks: list[Any] = []
    for message in json.loads(text):
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        # Where the cache is cut depends on the requests before.
        blocks += [(message["role"], {k: v for k, v in part.items() if k != "cache_control"}) for part in parts]
    return blocks


def same(one: list[Any], two: list[Any]) -> None:
    differ = [pair for pair in zip(one, two, strict=True) if pair[0] != pair[1]]
    assert not differ, differ


async def cmp(provider: Provider, model: Model, spec: OpenSpec, *places: Place) -> list[Any]:
    session = await provider.open(spec)
    assert (await turn(session, "compare")).done.ending is Ending.COMPLETED
    await session.close()
    return history(model, *places)


@pytest.mark.case("T01", "T03", "T06", "A01")
def test_a_session_goes_to_another_home_and_comes_back(
    place: Place, other: Place, model: Model, tmp_path: Path
) -> None:
    # A directory whose name the program cuts and hashes.
    far = other.work("/".join(("far" * 15,) * 5))
    out, more, back = (tmp_path / name for name in ("out.zip", "more.zip", "back.zip"))

    async def away() -> tuple[Cursor, list[Any]]:
        async with place.provider() as provider:
            cursor = await begun(
                provider,
                place.work(),
                "first\nTHINK: let me see",
                "RUN: seq 1 20000",
                f"WRITE: {place.work().path}/file text",
                call("Agent", description="d", prompt="RUN: pwd", subagent_type="general-purpose"),
                call("TaskCreate", subject="one step", description="d"),
                mode=FULL,
            )
            there = await cmp(provider, model, OpenSpec(place.work(), ASK, cursor, fork=True), place, other)
            made = await provider.archive(cursor, place.work(), out)
            assert (made.turns, made.native_id) == (5, cursor.native_id)
            _, files = unpack(out, "claude", frozenset({FORMAT}))
            names = {name.removeprefix(cursor.native_id).split("/")[0] for name in files}
            assert names == {".jsonl", "", "tasks"}, "the side thread, the long output or the list is not in"
            return cursor, there

    cursor, there = run(away())
    place.root.rename(tmp_path / "gone")

    async def abroad() -> list[Any]:
        async with other.provider() as provider:
            assert await provider.restore(out, far) == cursor
            assert (await provider.probe(cursor, far)).kind is ProbeKind.FOUND_HERE
            here = await cmp(provider, model, OpenSpec(far, ASK, cursor), place, other)
            same(there, here)
            # What the archive was allowed is not in force; and its list of tasks came along.
            session = await provider.open(OpenSpec(far, READ, cursor))
            assert session.landing.mode is READ
            assert session.landing.turns == 6
            await turn(session, f"RUN: touch {far.path}/forbidden")
            assert not (Path(far.path) / "forbidden").exists()
            assert "one step" in (await turn(session, call("TaskList"))).reply
            await session.close()
            before = await cmp(provider, model, OpenSpec(far, ASK, cursor, fork=True), place, other)
            # Only what was added, joined with what there was.
            assert not (await provider.archive(cursor, far, more, since=out)).whole
            join(out, more, back)
            assert more.stat().st_size < back.stat().st_size
            return before

    before = run(abroad())
    (tmp_path / "gone").rename(place.root)
    other.root.rename(tmp_path / "other-gone")

    async def home() -> None:
        async with place.provider() as provider:
            assert await provider.restore(back, place.work()) == cursor
            same(before, await cmp(provider, model, OpenSpec(place.work(), EDIT, cursor), place, other))
            session = await provider.open(OpenSpec(place.work(), EDIT, cursor))
            assert session.landing.turns == 9
            seen = (await turn(session, "RUN: touch at-home")).seen
            assert (seen.users, seen.first[:5]) == (10, "first")
            assert (Path(place.work().path) / "at-home").exists()

    run(home())


@pytest.mark.case("T01", "T06", "C16", "C17")
def test_a_restored_session_belongs_to_its_new_directory_at_once(place: Place, model: Model, tmp_path: Path) -> None:
    # The program gives both the same project, and so the same file.
    here, twin, far = place.work("w-1"), place.work("w/1"), place.work("far")
    out, more = tmp_path / "out.zip", tmp_path / "more.zip"

    async def is_in(provider: Provider, cursor: Cursor, directory: Directory) -> None:
        for each in (here, twin, far):
            probe = await provider.probe(cursor, each)
            kind = ProbeKind.FOUND_HERE if each == directory else ProbeKind.FOUND_ELSEWHERE
            assert (probe.kind, probe.directory) == (kind, directory)
            if each != directory:
                with pytest.raises(NotAble):
                    await provider.open(OpenSpec(each, FULL, cursor))
        assert [found.directory for found in await provider.sessions()] == [directory]

    async def goes_on(provider: Provider, cursor: Cursor, directory: Directory) -> list[Any]:
        session = await provider.open(OpenSpec(directory, FULL, cursor))
        assert session.landing.directory == directory
        assert (await turn(session, "RUN: pwd")).reply.startswith(f"TOOL SAID: {directory.path}\n")
        await session.close()
        return history(model)

    async def scene() -> None:
        async with place.provider() as provider:
            cursor = await begun(provider, here, "first", "RUN: echo second", mode=FULL)
            before = place.transcript(cursor).read_bytes()
            await is_in(provider, cursor, here)
            await provider.archive(cursor, here, out)
            await provider.restore(out, here)
            assert place.transcript(cursor).read_bytes() == before, "it belonged there already"
            for directory in (twin, far, twin):
                await provider.restore(out, directory)
                assert place.transcript(cursor).read_bytes().startswith(before), "it is not what it was, and more"
                await is_in(provider, cursor, directory)
            await goes_on(provider, cursor, twin)
            await is_in(provider, cursor, twin)
            # What was said in either is in the history, whole, wherever it goes.
            await provider.archive(cursor, twin, more)
            await provider.restore(more, here)
            await is_in(provider, cursor, here)
            blocks = json.dumps(await goes_on(provider, cursor, here))
            texts = ("first", "RUN: echo second", "TOOL SAID: second", f"TOOL SAID: {twin.path}")
            assert all(text in blocks for text in texts), blocks
            assert "clew-bound" not in blocks
            (found,) = await provider.sessions()
            assert found.turns == 4
            # And to whoever resumes it without us.
            await provider.archive(cursor, here, more)
            await provider.restore(more, far)
            ended = by_itself(place.settings, "-p", "--resume", cursor.native_id, "natively", cwd=Path(far.path))
            assert 'users=5 first="first"' in ended.out, ended.err

    run(scene())


# ---------------------------------------------------------------- what is refused


def _cut(files: dict[str, bytes], transcript: str) -> None:
    files[transcript] = files[transcript][:-20]


def _garbled(files: dict[str, bytes], transcript: str) -> None:
    lines = files[transcript].split(b"\n")
    lines[2] = lines[2][: len(lines[2]) // 2]
    files[transcript] = b"\n".join(lines)


def _foreign(files: dict[str, bytes], transcript: str) -> None:
    files[transcript] = files[transcript].replace(transcript[:8].encode(), b"00000000")


def _beside(files: dict[str, bytes], _: str) -> None:
    files["settings.json"] = b'{"permissions": {"defaultMode": "bypassPermissions"}}'


def _without(files: dict[str, bytes], transcript: str) -> None:
    del files[transcript]


def tree(root: Path) -> dict[str, str]:
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.case("T02", "T08")
def test_what_is_damaged_foreign_diverged_or_loaded_changes_nothing(place: Place, other: Place, tmp_path: Path) -> None:
    out, spoilt = tmp_path / "out.zip", tmp_path / "spoilt.zip"
    spoilers: tuple[Callable[[dict[str, bytes], str], None], ...] = (_cut, _garbled, _foreign, _beside, _without)

    async def scene() -> None:
        async with place.provider() as provider, other.provider() as abroad:
            cursor = await begun(provider, place.work(), "first")
            await provider.archive(cursor, place.work(), out)
            before = tree(other.config)
            for spoil in spoilers:
                contents, files = unpack(out, "claude", FORMATS)
                spoil(files, f"{cursor.native_id}.jsonl")
                # Digests and list are right: what is wrong was so when it was packed.
                pack(spoilt, "claude", contents.format, cursor.native_id, files, contents.facts)
                with pytest.raises(BadArchive):
                    await abroad.restore(spoilt, other.work())
                assert tree(other.config) == before, spoil.__name__
            with pytest.raises(CannotStart, match="not there"):
                await abroad.restore(out, Directory(str(tmp_path / "gone")))
            assert tree(other.config) == before

            live = await provider.open(OpenSpec(place.work(), EDIT, cursor))
            with pytest.raises(Refused):
                await provider.restore(out, place.work())
            assert (await turn(live, "second")).seen.users == 2
            await live.close()
            before = tree(place.config)
            with pytest.raises(Refused):
                await provider.restore(out, place.work("moved"))
            assert tree(place.config) == before

            # Where it cannot be written, what is half done is taken back.
            project = other.config / "projects"
            project.mkdir()
            await abroad.restore(out, other.work())
            (restored,) = project.iterdir()
            shutil.rmtree(restored)
            restored.write_text("in the way")
            before = tree(other.config)
            with pytest.raises(HomeFailed):
                await abroad.restore(out, other.work())
            assert tree(other.config) == before
            restored.unlink()
            # Two at once are one session.
            both = await asyncio.gather(*(abroad.restore(out, other.work()) for _ in range(2)))
            assert both == [cursor, cursor]
            assert [path.name for path in restored.iterdir()] == [f"{cursor.native_id}.jsonl"]

            # One that says nothing any more is set aside, not deleted.
            transcript = place.transcript(cursor)
            transcript.write_bytes(b"\0\0\0")
            assert (await provider.probe(cursor, place.work())).signal == "transcript-empty"
            await provider.restore(out, place.work())
            assert transcript.with_suffix(".jsonl.aside-1").read_bytes() == b"\0\0\0"
            assert [each.turns for each in await provider.sessions()] == [1]

    run(scene())


@pytest.mark.case("T02", "T08")
def test_a_restore_that_fails_half_way_leaves_all_as_it_was(place: Place, other: Place, tmp_path: Path) -> None:
    out, spoilt = tmp_path / "out.zip", tmp_path / "spoilt.zip"

    async def scene() -> None:
        async with place.provider() as provider, other.provider() as abroad:
            cursor = await begun(provider, place.work(), "first")
            await provider.archive(cursor, place.work(), out)
            contents, files = unpack(out, "claude", FORMATS)
            at = cursor.native_id
            for extra in (
                {f"{at}/first": b"1", f"{at}/{'n' * 300}": b"2"},
                {f"{at}/first": b"1", f"tasks/{at}/{'n' * 300}": b"2"},
                {f"{at}/first": b"1", f"{at}/first/second": b"2"},
                {f"{at}/first": b"1", f"{at}/subagents/agent-a.jsonl": b"no line of a thread\n"},
                {f"{at}/first": b"1", f"{at}/subagents/agent-a.jsonl": b'{"cut": '},
            ):
                pack(spoilt, "claude", contents.format, at, {**files, **extra}, contents.facts)
                for each, there in ((provider, place), (abroad, other)):
                    before = tree(there.config)
                    with pytest.raises((BadArchive, HomeFailed)):
                        await each.restore(spoilt, there.work())
                    assert tree(there.config) == before, extra
                    assert not list(there.config.rglob("*clew-*e*")), "something was left on the way"
            # What was there is given back when it is the transcript that cannot be put in its place.
            beside = place.transcript(cursor).with_suffix("") / "tool-results" / "long.txt"
            beside.parent.mkdir(parents=True)
            beside.write_text("old")
            await provider.archive(cursor, place.work(), out)
            await abroad.restore(out, other.work())
            (other.transcript(cursor).with_suffix("") / "tool-results" / "long.txt").write_text("here")
            transcript = other.transcript(cursor)
            transcript.unlink()
            transcript.mkdir()
            before = tree(other.config)
            with pytest.raises(HomeFailed):
                await abroad.restore(out, other.work())
            assert tree(other.config) == before

    run(scene())


@pytest.mark.case("T01", "T08")
def test_what_lies_beside_is_never_put_back(place: Place, other: Place, tmp_path: Path) -> None:
    out, newer = tmp_path / "out.zip", tmp_path / "newer.zip"

    async def scene() -> None:
        async with place.provider() as provider, other.provider() as abroad:
            cursor = await begun(provider, place.work(), "first")
            thread = place.transcript(cursor).with_suffix("") / "subagents" / "agent-a.jsonl"
            task = place.config / "tasks" / cursor.native_id / "1.json"
            for file, text in ((thread, '{"n":1}\n'), (task, '{"status":"pending"}')):
                file.parent.mkdir(parents=True)
                file.write_text(text)
            # Of a line that is being written, nothing is carried; and nothing of a thread that is none.
            thread.write_text('{"n":1}\n{"n":')
            (thread.parent / "agent-b.jsonl").write_text("garbage\n")
            await provider.archive(cursor, place.work(), out)
            _, files = unpack(out, "claude", FORMATS)
            assert files[f"{cursor.native_id}/subagents/agent-a.jsonl"] == b'{"n":1}\n'
            assert f"{cursor.native_id}/subagents/agent-b.jsonl" not in files
            await provider.restore(out, place.work())

            # The thread went further here, and stays as it is.
            thread.write_text('{"n":1}\n{"n":2}\n')
            await provider.restore(out, place.work())
            assert thread.read_text() == '{"n":1}\n{"n":2}\n'
            # It went another way; the list went on, and the archive says no more than what is here.
            for file, text in ((thread, '{"n":3}\n'), (task, '{"status":"completed"}')):
                kept = file.read_text()
                file.write_text(text)
                before = tree(place.config)
                for directory in (place.work(), place.work("moved")):
                    with pytest.raises(Refused, match="has changed here"):
                        await provider.restore(out, directory)
                    assert tree(place.config) == before
                file.write_text(kept)

            # Where the session itself went on abroad, so did its list.
            await abroad.restore(out, other.work())
            session = await abroad.open(OpenSpec(other.work(), EDIT, cursor))
            await turn(session, "second")
            await session.close()
            (other.config / "tasks" / cursor.native_id / "1.json").write_text('{"status":"in_progress"}')
            await abroad.archive(cursor, other.work(), newer)
            await provider.restore(newer, place.work())
            assert task.read_text() == '{"status":"in_progress"}'
            assert thread.read_text() == '{"n":1}\n{"n":2}\n'

    run(scene())


@pytest.mark.case("T01")
def test_half_a_character_loses_nothing(place: Place, tmp_path: Path) -> None:
    """The program keeps the beginning of a long output, cut after so many halves of characters."""
    command = "python3 -c \"print('a' + chr(0x1F600) * 40000)\""

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            turned = await turn(session, f"RUN: {command}")
            assert [each.ok for each in turned.of(ToolFinished)] == [True]
            json.dumps([asdict(event) for event in turned.events], ensure_ascii=False).encode()
            assert (await turn(session, "half \ud83d")).seen.last == "half \ufffd"
            cursor = session.cursor
            await session.close()
            assert cursor is not None
            assert (await provider.archive(cursor, place.work(), tmp_path / "out.zip")).turns == 2

    run(scene())


@pytest.mark.case("C16", "P06")
def test_a_fork_takes_along_what_lies_beside_and_leaves_nothing_when_called_off(place: Place) -> None:
    elsewhere = place.work("elsewhere")

    def copies(cursor: Cursor) -> list[Path]:
        return [path for path in place.config.glob("*/*-*-*-*-*") if path.name != cursor.native_id]

    async def scene() -> None:
        async with place.provider() as provider:
            step = call("TaskCreate", subject="one step", description="d")
            cursor = await begun(provider, place.work(), step, "second")
            spec = OpenSpec(elsewhere, EDIT, cursor, fork=True)
            opening = asyncio.create_task(provider.open(spec))
            await asyncio.sleep(0.3)
            opening.cancel()
            with suppress(asyncio.CancelledError):
                await (await opening).close()
            opening = asyncio.create_task(provider.open(spec))
            await asyncio.sleep(0.2)
            await provider.close()
            with pytest.raises(Refused):
                await opening
            assert not place.left()
        async with place.provider() as provider:
            unused = await provider.open(spec)
            assert unused.cursor is None
            await unused.close()
            assert not [path for path in copies(cursor) if path.parent.name == "tasks"]
            assert [found.cursor for found in await provider.sessions()] == [cursor]

            fork = await provider.open(spec)
            assert (fork.landing.directory, fork.landing.turns) == (elsewhere, 2)
            assert "one step" in (await turn(fork, call("TaskList"))).reply
            assert (await turn(fork, "RUN: pwd")).reply.startswith(f"TOOL SAID: {elsewhere.path}")
            await fork.close()
            assert fork.cursor is not None
            found = await provider.probe(fork.cursor, elsewhere)
            assert found.kind is ProbeKind.FOUND_HERE
            listed = {each.cursor.native_id: each for each in await provider.sessions()}
            assert listed[fork.cursor.native_id].directory == Directory(elsewhere.path)
            assert (listed[fork.cursor.native_id].turns, listed[cursor.native_id].turns) == (4, 2)

    run(scene())
