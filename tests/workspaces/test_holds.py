"""What is refused before anybody works there. The words name what was wanted and what was found."""

import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from clew.kernel import FoundReason, PlaceStep
from clew.workspaces import GitWorkspaces
from tests.workspaces.kit import Scene, commit, git, repository, run


@pytest.mark.case("D07")
@pytest.mark.parametrize("linked", ["lane", "project"])
def test_a_path_that_leads_out_of_the_root_is_refused(scene: Scene, tmp_path: Path, linked: str) -> None:
    outside = tmp_path / "outside"
    (outside / "ln_1").mkdir(parents=True)
    scene.root.mkdir()
    if linked == "lane":
        scene.directory().parent.mkdir()
        scene.directory().symlink_to(outside / "ln_1")
    else:
        scene.directory().parent.symlink_to(outside)
    held = scene.held()
    assert held.reason is FoundReason.OUTSIDE_ROOT
    assert str(outside / "ln_1") in held.words
    assert list((outside / "ln_1").iterdir()) == []


@pytest.mark.case("D07")
@pytest.mark.parametrize("named", ["../out", "pr_1/../../out", ".", "/elsewhere"])
def test_a_name_outside_of_the_root_is_refused(scene: Scene, named: str) -> None:
    assert scene.held(directory=os.fspath(scene.root / named)).reason is FoundReason.OUTSIDE_ROOT


@pytest.mark.case("D07")
def test_a_link_that_is_put_there_later_is_refused(scene: Scene, tmp_path: Path) -> None:
    scene.ready()
    scene.directory().rename(tmp_path / "moved")
    scene.directory().symlink_to(tmp_path / "moved")
    assert scene.held().reason is FoundReason.OUTSIDE_ROOT


@pytest.mark.case("D07")
def test_a_link_to_another_lanes_worktree_is_refused(scene: Scene) -> None:
    scene.ready("ln_2")
    scene.directory().symlink_to(scene.directory("ln_2"))
    held = scene.held()
    assert held.reason is FoundReason.FOREIGN_MARKER or "ln_2" in held.words


@pytest.mark.case("D07")
def test_a_marker_that_cannot_be_read_is_nobodys(scene: Scene) -> None:
    scene.ready()
    (scene.project / ".git" / "worktrees" / "ln_1" / "clew.json").write_text("{")
    assert scene.held().reason is FoundReason.FOREIGN_MARKER


@pytest.mark.case("D08")
def test_another_branch_is_refused_and_both_are_named(scene: Scene) -> None:
    scene.ready()
    git(scene.directory(), "switch", "--quiet", "-c", "sideways")
    held = scene.held()
    assert held.reason is FoundReason.OTHER_BRANCH
    assert "clew/ln_1" in held.words
    assert "sideways" in held.words
    git(scene.directory(), "switch", "--quiet", "clew/ln_1")
    assert scene.ready().step is PlaceStep.USE


@pytest.mark.case("D08")
def test_no_branch_and_a_deleted_one_are_refused(scene: Scene) -> None:
    scene.ready()
    git(scene.directory(), "checkout", "--quiet", "--detach")
    assert "detached at" in scene.held().words
    git(scene.directory(), "switch", "--quiet", "clew/ln_1")
    git(scene.project, "update-ref", "-d", "refs/heads/clew/ln_1")
    held = scene.held()
    assert held.reason is FoundReason.OTHER_BRANCH
    assert "deleted" in held.words


@pytest.mark.case("D08")
def test_a_rebase_that_is_not_finished_is_named(scene: Scene) -> None:
    scene.ready()
    directory = scene.directory()
    (directory / "a.txt").write_text("ours\n")
    commit(directory, "ours")
    (scene.project / "a.txt").write_text("theirs\n")
    commit(scene.project, "theirs")
    git(directory, "rebase", "main", ok=False)
    held = scene.held()
    assert held.reason is FoundReason.OTHER_BRANCH
    assert "in the midst of a rebase of clew/ln_1" in held.words
    git(directory, "rebase", "--abort")
    assert scene.ready().step is PlaceStep.USE


@pytest.mark.case("D08")
@pytest.mark.parametrize(
    "found", ["no .git", "a repository of its own", "a copy of the worktree", "reference to it was removed"]
)
def test_no_worktree_of_the_project_is_refused(scene: Scene, found: str) -> None:
    scene.ready()
    directory = scene.directory()
    match found:
        case "no .git":
            (directory / ".git").unlink()
        case "a repository of its own":
            (directory / ".git").unlink()
            git(directory, "init", "--quiet", "--initial-branch=clew/ln_1")
        case "a copy of the worktree":
            scene.ready("ln_2")
            shutil.rmtree(directory)
            shutil.copytree(scene.directory("ln_2"), directory)
        case _:
            shutil.rmtree(scene.project / ".git" / "worktrees")
    before = sorted(each.name for each in directory.iterdir())
    held = scene.held()
    assert held.reason is FoundReason.NO_GIT
    assert found in held.words
    assert "clew/ln_1" in held.words
    assert sorted(each.name for each in directory.iterdir()) == before, "nothing is removed"


@pytest.mark.case("D03")
def test_what_is_in_the_way_is_never_removed(scene: Scene) -> None:
    scene.directory().parent.mkdir(parents=True)
    scene.directory().write_text("a file")
    assert "a file is in the way" in scene.held().words
    assert scene.directory().read_text() == "a file"
    scene.directory("ln_2").mkdir()
    (scene.directory("ln_2") / "precious").touch()
    assert scene.held("ln_2").reason is FoundReason.NO_GIT
    assert (scene.directory("ln_2") / "precious").exists()
    git(scene.project, "worktree", "add", "--quiet", "-b", "clew/ln_3", str(scene.directory("ln_3")))
    held = scene.held("ln_3")
    assert held.reason is FoundReason.CANNOT_MAKE
    assert "did not make" in held.words


