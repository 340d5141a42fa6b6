"""The git command as Clew starts it: bounded, alone, and asking nobody."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from clew.workspaces.faults import GitRefused, GitTooOld, GitTooSlow, explain_git, without_credentials
from clew.workspaces.git import NOWHERE, Deadlines, Git, Repository
from clew.workspaces.lock import Lock, locked
from tests.programs.kit import alive, eventually, pid_in
from tests.workspaces.kit import run


def fake(tmp_path: Path, script: str) -> Git:
    """A git of our own, to see how it is treated."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncase "$1" in --version) echo git version 2.40.1;; *) {script};; esac\n')
    program.chmod(0o755)
    return Git({"PATH": f"{program.parent}:/usr/bin:/bin"}, Deadlines(ask=0.3))


def test_it_is_ended_at_its_deadline_with_what_it_started(tmp_path: Path) -> None:
    git = fake(tmp_path, f"sleep 300 & echo $! > {tmp_path}/pid; sleep 300")

    async def slow() -> None:
        began = time.monotonic()
        with pytest.raises(GitTooSlow, match=r"git status did not end within 0\.3 s"):
            await git.ask(Repository(tmp_path), "status")
        assert time.monotonic() - began < 10
        pid = await pid_in(tmp_path / "pid")
        assert await eventually(lambda: not alive(pid))

    run(slow())


def test_called_off_it_ends(tmp_path: Path) -> None:
    git = fake(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 300")

    async def called_off() -> None:
        asking = asyncio.create_task(git.ask(NOWHERE, "status", seconds=60))
        pid = await pid_in(tmp_path / "pid")
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()
        assert not alive(pid)

    run(called_off())


def test_it_cannot_ask_anybody(tmp_path: Path) -> None:
    git = fake(tmp_path, "readlink /proc/self/fd/0; env; tty -s < /dev/tty && echo terminal")
    said = run(git.ask(NOWHERE, "status")).text
    assert said.startswith("/dev/null\n")
    assert "GIT_TERMINAL_PROMPT=0" in said
    assert "terminal" not in said.splitlines()


def test_an_old_git_is_refused(tmp_path: Path) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\necho git version 2.20.1\n")
    (tmp_path / "git").chmod(0o755)
    with pytest.raises(GitTooOld, match=r"git version 2\.20\.1.*2\.31"):
        run(Git({"PATH": f"{tmp_path}:/bin"}).ask(NOWHERE, "status"))


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GitRefused, match="arguments"):
        run(Git().ask(Repository(tmp_path), "status", "nul\0byte"))


def test_a_program_that_outlives_us_keeps_the_lock_but_only_until_we_let_go(tmp_path: Path) -> None:
    git = fake(tmp_path, f"sleep 300 >/dev/null 2>&1 & echo $! > {tmp_path}/pid")

    async def scene() -> None:
        async with locked(tmp_path / "lock") as lock:
            await git.ask(NOWHERE, "status", keep=(lock.file,))
            other = Lock(tmp_path / "lock")
            assert not other.acquire()
        assert other.acquire(), "said outright, it counts for all copies"
        other.release()

    try:
        run(scene())
    finally:
        os.kill(int((tmp_path / "pid").read_text()), 9)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "fatal: could not create directory of '/r/.git/worktrees/x': Permission denied",
            "Clew's user may not write /r/.git/worktrees/x.",
        ),
        ("error: unable to create file a: No space left on device\nfatal: x", "the disk is full."),
        ("fatal: could not read Username for 'https://x': terminal prompts disabled", "the address asks for a login"),
        ("fatal: something new", "git says: something new"),
        ("", "otherwise"),
    ],
)
def test_what_git_says_becomes_words(said: str, words: str) -> None:
    assert words in explain_git(said, "otherwise")[0]


def test_passwords_in_addresses_are_hidden() -> None:
    assert without_credentials("at https://me:secret@example.invalid/x") == "at https://example.invalid/x"
