"""A command: only what its user said of it, and nothing beyond."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import Cursor, NativeId, PermissionMode, ProbeKind
from clew.ports.events import Ending, ErrorCode, SessionNamed, Text
from clew.ports.provider import Provider, Settings
from clew.programs.faults import CannotLock, CannotStart, NotAble, Refused, SessionBusy
from clew.providers.command import make
from tests.providers.kit import QUICK, opened, place, run, spec, turn

AGENT = (sys.executable, str(Path(__file__).with_name("agent.py")))


def command(tmp_path: Path, *program: str, **options: str) -> Provider:
    named = {name.replace("__", "."): text for name, text in options.items()}
    home = {"COMMAND_HOME": str(tmp_path / "home")}
    return make(Settings(program=program or AGENT, home=home, options=named, deadlines=QUICK))


def test_a_plain_program_gets_its_prompt_on_its_input(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(command(tmp_path, "sed", "s/^/> /"), spec(tmp_path)) as session:
            turned = await turn(session, "two\nlines")
            assert turned.reply == "> two\n> lines"
            assert [each.text for each in turned.of(Text) if not each.final] == ["> two\n", "> lines\n"]
            assert session.cursor is None
            with pytest.raises(NotAble):
                await turn(session, "again")

    run(scene())


def test_nothing_is_claimed_of_a_plain_program(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = command(tmp_path, "cat")
        can = provider.capabilities
        assert can.modes == {PermissionMode.FULL}
        assert not any((can.resume, can.fork, can.archive, can.choose_id, can.change_model, can.reports))
        cursor = Cursor(1, NativeId("one"))
        assert (await provider.probe(cursor, place(tmp_path))).kind is ProbeKind.UNREACHABLE
        for how in (
            spec(tmp_path, PermissionMode.READ),
            spec(tmp_path, cursor=cursor),
            spec(tmp_path, cursor=cursor, fork=True),
            spec(tmp_path, fresh_id=NativeId("one")),
            spec(tmp_path, model="other"),
        ):
            with pytest.raises(NotAble):
                await provider.open(how)
        assert (await provider.discover()).version == ""

    run(scene())


def test_a_prompt_as_an_argument_stays_one_argument(tmp_path: Path) -> None:
    prompt = 'it\'s "quoted" $HOME `x` {session} {options}\n--and a line'

    async def scene() -> str:
        provider = command(tmp_path, "printf", start="'%s|' {prompt} end")
        async with opened(provider, spec(tmp_path)) as session:
            return (await turn(session, prompt)).reply

    assert run(scene()) == f"{prompt}|end|"


@pytest.mark.case("S01")
def test_an_id_that_clew_chose_is_used_and_proven(tmp_path: Path) -> None:
    options = {
        "start": "turn --new {session}",
        "resume": "turn --session {session}",
        "probe": "show {session}",
        "missing": "44",
    }

    async def scene() -> None:
        provider = command(tmp_path, **options)
        assert provider.capabilities.choose_id
        async with opened(provider, spec(tmp_path, fresh_id=NativeId("chosen-1"))) as session:
            turned = await turn(session, "first")
            named = turned.of(SessionNamed)
            assert [(each.native_id, each.durable) for each in named] == [("chosen-1", False), ("chosen-1", True)]
            assert (await turn(session, "second")).seen.users == 2
            other = await provider.open(spec(tmp_path))
            await turn(other, "first")
            assert other.cursor is not None
            assert other.cursor.native_id != "chosen-1"

    run(scene())


@pytest.mark.parametrize("start", ["'%s|' {prompt} end", "'%s|' '{prompt} end'"])
def test_a_prompt_becomes_no_option(tmp_path: Path, start: str) -> None:
    async def scene() -> None:
        async with opened(command(tmp_path, "printf", start=start), spec(tmp_path)) as session:
            for prompt in ("--help", "-", "-v\nlines"):
                turned = await turn(session, prompt)
                assert (turned.failed.code, turned.failed.retryable) == (ErrorCode.BAD_REQUEST, False)
                assert "`--`" in turned.failed.words
                assert turned.done.ending is Ending.FAILED
            assert (await turn(session, "no - option")).done.ending is Ending.COMPLETED

    run(scene())


@pytest.mark.parametrize(
    ("start", "reply"), [("'[%s]' -- {prompt}", "[--][--help]"), ("'[%s]' --ask={prompt}", "[--ask=--help]")]
)
def test_a_prompt_that_stands_where_no_option_can_is_given(tmp_path: Path, start: str, reply: str) -> None:
    async def scene() -> str:
        async with opened(command(tmp_path, "printf", start=start), spec(tmp_path)) as session:
            return (await turn(session, "--help")).reply

    assert run(scene()) == reply


@pytest.mark.parametrize("prompt", ["a\0b", "x" * 5_000_000, "half \ud800"], ids=["zero", "long", "half"])
def test_a_prompt_that_can_be_no_argument_is_not_tried_again(tmp_path: Path, prompt: str) -> None:
    async def scene() -> None:
        async with opened(command(tmp_path, "echo", start="{prompt}"), spec(tmp_path)) as session:
            turned = await turn(session, prompt)
            assert (turned.failed.code, turned.failed.retryable) == (ErrorCode.BAD_REQUEST, False)
            assert len(turned.failed.words) < 500
            assert turned.done.ending is Ending.FAILED
            assert (await turn(session, "hello")).reply == "hello"

    run(scene())


FULL = {"session": "session: (.+)", "start": "turn", "resume": "turn --session {session}", "probe": "show {session}"}


@pytest.mark.case("C29", "P05")
def test_two_providers_of_one_home_do_not_open_one_session_twice(tmp_path: Path) -> None:
    async def scene() -> None:
        one, two = command(tmp_path, **FULL), command(tmp_path, **FULL)
        session = await one.open(spec(tmp_path))
        await turn(session, "first")
        cursor = session.cursor
        assert cursor is not None
        assert (await two.probe(cursor, place(tmp_path))).kind is ProbeKind.BUSY
        with pytest.raises(SessionBusy):
            await two.open(spec(tmp_path, cursor=cursor))
        await session.close()
        assert (await two.probe(cursor, place(tmp_path))).kind is ProbeKind.FOUND_HERE
        again = await two.open(spec(tmp_path, cursor=cursor))
        assert (await turn(again, "second")).seen.users == 2
        with pytest.raises(SessionBusy):
            await one.open(spec(tmp_path, cursor=cursor))
        await two.close()
        await (await one.open(spec(tmp_path, cursor=cursor))).close()
        with pytest.raises(Refused, match="not found"):
            await one.open(spec(tmp_path, cursor=Cursor(1, NativeId("nobody"))))
        await one.close()
        assert not list((tmp_path / "user").rglob("locks/*/*"))

    run(scene())


@pytest.mark.case("C29", "P05")
def test_a_new_session_that_is_an_open_one_ends_its_turn(tmp_path: Path) -> None:
    """A program that calls every new session the same goes on with somebody else's."""
    options = {
        **FULL,
        "start": "-c 'echo session: one; echo more; sleep 300'",
        "resume": "{session}",
        "probe": "-c true",
    }

    async def scene() -> None:
        one, two = (command(tmp_path, "/bin/sh", **options) for _ in range(2))
        first = await one.open(spec(tmp_path, cursor=Cursor(1, NativeId("one"))))
        second = await two.open(spec(tmp_path))
        turned = await turn(second, "hello")
        assert "open already" in turned.failed.words
        assert not turned.failed.retryable
        assert turned.done.ending is Ending.FAILED
        assert second.cursor is None
        await two.close()
        assert (await two.probe(Cursor(1, NativeId("one")), place(tmp_path))).kind is ProbeKind.BUSY
        await first.close()
        await one.close()

    run(scene())


