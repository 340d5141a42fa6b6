"""The guide: what its lines do, and what becomes of its sessions."""

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Answer, Cursor, NativeId, PermissionMode, ProbeKind
from clew.ports.events import ApprovalAsked, Done, Ending, ErrorCode, PlanChanged, Thought, ToolFinished, ToolStarted
from clew.ports.provider import LiveSession, Provider, Settings
from clew.programs.faults import CannotLock, ProgramFault, Refused, SessionBusy
from clew.providers.guide import make
from clew.providers.guide.archive import restore_archive, write_archive
from clew.providers.guide.memory import Damaged, Memory, Session, Turn, home_of, read
from tests.providers.kit import QUICK, opened, place, run, spec, turn


def guide(tmp_path: Path, home: str = "home") -> Provider:
    return make(Settings(home={"GUIDE_HOME": str(tmp_path / home)}, deadlines=QUICK))


def file_of(tmp_path: Path, cursor: Cursor | None, home: str = "home") -> Path:
    assert cursor is not None
    return tmp_path / home / "sessions" / f"{cursor.native_id}.json"


def test_a_plain_prompt_gets_a_friendly_answer(tmp_path: Path) -> None:
    async def scene() -> str:
        async with opened(guide(tmp_path), spec(tmp_path, PermissionMode.EDIT)) as session:
            return (await turn(session, "Hello, who are you?")).reply

    reply = run(scene())
    assert "I am the guide" in reply
    assert str(tmp_path) in reply
    assert "the mode edit" in reply