@pytest.mark.case("D03")
def test_a_file_in_the_place_of_the_root_is_named(scene: Scene) -> None:
    scene.root.write_text("a file")
    held = scene.held()
    assert held.reason is FoundReason.CANNOT_MAKE
    assert "a file is in the way" in held.words


@pytest.mark.case("D03")
def test_a_branch_that_is_checked_out_elsewhere_names_where(scene: Scene, tmp_path: Path) -> None:
    git(scene.project, "worktree", "add", "--quiet", "-b", "clew/ln_1", str(tmp_path / "mine"))
    held = scene.held()
    assert held.reason is FoundReason.CANNOT_MAKE
    assert f"branch clew/ln_1 is checked out at {tmp_path / 'mine'}" in held.words
    assert not scene.directory().exists()


@pytest.mark.case("D03")
@pytest.mark.parametrize("packed", [False, True])
def test_a_branch_called_clew_is_named_with_the_one_it_stands_in_the_way_of(scene: Scene, packed: bool) -> None:
    git(scene.project, "branch", "clew")
    if packed:
        git(scene.project, "pack-refs", "--all")
    held = scene.held()
    assert held.reason is FoundReason.CANNOT_MAKE
    assert "branch clew/ln_1 cannot exist beside the branch clew," in held.words


@pytest.mark.case("D03")
def test_a_locked_worktree_whose_disk_is_away_is_not_made_again(scene: Scene) -> None:
    scene.ready()
    git(scene.project, "worktree", "lock", "--reason", "on a stick", str(scene.directory()))
    assert scene.ready().step is PlaceStep.USE, "a lock of git forbids only removal"
    shutil.rmtree(scene.directory())
    held = scene.held()
    assert held.reason is FoundReason.CANNOT_MAKE
    assert "locked (on a stick)" in held.words


@pytest.mark.case("D03")
def test_a_name_that_is_too_long_is_told(scene: Scene) -> None:
    held = scene.held("ln_" + "x" * 300)
    assert held.reason is FoundReason.CANNOT_MAKE
    assert "too long" in held.words


@pytest.mark.case("D03")
def test_a_project_without_a_commit_is_told(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    held = scene.held("ln_1", dataclasses.replace(scene.source, source=str(tmp_path / "empty")))
    assert held.reason is FoundReason.CANNOT_MAKE
    assert "has no commit yet" in held.words


@pytest.mark.case("D03")
def test_nothing_is_known_of_the_project(scene: Scene) -> None:
    wanted = dataclasses.replace(scene.wanted(), source=None)
    held = run(scene.workspaces.ensure(wanted))
    assert held.reason is FoundReason.CANNOT_MAKE


@pytest.mark.case("D13")
def test_a_project_that_was_moved_holds_until_it_is_pointed_at_its_new_place(scene: Scene, tmp_path: Path) -> None:
    scene.ready()
    tip = commit(scene.directory(), "work")
    (scene.directory() / "open.txt").write_text("not committed\n")
    scene.project.rename(tmp_path / "renamed")
    held = scene.held()
    assert held.reason is FoundReason.PROJECT_MOVED
    assert str(scene.project) in held.words
    assert str(scene.directory()) in held.words
    moved = dataclasses.replace(scene.source, source=str(tmp_path / "renamed"))
    again = scene.ready("ln_1", moved)
    assert again.step is PlaceStep.USE
    assert git(scene.directory(), "rev-parse", "HEAD") == tip
    assert (scene.directory() / "open.txt").read_text() == "not committed\n"
    assert scene.ready("ln_2", moved).step is PlaceStep.MAKE


@pytest.mark.case("D13")
def test_a_project_pointed_at_another_repository_holds_and_names_both(scene: Scene, tmp_path: Path) -> None:
    scene.ready()
    other = dataclasses.replace(scene.source, source=str(repository(tmp_path / "other")))
    held = scene.held("ln_1", other)
    assert held.reason is FoundReason.PROJECT_MOVED
    assert str(scene.project) in held.words
    assert str(tmp_path / "other") in held.words
    scene.project.rename(tmp_path / "away")
    held = scene.held("ln_1", other)
    assert held.reason is FoundReason.PROJECT_MOVED
    assert "does not know this worktree" in held.words


@pytest.mark.case("D13")
def test_a_root_that_was_moved_with_its_worktrees_goes_on(scene: Scene, tmp_path: Path) -> None:
    scene.ready()
    (scene.directory() / "open.txt").touch()
    scene.root = scene.root.rename(tmp_path / "new-root")
    scene.workspaces = GitWorkspaces(scene.root)
    assert scene.ready().step is PlaceStep.USE
    assert (scene.directory() / "open.txt").exists()
    assert str(scene.directory()) in scene.worktrees()


@pytest.mark.case("D13")
def test_a_worktree_that_somebody_moved_names_where_its_branch_is(scene: Scene, tmp_path: Path) -> None:
    scene.ready()
    git(scene.project, "worktree", "move", str(scene.directory()), str(tmp_path / "taken"))
    held = scene.held()
    assert held.reason is FoundReason.CANNOT_MAKE
    assert str(tmp_path / "taken") in held.words
