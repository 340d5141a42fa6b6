"""What a project runs in a worktree once it is made."""

import asyncio
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clew.kernel import FoundReason, PlaceStep
from clew.workspaces.setup import HEAD, TAIL, Output
from tests.programs.kit import alive, eventually, pid_in
from tests.workspaces.kit import Scene, run


def test_it_runs_once_in_the_worktree_and_its_output_is_kept(scene: Scene, tmp_path: Path) -> None:
    count = tmp_path / "count"
    source = scene.with_setup(f"pwd; echo to-stderr >&2; echo x >> '{count}'", "echo second")
    made = scene.ready("ln_1", source)
    assert made.setup_output is not None
    assert made.setup_output.is_relative_to(scene.root / ".clew")
    said = made.setup_output.read_text()
    assert f"{scene.directory()}\nto-stderr\n" in said
    assert "second" in said
    assert scene.ready("ln_1", source).setup_output is None
    assert count.read_text() == "x\n"
    shutil.rmtree(scene.directory())
    assert scene.ready("ln_1", source).step is PlaceStep.MAKE_AGAIN
    assert count.read_text() == "x\nx\n", "again after it was made again"


def test_it_gets_the_environment_that_was_given_and_no_more(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_SECRET", "hidden-value")
    made = scene.ready("ln_1", scene.with_setup("env; echo $API_TOKEN", API_TOKEN="s3cr3t-s3cr3t"))
    assert made.setup_output is not None
    said = made.setup_output.read_text()
    names = {line.partition("=")[0] for line in said.splitlines() if "=" in line}
    assert names <= {"PATH", "API_TOKEN", "PWD", "OLDPWD", "SHLVL", "_", "CLEW_MARK"}
    assert "s3cr3t-s3cr3t" not in said


@pytest.mark.case("D03")
def test_a_failure_holds_with_its_last_words_and_the_next_try_runs_it_again(scene: Scene, tmp_path: Path) -> None:
    source = scene.with_setup("echo one", f"echo broken; test -e '{tmp_path}/fixed'", "echo never")
    held = scene.held("ln_1", source)
    assert held.reason is FoundReason.CANNOT_MAKE
    assert "ended with status 1. Its last output: " in held.words
    assert ' / broken". The whole output is in ' in held.words
    assert "\n" not in held.words
    assert held.setup_output is not None
    assert "never" not in held.setup_output.read_text()
    (scene.directory() / "by-hand.txt").write_text("somebody looked\n")
    assert scene.held("ln_1", source).reason is FoundReason.CANNOT_MAKE
    (tmp_path / "fixed").touch()
    made = scene.ready("ln_1", source)
    assert made.step is PlaceStep.MAKE
    assert (scene.directory() / "by-hand.txt").exists()
    assert scene.ready("ln_1", source).step is PlaceStep.USE


def test_it_ends_at_its_deadline_with_all_it_started(scene: Scene) -> None:
    source = scene.with_setup("setsid sleep 300 & echo $! > ../pid; sleep 300", seconds=0.5)
    held = scene.held("ln_1", source)
    assert "did not end within 0.5 s" in held.words
    pid = int((scene.directory().parent / "pid").read_text())
    assert run(eventually(lambda: not alive(pid)))


def test_what_it_leaves_in_the_background_is_ended_and_not_waited_for(scene: Scene) -> None:
    began = time.monotonic()
    scene.ready("ln_1", scene.with_setup("sleep 300 & echo $! > ../pid"))
    assert time.monotonic() - began < 30
    pid = int((scene.directory().parent / "pid").read_text())
    assert run(eventually(lambda: not alive(pid)))


def test_what_a_killed_process_left_of_its_setup_is_ended_before_it_runs_again(scene: Scene) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from tests.workspaces.kit import Scene
scene = Scene(Path(sys.argv[1]), sys.argv[2])
asyncio.run(scene.workspaces.ensure(scene.wanted("ln_1", scene.with_setup("echo $$ > ../pid; sleep 300"))))
"""
    arguments = [sys.executable, "-c", code, str(scene.root.parent), str(scene.project)]
    maker = subprocess.Popen(arguments, cwd=Path(__file__).parents[2])
    try:
        pid = run(pid_in(scene.directory().parent / "pid"))
    finally:
        maker.kill()
        maker.wait()
    assert alive(pid)
    made = scene.ready("ln_1", scene.with_setup(f"! grep -qs 'State:.[RSD]' /proc/{pid}/status"))
    assert made.step is PlaceStep.MAKE


def test_it_can_be_called_off(scene: Scene) -> None:
    source = scene.with_setup("echo $$ > ../pid; sleep 300")

    async def called_off() -> int:
        making = asyncio.create_task(scene.workspaces.ensure(scene.wanted("ln_1", source)))
        pid = await pid_in(scene.directory().parent / "pid")
        making.cancel()
        await asyncio.wait([making])
        assert making.cancelled()
        return pid

    pid = run(called_off())
    assert run(eventually(lambda: not alive(pid)))
    assert scene.ready("ln_1").step is PlaceStep.MAKE, "it was not taken for ready"


def test_progress_is_told_line_by_line(scene: Scene) -> None:
    told: list[str] = []
    source = scene.with_setup("echo one; echo two")
    run(scene.workspaces.ensure(scene.wanted("ln_1", source), told.append))
    assert told == ["one", "two"]


def test_output_is_bounded_and_keeps_both_ends(tmp_path: Path) -> None:
    with Output(tmp_path / "log") as output:
        for number in range(200_000):
            output.add(f"line {number}")
    text = (tmp_path / "log").read_text()
    assert len(text) <= HEAD + TAIL + 100
    assert text.startswith("line 0\n")
    assert text.endswith("line 199999\n")
    assert "bytes are left out]" in text
    assert output.last_words.endswith("line 199999")