def test_what_cannot_be_held_or_kept_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "user").touch()

    async def scene() -> None:
        provider = command(tmp_path, **FULL)
        for cursor in (None, Cursor(1, NativeId("one"))):
            with pytest.raises(CannotLock):
                await provider.open(spec(tmp_path, cursor=cursor))
        assert (await provider.probe(Cursor(1, NativeId("one")), place(tmp_path))).kind is ProbeKind.UNREACHABLE
        # One that nobody can resume needs no lock.
        await (await command(tmp_path, "cat").open(spec(tmp_path))).close()
        settings = Settings(program=("cat",), deadlines=QUICK, state=tmp_path / "user")
        with pytest.raises(CannotStart, match="user"):
            await make(settings).open(spec(tmp_path))

    run(scene())


def test_a_closed_provider_opens_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = command(tmp_path, **FULL)
        await provider.close()
        with pytest.raises(Refused, match="closed"):
            await provider.open(spec(tmp_path))

    run(scene())


@pytest.mark.case("P14")
def test_an_id_that_leads_nowhere_is_not_given_out(tmp_path: Path) -> None:
    async def scene() -> None:
        options = {"session": "session: (.+)", "resume": "go {session}", "probe": "show {session}", "missing": "44"}
        provider = command(tmp_path, *AGENT, start="turn", **{**options, "probe": "show never-there"})
        async with opened(provider, spec(tmp_path)) as session:
            turned = await turn(session, "first")
            assert [each.durable for each in turned.of(SessionNamed)] == [False]
            assert session.cursor is None

    run(scene())