def test_its_lines_think_plan_run_and_write(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(guide(tmp_path), spec(tmp_path)) as session:
            turned = await turn(
                session, "THINK: hm\nPLAN: look; leap\nRUN: echo hi\nRUN: false\nWRITE: deep/x some text"
            )
            assert [each.text for each in turned.of(Thought)] == ["hm"]
            assert [each.steps for each in turned.of(PlanChanged)] == [(("look", "pending"), ("leap", "pending"))]
            assert [each.ok for each in turned.of(ToolFinished)] == [True, False, True]
            assert [each.file for each in turned.of(ToolStarted)][2] == str(tmp_path / "deep" / "x")

    run(scene())
    assert (tmp_path / "deep" / "x").read_text() == "some text"


@pytest.mark.case("A01")
def test_edit_asks_before_it_writes_outside_its_directory(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(guide(tmp_path), spec(tmp_path / "here", PermissionMode.EDIT)) as session:
            await turn(session, f"WRITE: {tmp_path / 'outside'} text\nWRITE: ../beside text\nWRITE: inside text")

    run(scene())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["here", "home"]
    assert (tmp_path / "here" / "inside").exists()


@pytest.mark.case("L10")
def test_a_usage_limit_is_told_with_its_end(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(guide(tmp_path), spec(tmp_path)) as session:
            failed = (await turn(session, "FAIL: 429 2000000000")).failed
            assert (failed.code, failed.retryable, failed.reset_at) == (ErrorCode.USAGE_LIMIT, True, 2_000_000_000.0)
            for status, code in (
                (500, ErrorCode.MODEL_FAILED),
                (401, ErrorCode.NOT_ALLOWED),
                (400, ErrorCode.BAD_REQUEST),
            ):
                assert (await turn(session, f"FAIL: {status}")).failed.code is code
            assert (await turn(session, "and on")).done.ending is Ending.COMPLETED

    run(scene())


@pytest.mark.case("P12", "L12")
def test_a_crash_in_a_turn_leaves_what_was_said(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = guide(tmp_path)
        async with opened(provider, spec(tmp_path)) as session:
            turned = await turn(session, "CUT")
            assert turned.failed.code is ErrorCode.PROGRAM_ENDED
            cursor = session.cursor
            await session.close()
            again = await provider.open(spec(tmp_path, cursor=cursor))
            assert again.landing.turns == 1
            assert (await turn(again, "after")).seen.users == 2

    run(scene())


def test_silence_has_a_limit_and_a_question_is_no_silence(tmp_path: Path) -> None:
    async def patient(session: LiveSession) -> Ending:
        asked = asyncio.Event()
        question: list[ApprovalAsked] = []

        async def follow() -> Ending:
            ending = Ending.FAILED
            async for event in session.turn("RUN: echo hi"):
                if isinstance(event, ApprovalAsked):
                    question.append(event)
                    asked.set()
                if isinstance(event, Done):
                    ending = event.ending
            return ending

        going = asyncio.create_task(follow())
        await asked.wait()
        await asyncio.sleep(1.2)
        assert await session.answer(question[0].id, Answer.APPROVE)
        return await going

    async def scene() -> None:
        settings = Settings(home={"GUIDE_HOME": str(tmp_path)}, deadlines=replace(QUICK, silence=0.5))
        async with opened(make(settings), spec(tmp_path, PermissionMode.ASK)) as session:
            failed = (await turn(session, "HANG")).failed
            assert (failed.code, failed.retryable) == (ErrorCode.TOO_SLOW, True)
            assert await patient(session) is Ending.COMPLETED

    run(scene())


def test_a_session_open_in_another_process_is_not_opened(tmp_path: Path) -> None:
    async def scene() -> None:
        first, second = guide(tmp_path), guide(tmp_path)
        async with opened(first, spec(tmp_path)) as session:
            await turn(session, "first")
            assert session.cursor is not None
            with pytest.raises(SessionBusy):
                await second.open(spec(tmp_path, cursor=session.cursor))
            assert (await second.probe(session.cursor, place(tmp_path))).kind is ProbeKind.BUSY
            await session.close()
            # The agent itself keeps others out, whoever its client is.
            memory = Memory(tmp_path / "home")
            memory.lock(session.cursor.native_id)
            with pytest.raises(Refused, match="another process"):
                await second.open(spec(tmp_path, cursor=session.cursor))
            memory.release(session.cursor.native_id)
            again = await second.open(spec(tmp_path, cursor=session.cursor))
            assert (await turn(again, "second")).seen.users == 2
        await second.close()

    run(scene())


@pytest.mark.case("T08", "C15")
def test_a_damaged_session_is_not_missing_and_is_set_aside_by_a_restore(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = guide(tmp_path)
        async with opened(provider, spec(tmp_path)) as session:
            await turn(session, "first")
            cursor = session.cursor
            assert cursor is not None
            await session.close()
            archive = await provider.archive(cursor, place(tmp_path), tmp_path / "a.zip")
            file = file_of(tmp_path, cursor)
            file.write_text("{ damaged")
            with pytest.raises(Refused):
                await provider.open(spec(tmp_path, cursor=cursor))
            probe = await provider.probe(cursor, place(tmp_path))
            assert probe.kind is ProbeKind.REJECTED
            assert probe.signal in provider.capabilities.rejection_signals
            assert await provider.restore(archive.path, place(tmp_path)) == cursor
            aside = [each for each in file.parent.iterdir() if "damaged" in each.name]
            assert [each.read_text() for each in aside] == ["{ damaged"]
            again = await provider.open(spec(tmp_path, cursor=cursor))
            assert (await turn(again, "second")).seen.users == 2

    run(scene())


def test_a_list_of_many_sessions_comes_whole(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "home")
    for number in range(120):
        session = memory.create(str(tmp_path), [Turn(f"prompt {number}")])
        memory.release(session.id)

    async def scene() -> None:
        provider = guide(tmp_path)
        found = await provider.sessions()
        assert len({each.cursor.native_id for each in found}) == 120
        assert found[0].title == "prompt 119"
        assert (await provider.probe(found[-1].cursor, place(tmp_path))).kind is ProbeKind.FOUND_HERE

    run(scene())


def test_it_starts_fast_and_without_the_rest_of_clew(tmp_path: Path) -> None:
    code = (
        "import sys; import clew.providers.guide.agent.methods;"
        "print([each for each in sys.modules if each.startswith(('clew.kernel', 'clew.ports', 'clew.programs'))])"
    )
    said = subprocess.run((sys.executable, "-P", "-c", code), capture_output=True, text=True, check=True, cwd=tmp_path)
    assert said.stdout.strip() == "[]"


def test_it_ends_when_its_input_does(tmp_path: Path) -> None:
    command = (sys.executable, "-P", "-m", "clew.providers.guide.agent")
    began = time.monotonic()
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=20, cwd=tmp_path, check=False)
    assert ended.returncode == 0
    assert time.monotonic() - began < 20


def test_a_module_in_its_directory_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "asyncio.py").write_text("raise SystemExit('hijacked')")
    (tmp_path / "json.py").write_text("raise SystemExit('hijacked')")

    async def scene() -> Ending:
        async with opened(guide(tmp_path), spec(tmp_path)) as session:
            return (await turn(session, "hello")).done.ending

    assert run(scene()) is Ending.COMPLETED


def test_its_home_is_where_it_is_said_to_be() -> None:
    assert home_of({"GUIDE_HOME": "/g", "HOME": "/h"}) == Path("/g")
    assert home_of({"XDG_DATA_HOME": "/x", "HOME": "/h"}) == Path("/x/clew/guide")
    assert home_of({"HOME": "/h"}) == Path("/h/.local/share/clew/guide")
    assert os.environ.get("HOME") is None or home_of().name == "guide"


@pytest.mark.parametrize("text", ["guide_" + "0" * 23, "guide_" + "G" * 24, "../guide_" + "0" * 24])
def test_an_id_that_is_none_of_its_own_reaches_no_file(tmp_path: Path, text: str) -> None:
    async def scene() -> None:
        provider = guide(tmp_path)
        with pytest.raises(Refused):
            await provider.archive(Cursor(1, NativeId(text)), place(tmp_path), tmp_path / "a.zip")
        assert not (tmp_path / "home").exists()

    run(scene())


def test_a_provider_closed_while_it_opens_leaves_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        for pause in (0.0, 0.05, 0.15, 0.3):
            provider = guide(tmp_path)
            opening = asyncio.create_task(provider.open(spec(tmp_path)))
            await asyncio.sleep(pause)
            await provider.close()
            (outcome,) = await asyncio.gather(opening, return_exceptions=True)
            if isinstance(outcome, BaseException):
                assert isinstance(outcome, ProgramFault)
            else:
                await outcome.close()
        home = str(tmp_path / "home").encode()
        assert not [pid for pid in Path("/proc").glob("[0-9]*") if _mentions(pid, home)]

    run(scene())


def _mentions(process: Path, home: bytes) -> bool:
    try:
        return b"GUIDE_HOME=" + home in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


@pytest.mark.case("T08")
def test_the_same_prompt_answered_twice_is_not_the_same_history(tmp_path: Path) -> None:
    def turns(*replies: str) -> list[Turn]:
        return [Turn("look", reply=reply, ending="completed") for reply in replies]

    one, other = tmp_path / "one", tmp_path / "other"
    session = Memory(one).create(str(tmp_path), turns("here"))
    write_archive(one, NativeId(session.id), tmp_path / "a.zip")
    Memory(other).save(Session(session.id, str(tmp_path), 0.0, 0.0, turns("there")))
    with pytest.raises(Refused, match="other turns here"):
        restore_archive(other, tmp_path / "a.zip", place(tmp_path))
    assert Memory(other).load(session.id).turns == turns("there")


@pytest.mark.parametrize(
    "wrong",
    [
        {"updated": "x"},
        {"created": True},
        {"directory": 5},
        {"turns": [{"prompt": 5}]},
        {"turns": [{"prompt": "", "told": []}]},
        {"turns": [{"prompt": "", "ids": 5}]},
        {"turns": [{"prompt": "", "ids": [5]}]},
    ],
)
def test_a_file_that_holds_something_else_is_no_session(wrong: dict[str, Any]) -> None:
    whole = {"version": 1, "id": "guide_" + "0" * 24, "directory": "/", "created": 0.0, "updated": 0.0, "turns": []}
    assert read(json.dumps(whole).encode()).turns == []
    with pytest.raises(Damaged):
        read(json.dumps({**whole, **wrong}).encode())
    with pytest.raises(Damaged):
        read(b"[" * 200_000)


@pytest.mark.parametrize("spoilt", ["home", "home/sessions", "home/locks"])
def test_a_home_that_cannot_be_used_is_told_at_once(tmp_path: Path, spoilt: str) -> None:
    (tmp_path / spoilt).parent.mkdir(exist_ok=True)
    (tmp_path / spoilt).touch()

    async def scene() -> None:
        provider = make(Settings(home={"GUIDE_HOME": str(tmp_path / "home")}))
        began = time.monotonic()
        with pytest.raises((CannotLock, Refused), match="home"):
            await provider.open(spec(tmp_path))
        assert time.monotonic() - began < 10
        if spoilt != "home/locks":
            probe = await provider.probe(Cursor(1, NativeId("guide_" + "0" * 24)), place(tmp_path))
            assert probe.kind is ProbeKind.UNREACHABLE
        await provider.close()

    run(scene())


CALLS: list[tuple[Any, int]] = [
    ({"id": 1, "method": "initialize", "params": {}}, 0),
    ({"id": 1, "method": "initialize", "params": [1]}, 0),
    ({"id": 1, "method": "session/list", "params": [1]}, -32602),
    ({"id": 1, "method": "session/list", "params": {}}, -32603),
    ({"id": 1, "method": "session/new", "params": {"cwd": "/proc/1/fd/none\0"}}, -32602),
    ({"id": 1, "method": "session/prompt", "params": {"sessionId": []}}, -32602),
    ({"id": 1, "method": "session/new", "params": {"cwd": "/"}}, -32603),
    ({"id": 1, "method": ["x"], "params": {}}, -32602),
    ([1, 2], -32600),
    (7, -32600),
]


@pytest.mark.parametrize(("call", "code"), CALLS)
def test_every_call_gets_an_answer(tmp_path: Path, call: object, code: int) -> None:
    """Whatever it is, and whatever comes before it that asks for none."""
    (tmp_path / "file").touch()
    noise = [{"method": "session/cancel", "params": [1]}, {"id": [1], "result": {}}, {"id": 9, "result": {}}]
    said = subprocess.run(
        (sys.executable, "-P", "-m", "clew.providers.guide.agent"),
        input="".join(json.dumps(each) + "\n" for each in (*noise, call)),
        env={**os.environ, "GUIDE_HOME": str(tmp_path / "file")},
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
        cwd=tmp_path,
    )
    (answer,) = [json.loads(line) for line in said.stdout.splitlines()]
    assert answer.get("error", {}).get("code", 0) == code


def test_an_archive_into_no_directory_is_a_fault(tmp_path: Path) -> None:
    session = Memory(tmp_path / "home").create(str(tmp_path), [Turn("look")])
    (tmp_path / "file").touch()

    async def scene() -> None:
        cursor = Cursor(1, NativeId(session.id))
        for into in (tmp_path / "missing" / "a.zip", tmp_path / "file" / "a.zip", tmp_path):
            with pytest.raises(ProgramFault):
                await guide(tmp_path).archive(cursor, place(tmp_path), into)
        archive = await guide(tmp_path).archive(cursor, place(tmp_path), tmp_path / "a.zip")
        with pytest.raises(ProgramFault, match="file"):
            await guide(tmp_path, "file").restore(archive.path, place(tmp_path))

    run(scene())
    assert not (tmp_path / "missing").exists()
    assert not list(tmp_path.rglob("*.part"))
