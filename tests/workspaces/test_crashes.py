"""Killed at any moment, or raced: the next to come finishes it, and nothing half-made is taken for ready."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clew.kernel import PlaceStep
from tests.workspaces.kit import Scene, commit, git, run
from tests.workspaces.makers import source_of

ROOT = Path(__file__).parents[2]
KILLS = 10


@pytest.mark.case("D05", "D11")
@pytest.mark.parametrize("mode", ["alone", "all"])
def test_a_maker_that_is_killed_leaves_what_the_next_one_finishes(scene: Scene, tmp_path: Path, mode: str) -> None:
    for number in range(300):
        (scene.project / f"file-{number}.txt").write_text(f"{number}\n" * 50)
    commit(scene.project, "many files")
    command = [sys.executable, "-m", "tests.workspaces.makers", str(tmp_path), str(KILLS), mode, str(time.time_ns())]
    subprocess.run(command, cwd=ROOT, check=True, timeout=60)
    for number in range(KILLS):
        lane = f"ln_{number}"
        ready = scene.ready(lane, source_of(scene, number))
        directory = scene.directory(lane)
        assert ready.directory.path == str(directory)
        status = git(directory, "status", "--porcelain", "--branch").splitlines()
        assert status == [f"## clew/{lane}", *(["?? set-up.txt"] if number % 3 == 0 else [])]
        assert not (scene.project / ".git" / "worktrees" / lane / "locked").exists()
    assert len(scene.worktrees()) == KILLS + 1
    git(scene.project, "fsck", "--no-dangling")


@pytest.mark.case("D09")
def test_two_processes_that_want_the_same_end_with_one(scene: Scene) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from tests.workspaces.kit import Scene
scene = Scene(Path(sys.argv[1]), sys.argv[2])
print(Path(sys.argv[3]).exists())
while not Path(sys.argv[3]).exists(): pass
result = asyncio.run(scene.workspaces.ensure(scene.wanted("ln_1", scene.with_setup("echo x >> ../count"))))
print(result.step.value, result.directory.real)
"""
    go = scene.root.parent / "go"
    arguments = [sys.executable, "-c", code, str(scene.root.parent), str(scene.project), str(go)]
    racing = [subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for each in racing:
            assert each.stdout is not None
            assert each.stdout.readline() == "False\n"
        go.touch()
        said = sorted(each.communicate(timeout=30)[0].strip() for each in racing)
    finally:
        for each in racing:
            each.kill()
            each.wait()
    assert said == [f"make {scene.directory()}", f"use {scene.directory()}"]
    assert (scene.directory().parent / "count").read_text() == "x\n", "one of them set it up"


def half_made(scene: Scene) -> Path:
    """A worktree whose marker is not there yet; where git keeps it."""
    scene.ready()
    admin = scene.project / ".git" / "worktrees" / "ln_1"
    (admin / "clew.json").unlink()
    return admin


def test_a_checkout_that_was_cut_short_is_completed(scene: Scene) -> None:
    admin = half_made(scene)
    (admin / "index").unlink()
    (admin / "index.lock").touch()
    (admin / "locked").write_text("initializing")
    (scene.directory() / "a.txt").write_text("ha")
    (scene.directory() / "sub" / "b.txt").unlink()
    (scene.directory() / "mine.txt").touch()
    assert scene.ready().step is PlaceStep.MAKE
    assert git(scene.directory(), "status", "--porcelain") == "?? mine.txt", "what is not git's is left alone"
    assert not (admin / "locked").exists()


def emptied(scene: Scene) -> None:
    """Nothing is checked out yet."""
    for name in ("a.txt", ".gitignore", "sub/b.txt"):
        (scene.directory() / name).unlink()
    (scene.directory() / "sub").rmdir()


def test_a_worktree_that_git_had_barely_begun_and_lost_is_begun_anew(scene: Scene) -> None:
    shutil.rmtree(half_made(scene))
    emptied(scene)
    scene.ready()
    assert git(scene.directory(), "status", "--porcelain") == ""


def test_one_lane_is_not_taken_for_the_second_of_another(scene: Scene) -> None:
    """Where a name is taken, git adds a number to it."""
    scene.ready("ln_1")
    scene.ready("ln_19")
    admin = scene.project / ".git" / "worktrees" / "ln_19"
    for name in ("clew.json", "index", "commondir"):
        (admin / name).unlink()
    shutil.rmtree(scene.directory("ln_19"))
    scene.directory("ln_19").mkdir()
    (scene.directory("ln_19") / ".git").write_text(f"gitdir: {admin}\n")
    scene.ready("ln_2")
    assert not admin.exists()
    assert not scene.directory("ln_19").exists(), "it was taken back as a whole"
    scene.ready("ln_19")


@pytest.mark.parametrize("broken", ["gitdir", "commondir", "HEAD"])
def test_what_one_lane_left_unborn_stops_no_other(scene: Scene, broken: str) -> None:
    """Git itself refuses to work in a repository with such a worktree."""
    admin = half_made(scene)
    (admin / broken).write_text("")
    (admin / "index").unlink()
    emptied(scene)
    scene.ready("ln_2")
    assert not admin.exists()
    assert scene.ready("ln_1").step in (PlaceStep.MAKE, PlaceStep.MAKE_AGAIN)
    assert git(scene.directory(), "status", "--porcelain") == ""


def test_a_lock_that_a_killed_git_left_on_the_branch_is_removed(scene: Scene) -> None:
    left = scene.project / ".git" / "refs" / "heads" / "clew" / "ln_1.lock"
    left.parent.mkdir()
    left.touch()
    scene.ready()


def test_a_worktree_that_a_person_is_just_making_is_left_alone(scene: Scene) -> None:
    theirs = scene.project / ".git" / "worktrees" / "feature"
    theirs.mkdir(parents=True)
    (theirs / "locked").write_text("initializing")
    scene.ready()
    assert theirs.exists()


def test_a_worktree_that_git_had_barely_begun_is_begun_anew(scene: Scene) -> None:
    admin = half_made(scene)
    (admin / "index").unlink()
    (admin / "HEAD").write_text("0" * 40 + "\n")
    git(scene.project, "update-ref", "-d", "refs/heads/clew/ln_1")
    emptied(scene)
    scene.ready()
    assert git(scene.directory(), "status", "--porcelain") == ""


def test_files_of_somebody_else_in_one_that_was_barely_begun_are_not_removed(scene: Scene) -> None:
    admin = half_made(scene)
    (admin / "index").unlink()
    (admin / "HEAD").write_text("0" * 40 + "\n")
    held = scene.held()
    assert "files that are not from its branch" in held.words
    assert (scene.directory() / "a.txt").exists()


def test_a_change_in_one_that_was_checked_out_in_full_is_kept(scene: Scene) -> None:
    half_made(scene)
    (scene.directory() / "a.txt").write_text("changed\n")
    scene.ready()
    assert (scene.directory() / "a.txt").read_text() == "changed\n"


def test_a_removal_that_was_cut_short_loses_no_commit(scene: Scene) -> None:
    scene.ready()
    tip = commit(scene.directory(), "work")
    trash = scene.root / ".clew" / "trash"
    trash.mkdir()
    scene.directory().rename(trash / "x")
    assert scene.ready().step is PlaceStep.MAKE_AGAIN
    assert git(scene.directory(), "rev-parse", "HEAD") == tip
    run(scene.workspaces.clean())
    assert list(trash.iterdir()) == []
