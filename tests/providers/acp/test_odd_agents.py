"""What an agent may do that it should not, and what comes of it."""

import asyncio
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Answer, Cursor, NativeId, PermissionMode, ProbeKind
from clew.ports.events import Done, Ending, ErrorCode, ToolFinished, ToolStarted
from clew.ports.provider import Provider, Settings
from clew.programs.faults import CannotLock, CannotStart, NotAble, NotUnderstood, Refused, SessionBusy, TooSlow
from clew.providers.acp import make
from tests.providers.kit import QUICK, opened, place, run, spec, turn

AGENT = Path(__file__).with_name("odd_agent.py")
LISTS = {"sessionCapabilities": {"list": {}, "resume": {}}, "loadSession": True}
KNOWN = Cursor(1, NativeId("known-1"))
OF_OPENCODE = "ses_0123456789abcdefghijklmn"
UNKNOWN = Cursor(1, NativeId("unknown-1"))


def odd(told: dict[str, str] | None = None, **how: Any) -> Provider:
    program = (sys.executable, str(AGENT), json.dumps(how))
    return make(Settings(program=program, options=told or {}, deadlines=QUICK))


def known(directory: Path) -> list[dict[str, str]]:
    return [{"sessionId": "known-1", "cwd": str(directory)}]


# ---------------------------------------------------------------- missing


@pytest.mark.case("P11")
def test_an_agent_that_answers_for_any_session_is_asked_for_its_list(tmp_path: Path) -> None:
    how: dict[str, Any] = {"abilities": LISTS, "answers_unknown": True, "sessions": known(tmp_path)}

    async def scene() -> None:
        provider = odd({"list": "whole"}, **how)
        await provider.discover()
        probe = await provider.probe(UNKNOWN, place(tmp_path))
        assert probe.kind is ProbeKind.MISSING
        assert probe.signal in provider.capabilities.missing_signals
        assert (await provider.probe(KNOWN, place(tmp_path))).kind is ProbeKind.FOUND_HERE
        with pytest.raises(Refused, match="unknown-1"):
            await provider.open(spec(tmp_path, cursor=UNKNOWN))
        await provider.close()

    run(scene())


@pytest.mark.case("C13", "C15")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": -32002, "message": "Resource not found"}, ProbeKind.MISSING),
        ({"code": -32603, "message": "Session not found"}, ProbeKind.UNREACHABLE),
        ({"code": -32603, "message": "Internal", "data": {"name": "NotFoundError"}}, ProbeKind.UNREACHABLE),
        ({"code": -32000, "message": "Login needed"}, ProbeKind.UNREACHABLE),
    ],
)
def test_only_a_declared_code_says_that_a_session_is_missing(tmp_path: Path, error: Any, kind: ProbeKind) -> None:
    async def scene() -> None:
        provider = odd(abilities={"loadSession": True}, missing=error)
        probe = await provider.probe(UNKNOWN, place(tmp_path))
        assert probe.kind is kind
        assert (probe.signal in provider.capabilities.missing_signals) is (kind is ProbeKind.MISSING)
        with pytest.raises(Refused):
            await provider.open(spec(tmp_path, cursor=UNKNOWN))
        await provider.close()

    run(scene())


def test_a_user_says_which_code_means_missing(tmp_path: Path) -> None:
    async def scene() -> ProbeKind:
        provider = odd({"missing": "-32099"}, abilities={"loadSession": True}, missing={"code": -32099, "message": "x"})
        return (await provider.probe(UNKNOWN, place(tmp_path))).kind

    assert run(scene()) is ProbeKind.MISSING


def test_an_agent_that_can_neither_list_nor_resume_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = odd()
        assert (await provider.discover()).installed
        assert not provider.capabilities.resume
        assert (await provider.probe(KNOWN, place(tmp_path))).kind is ProbeKind.UNREACHABLE
        for attempt in (provider.open(spec(tmp_path, cursor=KNOWN)), provider.sessions()):
            with pytest.raises(NotAble):
                await attempt
        async with opened(provider, spec(tmp_path)) as session:
            assert (await turn(session, "hello")).reply == "you said hello"
            assert session.cursor is None

    run(scene())


# ---------------------------------------------------------------- one at a time