def test_arguments_of_mode_and_model_go_where_they_belong(tmp_path: Path) -> None:
    options = {"start": "'[%s]' {options} -- {prompt}", "model": "-m {model}", "mode.read": "-r", "mode.full": "-f -y"}

    async def scene(mode: PermissionMode, model: str | None) -> str:
        settings = Settings(program=("printf",), options=options, deadlines=QUICK)
        async with opened(make(settings), spec(tmp_path, mode, model=model)) as session:
            return (await turn(session, "hi")).reply

    assert run(scene(PermissionMode.FULL, None)) == "[-f][-y][--][hi]"
    assert run(scene(PermissionMode.EDIT, "big one")) == "[-r][-m][big one][--][hi]"


@pytest.mark.parametrize(
    ("how", "code", "retryable"),
    [("exit 3", ErrorCode.UNKNOWN, False), ("kill -9 $$", ErrorCode.PROGRAM_ENDED, True)],
)
def test_an_exit_status_is_told_with_the_last_words(tmp_path: Path, how: str, code: ErrorCode, retryable: bool) -> None:
    async def scene() -> None:
        program = ("/bin/sh", "-c", f"cat >/dev/null; echo partly; echo it broke >&2; {how}")
        async with opened(command(tmp_path, *program), spec(tmp_path)) as session:
            turned = await turn(session, "hello")
            assert (turned.failed.code, turned.failed.retryable) == (code, retryable)
            assert "it broke" in turned.failed.words
            assert turned.done == replace(turned.done, ending=Ending.FAILED, reply="partly")

    run(scene())


def test_silence_has_a_limit(tmp_path: Path) -> None:
    async def scene() -> None:
        settings = Settings(program=("sleep", "300"), deadlines=replace(QUICK, silence=0.5))
        async with opened(make(settings), spec(tmp_path)) as session:
            failed = (await turn(session, "hello")).failed
            assert (failed.code, failed.retryable) == (ErrorCode.TOO_SLOW, True)

    run(scene())


def test_a_program_that_does_not_want_its_input_is_judged_by_its_exit_status(tmp_path: Path) -> None:
    async def scene() -> None:
        for prompt in ("hello", "x" * 5_000_000):
            async with opened(command(tmp_path, "echo", "done"), spec(tmp_path)) as session:
                turned = await turn(session, prompt)
                assert (turned.done.ending, turned.reply) == (Ending.COMPLETED, "done")

    run(scene())


def test_what_a_program_prints_before_it_reads_a_long_prompt_is_shown_at_once(tmp_path: Path) -> None:
    """This one reads its input only after its first line was shown."""
    go = tmp_path / "go"
    program = f"""
import pathlib, sys, time
print("first", flush=True)
while not pathlib.Path({str(go)!r}).exists():
    time.sleep(0.01)
print(len(sys.stdin.read()))
"""

    async def scene() -> None:
        said: list[str] = []
        async with opened(command(tmp_path, sys.executable, "-c", program), spec(tmp_path)) as session:
            async for event in session.turn("x" * 5_000_000):
                if isinstance(event, Text) and not event.final:
                    said.append(event.text)
                    go.touch()
        assert said == ["first\n", "5000001\n"]

    run(scene())


def test_a_program_that_does_not_read_is_given_up_in_time(tmp_path: Path) -> None:
    async def scene() -> None:
        settings = Settings(program=("sleep", "300"), deadlines=replace(QUICK, silence=0.5))
        async with opened(make(settings), spec(tmp_path)) as session:
            assert (await turn(session, "x" * 5_000_000)).failed.code is ErrorCode.TOO_SLOW

    run(scene())


