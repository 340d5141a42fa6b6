"""A program: lines in, lines out, and an end that leaves nothing running."""

import asyncio
from pathlib import Path

import pytest

from clew.programs.faults import BadArguments, CannotStart, ProgramEnded, TooSlow
from clew.programs.process_tag import VARIABLE
from clew.programs.program import Output, Program, start
from clew.programs.state import Ledger
from tests.programs.kit import alive, eventually, pid_in, python, run, running_with, shell


def test_lines_go_in_and_out(tmp_path: Path) -> None:
    async def scene() -> list[bytes]:
        program = await shell("while read line; do echo got $line; done", tmp_path)
        await program.send(b"one")
        await program.send(b"two")
        await program.close_input()
        lines = [line async for line in program.lines()]
        assert await program.wait(5) == 0
        await program.end(1)
        return lines

    assert run(scene()) == [b"got one", b"got two"]


def test_its_output_is_read_to_the_end(tmp_path: Path) -> None:
    async def scene() -> Output:
        program = await shell("cat; echo one; echo why >&2; echo two; exit 3", tmp_path)
        return await program.output(5, 1)

    assert run(scene()) == Output(3, [b"one", b"two"], "why")


def test_a_program_whose_output_does_not_end_is_ended(tmp_path: Path) -> None:
    async def scene() -> int:
        program = await shell("echo one; sleep 60", tmp_path)
        with pytest.raises(TooSlow, match=r"within 0\.2 s"):
            await program.output(0.2, 1)
        return program.pid

    assert not alive(run(scene()))


def test_a_line_of_many_megabytes_comes_whole(tmp_path: Path) -> None:
    async def scene() -> int:
        program = await python("print('x' * 20_000_000)", tmp_path)
        (line,) = [line async for line in program.lines()]
        await program.end(1)
        return len(line)

    assert run(scene()) == 20_000_000


def test_its_environment_is_what_is_passed_and_its_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_OURS", "and not meant for it")

    async def scene() -> dict[str, str]:
        program = await shell("env", tmp_path)
        lines = [line.decode() async for line in program.lines()]
        await program.end(1)
        return dict(line.split("=", 1) for line in lines if "=" in line)

    environment = run(scene())
    assert VARIABLE in environment
    assert "OF_OURS" not in environment


def test_last_words_are_the_end_of_its_errors(tmp_path: Path) -> None:
    async def scene() -> str:
        program = await shell("seq 1 1000 >&2; echo the end >&2; exit 3", tmp_path)
        words = await program.final_words(5)
        assert program.returncode == 3
        await program.end(1)
        return words

    words = run(scene())
    assert words.endswith("1000\nthe end")
    assert len(words.splitlines()) == 200


@pytest.mark.parametrize("gently", [True, False])
def test_an_end_ends_what_it_started_however_far_that_has_gone(tmp_path: Path, gently: bool) -> None:
    """A child in the group, one that left it, and one whose parents are gone."""

    async def scene() -> None:
        program = await shell(
            "sleep 300 & echo $! > child; setsid sleep 300 & echo $! > left;"
            " sh -c 'setsid sh -c \"sleep 300 & echo \\$! > orphan\" &'; sleep 300",
            tmp_path,
        )
        pids = [program.pid, *[await pid_in(tmp_path / name) for name in ("child", "left", "orphan")]]
        assert all(map(alive, pids))
        assert program.processes() >= set(pids)
        await program.end(2, gently)
        assert not any(map(alive, pids))
        await program.end(2, gently)

    run(scene())


def test_a_program_that_will_not_end_is_made_to(tmp_path: Path) -> None:
    async def scene() -> None:
        program = await shell("trap '' TERM; touch ready; while :; do sleep 0.1; done", tmp_path)
        assert await eventually((tmp_path / "ready").exists)
        await program.end(0.3)
        assert program.returncode == -9

    run(scene())


def test_an_end_that_is_called_off_ends_it_all_the_same(tmp_path: Path) -> None:
    async def scene() -> None:
        ledger = Ledger(tmp_path / "ledger")
        program = await shell(
            "trap '' TERM; setsid sleep 300 & echo $! > left; touch ready; sleep 300", tmp_path, ledger
        )
        left = await pid_in(tmp_path / "left")
        ending = asyncio.create_task(program.end(60))
        await asyncio.sleep(0.1)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        assert await eventually(lambda: not alive(left) and not alive(program.pid))
        assert not list((tmp_path / "ledger").iterdir())

    run(scene())