@pytest.mark.case("C29", "P05")
@pytest.mark.parametrize("cursor", [None, KNOWN])
def test_two_providers_of_one_home_do_not_open_one_session_twice(tmp_path: Path, cursor: Cursor | None) -> None:
    how: dict[str, Any] = {"abilities": LISTS, "sessions": known(tmp_path)}

    async def scene() -> None:
        one, two = odd(**how), odd(**how)
        session = await one.open(spec(tmp_path, cursor=cursor))
        held = Cursor(1, session.landing.native_id or NativeId(""))
        assert (await two.probe(held, place(tmp_path))).kind is ProbeKind.BUSY
        with pytest.raises(SessionBusy):
            await two.open(spec(tmp_path, cursor=held))
        if cursor is None:
            with pytest.raises(SessionBusy):
                await two.open(spec(tmp_path))
        else:
            await (await two.open(spec(tmp_path))).close()
        assert (await turn(session, "hello")).reply == "you said hello"
        await session.close()
        await (await two.open(spec(tmp_path, cursor=cursor))).close()
        await one.close()
        await two.close()
        assert not list((tmp_path / "home").rglob("locks/*/*"))

    run(scene())


def test_where_nobody_can_tell_who_has_a_session_none_is_opened(tmp_path: Path) -> None:
    (tmp_path / "home").touch()

    async def scene() -> None:
        provider = odd(abilities=LISTS, sessions=known(tmp_path))
        for cursor in (None, KNOWN):
            with pytest.raises(CannotLock, match="home"):
                await provider.open(spec(tmp_path, cursor=cursor))
        assert (await provider.probe(KNOWN, place(tmp_path))).kind is ProbeKind.UNREACHABLE
        await provider.close()

    run(scene())


@pytest.mark.parametrize(
    ("agent", "home", "locks"),
    [
        ("claude", {"HOME": "h"}, "h/.claude/clew-locks"),
        ("claude", {"HOME": "h", "CLAUDE_CONFIG_DIR": "h/.claude"}, "h/.claude/clew-locks"),
        ("codex", {"CODEX_HOME": "c"}, "c/clew-locks"),
        ("opencode", {"HOME": "h"}, "h/.local/share/opencode/opencode.db.clew-locks"),
        ("gemini", {"HOME": "h"}, "h/.gemini/clew-locks"),
    ],
)
def test_the_locks_of_a_preset_lie_in_the_store_of_its_agent(
    tmp_path: Path, agent: str, home: dict[str, str], locks: str
) -> None:
    id_ = OF_OPENCODE if agent == "opencode" else "0b5d2c1e-6f0a-4a53-9b0e-3f2a7c1d8e90"

    async def scene() -> None:
        settings = Settings(
            program=(sys.executable, str(AGENT), json.dumps({"new_id": id_})),
            home={name: str(tmp_path / where) for name, where in home.items()},
            options={"agent": agent, "mode.full": "wild"},
            deadlines=QUICK,
        )
        async with opened(make(settings), spec(tmp_path)):
            assert [each.name for each in (tmp_path / locks).iterdir()] == [id_]

    run(scene())


# ---------------------------------------------------------------- history and side threads


@pytest.mark.case("P10")
def test_history_that_is_played_back_is_not_told(tmp_path: Path) -> None:
    how: dict[str, Any] = {
        "abilities": {"loadSession": True},
        "sessions": known(tmp_path),
        "history": ["an old answer"],
    }

    async def scene() -> None:
        async with opened(odd(**how), spec(tmp_path, cursor=KNOWN)) as session:
            assert session.landing.native_id == "known-1"
            turned = await turn(session, "hello")
            assert turned.reply == "you said hello"
            assert "an old answer" not in repr(turned.events)

    run(scene())