@pytest.mark.parametrize("how", ["interrupt", "close the session", "close the provider"])
def test_what_is_called_off_while_the_program_starts_leaves_nothing(tmp_path: Path, how: str) -> None:
    async def scene() -> None:
        settings = Settings(program=("/bin/sh", "-c", "sleep 300"), deadlines=QUICK, state=tmp_path)
        for steps in (1, 3, 6, 12):
            provider = make(settings)
            async with opened(provider, spec(tmp_path)) as session:
                going = asyncio.create_task(turn(session, "hello"))
                for _ in range(steps):
                    await asyncio.sleep(0)
                end = {"interrupt": session.interrupt, "close the session": session.close}.get(how, provider.close)
                await end()
                assert (await going).done.ending is Ending.INTERRUPTED
                assert not list((tmp_path / "ledger").iterdir())

    run(scene())


@pytest.mark.case("C12")
def test_what_a_program_calls_its_session_becomes_no_option_of_it(tmp_path: Path) -> None:
    options = {"session": "session: (.+)", "resume": "{session}", "probe": "{session}"}

    async def scene() -> None:
        provider = command(tmp_path, "/bin/sh", start="-c 'echo session: --help'", **options)
        async with opened(provider, spec(tmp_path)) as session:
            turned = await turn(session, "first")
            assert not turned.of(SessionNamed)
            assert turned.reply == "session: --help"

    run(scene())


def test_a_turn_that_nobody_follows_any_more_leaves_nothing(tmp_path: Path) -> None:
    """Neither the program, nor the question whether its session can be found."""
    options = {"session": "session: (.+)", "resume": "{session}", "start": "-c 'echo session: one; sleep 300'"}

    async def scene() -> None:
        settings = Settings(
            program=("/bin/sh",), options={**options, "probe": "-c 'sleep 300'"}, deadlines=QUICK, state=tmp_path
        )
        async with opened(make(settings), spec(tmp_path)) as session:
            events = session.turn("first")
            assert isinstance(events, AsyncGenerator)
            await anext(events)
            await asyncio.sleep(0.2)
            await events.aclose()
            assert not list((tmp_path / "ledger").iterdir())

    run(scene())


def test_a_probe_that_fails_otherwise_says_nothing_of_the_session(tmp_path: Path) -> None:
    options = {"session": "(.+)", "resume": "{session}", "missing": "44"}

    async def scene(probe: str) -> ProbeKind:
        settings = Settings(
            program=("/bin/sh",), options={**options, "probe": probe}, deadlines=replace(QUICK, answer=1)
        )
        return (await make(settings).probe(Cursor(1, NativeId("one")), place(tmp_path))).kind

    assert run(scene("-c 'exit 44'")) is ProbeKind.MISSING
    assert run(scene("-c 'echo not found; exit 1'")) is ProbeKind.UNREACHABLE
    assert run(scene("-c 'kill -9 $$'")) is ProbeKind.UNREACHABLE
    assert run(scene("-c 'sleep 60'")) is ProbeKind.UNREACHABLE
    assert run(scene("-c true")) is ProbeKind.FOUND_HERE


def test_an_id_is_never_taken_for_an_option(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = command(tmp_path, session="(.+)", resume="{session}", probe="{session}")
        for text in ("--help", "-x", "a b", "a;b", "$(x)"):
            probe = await provider.probe(Cursor(1, NativeId(text)), place(tmp_path))
            assert (probe.kind, probe.signal) == (ProbeKind.REJECTED, "malformed-id")
            with pytest.raises(Refused):
                await provider.open(spec(tmp_path, cursor=Cursor(1, NativeId(text))))
        probe = await provider.probe(Cursor(2, NativeId("one")), place(tmp_path))
        assert probe.kind is ProbeKind.UNREACHABLE

    run(scene())


def test_a_program_or_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        assert not (await command(tmp_path, "/nowhere/program").discover()).installed
        with pytest.raises(CannotStart):
            await command(tmp_path, "/nowhere/program").open(spec(tmp_path))

    run(scene())


@pytest.mark.parametrize(
    "options",
    [
        {"colour": "red"},
        {"resume": "x"},
        {"resume": "x", "probe": "y"},
        {"session": "no group"},
        {"session": "((two)(groups))"},
        {"session": "("},
        {"id": "("},
        {"start": "'open"},
        {"missing": "soon"},
    ],
)
def test_options_that_make_no_sense_are_refused_with_what_to_do(options: dict[str, str]) -> None:
    with pytest.raises(Refused) as caught:
        make(Settings(program=("agent",), options=options))
    assert caught.value.remedy
    with pytest.raises(Refused):
        make(Settings())