def test_a_start_that_is_called_off_leaves_nothing(tmp_path: Path) -> None:
    """At whatever moment: also while the process is just becoming the program, and shows no mark."""

    async def scene() -> None:
        ledger = Ledger(tmp_path / "ledger")
        named = {"OF_THIS_TEST": str(tmp_path)}
        for turns in range(60):
            starting = asyncio.create_task(start(("/bin/sleep", "300"), tmp_path, named, ledger))
            for _ in range(turns % 20):
                await asyncio.sleep(0)
            starting.cancel()
            (outcome,) = await asyncio.gather(starting, return_exceptions=True)
            if isinstance(outcome, Program):
                await outcome.end(1)
            else:
                assert isinstance(outcome, asyncio.CancelledError)
        assert not list((tmp_path / "ledger").iterdir())
        assert await eventually(lambda: not running_with(f"OF_THIS_TEST={tmp_path}"), 2.0)

    run(scene())


def test_only_what_began_later_is_ended(tmp_path: Path) -> None:
    async def scene() -> None:
        program = await shell("sleep 300 & echo $! > first; read go; sleep 300 & echo $! > second; read go", tmp_path)
        first = await pid_in(tmp_path / "first")
        before = program.processes()
        await program.send(b"go")
        second = await pid_in(tmp_path / "second")
        program.end_processes(but=before)
        assert await eventually(lambda: not alive(second))
        assert alive(first)
        assert alive(program.pid)
        await program.end(1)

    run(scene())


def test_what_cannot_be_started_is_told_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match=r"No such file or directory \(.*/nowhere\)"):
        run(shell("true", tmp_path / "nowhere"))
    plain = tmp_path / "plain"
    plain.write_text("no program")

    async def scene() -> None:
        ledger = Ledger(tmp_path / "ledger")
        for command in (str(plain), "/nowhere/program"):
            with pytest.raises(CannotStart) as caught:
                await start((command,), tmp_path, {}, ledger)
            assert command in caught.value.words
            assert caught.value.remedy
        assert not list((tmp_path / "ledger").iterdir())

    run(scene())


def test_a_prompt_to_a_program_that_has_ended_is_a_fault(tmp_path: Path) -> None:
    async def many(program: Program) -> None:
        for _ in range(100):
            await program.send(b"x" * 100_000)

    async def scene() -> None:
        program = await shell("exit 7", tmp_path)
        assert await program.wait(5) == 7
        with pytest.raises(ProgramEnded, match="7"):
            await many(program)
        await program.end(1)

    run(scene())


def test_a_program_that_does_not_read_keeps_nobody_waiting(tmp_path: Path) -> None:
    async def scene() -> None:
        program = await shell("sleep 300", tmp_path)
        with pytest.raises(TooSlow):
            await program.send(b"x" * 10_000_000, 0.2)
        await program.close_input()
        await program.end(1)

    run(scene())


def test_arguments_that_are_no_text_are_a_fault(tmp_path: Path) -> None:
    async def scene() -> None:
        ledger = Ledger(tmp_path / "ledger")
        with pytest.raises(BadArguments, match="null"):
            await start(("/bin/echo", "a\0b"), tmp_path, {}, ledger)
        with pytest.raises(BadArguments, match="longer"):
            await start(("/bin/echo", "x" * 5_000_000), tmp_path, {}, ledger)
        assert not list((tmp_path / "ledger").iterdir())

    run(scene())


def test_last_words_hold_no_secret_and_are_bounded(tmp_path: Path) -> None:
    secret = "sk-of-the-program"

    async def scene() -> str:
        command = ("/bin/sh", "-c", 'yes "$API_KEY" | head -c 300000 >&2; echo >&2; echo "last: $API_KEY" >&2')
        program = await start(command, tmp_path, {"API_KEY": secret, "PATH": "/usr/bin:/bin"})
        words = await program.final_words(5)
        await program.end(1)
        return words

    words = run(scene())
    assert words.endswith("last: [hidden]")
    assert secret not in words
    assert not any(secret.endswith(line) for line in words.splitlines())
    assert len(words) < 64 * 1024


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_is_left_open(tmp_path: Path) -> None:
    async def scene() -> int:
        before = open_files()
        for _ in range(5):
            program = await shell("echo hello; sleep 300", tmp_path)
            await program.end(0.5, gently=False)
        await asyncio.sleep(0.05)
        return open_files() - before

    assert run(scene()) <= 1