@pytest.mark.case("S13", "P10")
def test_words_of_another_session_are_not_this_ones(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(odd(side=True), spec(tmp_path)) as session:
            turned = await turn(session, "hello")
            assert turned.text == "you said helloyou said hello"

    run(scene())


@pytest.mark.case("C17")
def test_a_session_of_another_directory_is_not_resumed_here(tmp_path: Path) -> None:
    there = tmp_path / "there"

    async def scene() -> None:
        provider = odd(abilities=LISTS, sessions=known(there))
        probe = await provider.probe(KNOWN, place(tmp_path))
        assert probe.kind is ProbeKind.FOUND_ELSEWHERE
        assert probe.directory == place(there)
        with pytest.raises(Refused, match="there"):
            await provider.open(spec(tmp_path, cursor=KNOWN))
        await provider.close()

    run(scene())


def test_a_fork_that_is_no_fork_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = odd(abilities={"sessionCapabilities": {"fork": {}}}, fork_id="known-1")
        with pytest.raises(Refused, match="instead of a fork"):
            await provider.open(spec(tmp_path, cursor=KNOWN, fork=True))
        await provider.close()

    run(scene())


# ---------------------------------------------------------------- modes and questions


@pytest.mark.case("P03", "A02")
def test_a_mode_that_the_agent_does_not_take_closes_the_way(tmp_path: Path) -> None:
    options = {"id": "m", "name": "Mode", "category": "mode", "type": "select", "currentValue": "wild", "options": []}

    async def scene() -> None:
        provider = odd({"mode.read": "calm"}, config=[options])
        with pytest.raises(Refused, match="wild"):
            await provider.open(spec(tmp_path, PermissionMode.READ))
        await provider.close()

    run(scene())


@pytest.mark.case("A01")
def test_nothing_is_known_of_an_agent_so_it_can_only_be_run_as_full(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = odd()
        assert provider.capabilities.modes == {PermissionMode.FULL}
        with pytest.raises(NotAble, match="full"):
            await provider.open(spec(tmp_path, PermissionMode.EDIT))

    run(scene())


ALLOW = {"optionId": "yes", "kind": "allow_once", "name": "Yes"}
ALWAYS = {"optionId": "ever", "kind": "allow_always", "name": "Always"}
REJECT = {"optionId": "no", "kind": "reject_once", "name": "No"}


@pytest.mark.case("A03")
@pytest.mark.parametrize(
    ("options", "given", "chosen"),
    [
        ([ALWAYS, ALLOW, REJECT], Answer.APPROVE, "yes"),
        ([ALWAYS, ALLOW, REJECT], Answer.DENY, "no"),
        ([ALWAYS, REJECT], Answer.APPROVE, None),
        ([ALLOW], Answer.DENY, None),
        ([], Answer.APPROVE, None),
    ],
)
def test_one_answer_is_for_one_act(tmp_path: Path, options: Any, given: Answer, chosen: str | None) -> None:
    async def scene() -> str:
        async with opened(odd({"asks": "yes"}, options=options), spec(tmp_path, PermissionMode.ASK)) as session:
            turned = await turn(session, "do it", given)
            assert [each.command for each in turned.of(ToolStarted)] == ["touch it"]
            return turned.reply

    outcome = json.loads(run(scene()))["outcome"]
    assert outcome == ({"outcome": "selected", "optionId": chosen} if chosen else {"outcome": "cancelled"})


# ---------------------------------------------------------------- ends


def test_what_is_garbled_ends_no_turn(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(odd(garbled=True, usage={"inputTokens": "many"}), spec(tmp_path)) as session:
            turned = await turn(session, "hello")
            assert turned.done.ending is Ending.COMPLETED
            assert turned.text.startswith("true"), "a question that cannot be read is refused, not left open"
            assert (await turn(session, "again")).done.ending is Ending.COMPLETED

    run(scene())


def test_a_tool_has_begun_when_it_is_told_what_it_does(tmp_path: Path) -> None:
    """OpenCode names a tool and where it will run before its model has said what."""
    begun = {"kind": "execute", "title": "bash", "status": "pending", "rawInput": {"cwd": "/tmp"}}
    told = {"status": "in_progress", "title": "ls", "rawInput": {"cwd": "/tmp", "command": "ls -l"}}
    ended = {"status": "completed", "rawOutput": {"output": "a"}}

    async def scene() -> None:
        async with opened(odd(tool=[begun, told, told, ended]), spec(tmp_path)) as session:
            turned = await turn(session, "hello")
            assert [(each.command, each.name) for each in turned.of(ToolStarted)] == [("ls -l", "ls")]
            assert [(each.ok, each.output) for each in turned.of(ToolFinished)] == [(True, "a")]

    run(scene())


def test_what_an_agent_leaves_lying_about_goes_with_it(tmp_path: Path) -> None:
    """OpenCode unpacks a library every time it starts, and never removes it."""
    code = f"import os; open(os.environ['BUN_TMPDIR'] + '/lib.so', 'w').close(); exec(open({str(AGENT)!r}).read())"
    state, lost = tmp_path / "state", tmp_path / "state" / "scratch" / "clew-4194305-1-lost"

    async def scene() -> None:
        lost.mkdir(parents=True)
        settings = Settings(
            program=(sys.executable, "-c", code, json.dumps({"new_id": OF_OPENCODE})),
            options={"agent": "opencode"},
            deadlines=QUICK,
            state=state,
        )
        async with opened(make(settings), spec(tmp_path)) as session:
            assert not lost.exists(), "what a crash left goes with the next start"
            assert [each.name for each in (state / "scratch").rglob("*.so")] == ["lib.so"]
            await session.close()
            assert not list((state / "scratch").iterdir())
        with pytest.raises(CannotStart):
            await make(replace(settings, program=("/nowhere",))).open(spec(tmp_path))
        assert not list((state / "scratch").iterdir())

    run(scene())


def test_a_turn_that_waits_for_its_mode_can_be_called_off(tmp_path: Path) -> None:
    modes = {"currentModeId": "a", "availableModes": [{"id": "a"}, {"id": "b"}]}
    told = {"mode.read": "a", "mode.full": "b"}

    async def scene() -> None:
        async with opened(odd(told, modes=modes), spec(tmp_path, PermissionMode.READ)) as session:
            first = asyncio.create_task(turn(session, "one"))
            await asyncio.sleep(0)
            assert await session.set_mode(PermissionMode.FULL) is PermissionMode.FULL
            assert "you said one" in (await first).text
            second = asyncio.create_task(turn(session, "two"))
            await asyncio.sleep(0)
            await session.interrupt()
            assert (await second).events == (Done(Ending.INTERRUPTED),)

    run(scene())


def test_an_agent_that_does_not_stop_when_asked_is_ended(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(odd(mute_cancel=True), spec(tmp_path)) as session:
            going = asyncio.create_task(turn(session, "hang"))
            await asyncio.sleep(0.5)
            await session.interrupt()
            assert (await going).done.ending is Ending.INTERRUPTED

    run(scene())


@pytest.mark.case("L12")
def test_the_last_words_of_an_agent_that_dies_are_told(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(odd(dies="out of memory in the loom"), spec(tmp_path)) as session:
            failed = (await turn(session, "hello")).failed
            assert failed.code is ErrorCode.PROGRAM_ENDED
            assert "out of memory in the loom" in failed.words

    run(scene())


@pytest.mark.parametrize("stop", ["refusal", "max_tokens", "something new"])
def test_a_turn_that_stops_short_has_failed(tmp_path: Path, stop: str) -> None:
    async def scene() -> None:
        async with opened(odd(stop=stop), spec(tmp_path)) as session:
            turned = await turn(session, "hello")
            assert turned.done.ending is Ending.FAILED
            assert not turned.failed.retryable
            assert turned.done.reply == "you said hello"

    run(scene())


@pytest.mark.parametrize("silent", ["initialize", "session/new"])
def test_an_agent_that_never_answers_is_given_up(tmp_path: Path, silent: str) -> None:
    async def scene() -> None:
        provider = make(
            Settings(
                program=(sys.executable, str(AGENT), json.dumps({"silent": [silent]})),
                deadlines=replace(QUICK, start=0.5),
                state=tmp_path / "state",
            )
        )
        began = time.monotonic()
        with pytest.raises(TooSlow):
            await provider.open(spec(tmp_path))
        assert time.monotonic() - began < 5
        assert not list((tmp_path / "state" / "ledger").iterdir())

    run(scene())


def test_an_agent_of_another_protocol_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = odd(protocol=2)
        assert "version 2" in (await provider.discover()).missing
        with pytest.raises(NotUnderstood):
            await provider.open(spec(tmp_path))

    run(scene())


@pytest.mark.parametrize(
    "options",
    [{"agent": "nobody"}, {"colour": "red"}, {"missing": "soon"}, {}],
)
def test_settings_that_make_no_sense_are_refused_with_what_to_do(options: dict[str, str]) -> None:
    with pytest.raises(Refused) as caught:
        make(Settings(program=() if not options else ("agent",), options=options))
    assert caught.value.remedy


@pytest.mark.case("C16")
def test_a_fork_of_nothing_is_no_new_session(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = odd(abilities={"sessionCapabilities": {"fork": {}}})
        with pytest.raises(Refused, match="fork"):
            await provider.open(spec(tmp_path, fork=True))
        await provider.close()

    run(scene())
