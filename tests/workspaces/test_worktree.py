"""A worktree for each lane: made, found again, made again, and never another's."""

import asyncio
import dataclasses
import shutil
from pathlib import Path

import pytest

from clew.kernel import FoundReason, PlaceStep, ProjectId
from clew.ports.workspaces import Ensured, Held
from clew.workspaces import GitWorkspaces
from tests.workspaces.kit import Scene, commit, git, repository, run


def test_a_worktree_is_made_on_its_own_branch_and_found_again(scene: Scene) -> None:
    made = scene.ready()
    assert (made.step, made.reason) == (PlaceStep.MAKE, FoundReason.MADE)
    assert made.directory.path == made.directory.real == str(scene.directory())
    assert git(scene.directory(), "symbolic-ref", "--short", "HEAD") == "clew/ln_1"
    assert (scene.directory() / "sub" / "b.txt").read_text() == "b\n"
    again = scene.ready()
    assert (again.step, again.reason) == (PlaceStep.USE, FoundReason.READY)
    assert again.directory == made.directory


def test_the_agents_git_sees_nothing_of_clew(scene: Scene) -> None:
    scene.ready()
    directory = scene.directory()
    assert git(directory, "status", "--porcelain", "--ignored") == ""
    git(directory, "add", "-A")
    assert git(directory, "diff", "--cached", "--name-only") == ""
    assert git(scene.project, "status", "--porcelain") == ""


def test_finding_it_ready_starts_no_git(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.ready()
    git(scene.project, "pack-refs", "--all")
    monkeypatch.setenv("PATH", "/nonexistent")
    scene.workspaces = GitWorkspaces(scene.root)
    assert scene.ready().step is PlaceStep.USE
    assert "There is no git command" in scene.held("ln_2").words


@pytest.mark.case("D09")
def test_two_lanes_have_a_worktree_each_and_never_each_others(scene: Scene) -> None:
    one, two = scene.ready("ln_1"), scene.ready("ln_2")
    assert one.directory != two.directory
    (scene.directory("ln_1") / "mine.txt").touch()
    assert not (scene.directory("ln_2") / "mine.txt").exists()
    # Even when the second lane's memory names the first one's place.
    other = scene.held("ln_2", directory=scene.directory("ln_1"))
    assert other.reason is FoundReason.FOREIGN_MARKER
    assert "lane ln_1" in other.words


@pytest.mark.case("D09")
def test_a_lane_of_another_project_is_another(scene: Scene) -> None:
    scene.ready("ln_1")
    wanted = scene.wanted("ln_1")
    moved = dataclasses.replace(wanted.workspace, project=ProjectId("pr_2"))
    result = run(scene.workspaces.ensure(dataclasses.replace(wanted, workspace=moved)))
    assert isinstance(result, Held)
    assert result.reason is FoundReason.FOREIGN_MARKER


@pytest.mark.case("D09")
def test_many_lanes_at_once_get_one_each(scene: Scene) -> None:
    async def all_at_once() -> list[Ensured | Held]:
        return await asyncio.gather(*(scene.workspaces.ensure(scene.wanted(f"ln_{n}")) for n in range(6)))

    found = run(all_at_once())
    assert all(isinstance(each, Ensured) for each in found)
    assert len({each.directory.place for each in found if isinstance(each, Ensured)}) == 6


def test_the_branch_starts_from_the_base(scene: Scene) -> None:
    git(scene.project, "switch", "--quiet", "-c", "release")
    (scene.project / "r.txt").touch()
    tip = commit(scene.project, "on release")
    git(scene.project, "switch", "--quiet", "main")
    scene.ready("ln_1", dataclasses.replace(scene.source, base="release"))
    scene.ready("ln_2", dataclasses.replace(scene.source, base=tip[:10]))
    scene.ready("ln_3")
    assert git(scene.directory("ln_1"), "rev-parse", "HEAD") == tip
    assert git(scene.directory("ln_2"), "rev-parse", "HEAD") == tip
    assert not (scene.directory("ln_3") / "r.txt").exists()
    assert git(scene.project, "config", "--get-regexp", "branch[.]clew", ok=False) == "", "nothing is tracked"


@pytest.mark.parametrize("base", ["nowhere", "-f", "--force", "main..main", "a b"])
def test_a_base_that_is_not_there_is_named(scene: Scene, base: str) -> None:
    held = scene.held("ln_1", dataclasses.replace(scene.source, base=base))
    assert held.reason is FoundReason.CANNOT_MAKE
    assert f"its base {base} is not in" in held.words
    assert not scene.directory().exists()


@pytest.mark.case("D05")
def test_a_directory_that_is_gone_is_made_again_with_its_commits(scene: Scene) -> None:
    scene.ready()
    (scene.directory() / "new.txt").write_text("work\n")
    tip = commit(scene.directory(), "work")
    shutil.rmtree(scene.directory())
    again = scene.ready()
    assert (again.step, again.reason) == (PlaceStep.MAKE_AGAIN, FoundReason.MADE_AGAIN)
    assert git(scene.directory(), "rev-parse", "HEAD") == tip
    assert (scene.directory() / "new.txt").read_text() == "work\n"
    assert git(scene.directory(), "status", "--porcelain") == ""
    assert scene.ready().step is PlaceStep.USE


@pytest.mark.case("D05")
@pytest.mark.parametrize("forgotten", ["reference", "everything"])
def test_it_is_made_again_also_when_git_or_clew_forgot_it(scene: Scene, forgotten: str) -> None:
    scene.ready()
    tip = commit(scene.directory(), "work")
    shutil.rmtree(scene.directory())
    git(scene.project, "worktree", "prune")
    if forgotten == "everything":
        shutil.rmtree(scene.root)
    assert scene.ready().step is PlaceStep.MAKE_AGAIN
    assert git(scene.directory(), "rev-parse", "HEAD") == tip


@pytest.mark.case("D06")
@pytest.mark.parametrize("pruned", [True, False])
def test_both_gone_holds_until_a_person_lets_it_begin_anew(scene: Scene, pruned: bool) -> None:
    scene.ready()
    shutil.rmtree(scene.directory())
    if pruned:
        git(scene.project, "worktree", "prune")
    git(scene.project, "update-ref", "-d", "refs/heads/clew/ln_1")
    held = scene.held()
    assert held.reason is FoundReason.BRANCH_GONE
    assert held.words.endswith(f"`clew workspaces clean {scene.directory()}` lets it start over there.")
    assert not scene.directory().exists()
    assert scene.held().reason is FoundReason.BRANCH_GONE
    (cleaned,) = run(scene.workspaces.clean([scene.wanted().workspace.id]))
    assert cleaned.removed, cleaned.words
    assert scene.ready().step in (PlaceStep.MAKE, PlaceStep.REPAIR_THEN_MAKE)


@pytest.mark.case("D11")
def test_a_left_over_reference_is_cleared_and_only_that_one(scene: Scene, tmp_path: Path) -> None:
    elsewhere = tmp_path / "unplugged"
    git(scene.project, "worktree", "add", "--quiet", "--detach", str(elsewhere))
    scene.directory().parent.mkdir(parents=True)
    git(scene.project, "worktree", "add", "--quiet", "--detach", str(scene.directory()))
    shutil.rmtree(scene.directory())
    shutil.rmtree(elsewhere)
    made = scene.ready()
    assert (made.step, made.reason) == (PlaceStep.REPAIR_THEN_MAKE, FoundReason.REPAIRED)
    assert git(scene.directory(), "symbolic-ref", "--short", "HEAD") == "clew/ln_1"
    assert str(elsewhere) in scene.worktrees(), "another's stays"


@pytest.mark.case("D11")
def test_what_a_git_left_that_was_killed_at_once_is_cleared(scene: Scene) -> None:
    unborn = scene.project / ".git" / "worktrees" / "ln_1"
    unborn.mkdir(parents=True)
    (unborn / "locked").write_text("initializing")
    scene.ready()
    assert [each.name for each in unborn.parent.iterdir()] == ["ln_1"]


def test_submodule_commits_of_a_lost_directory_are_set_aside(scene: Scene, tmp_path: Path) -> None:
    repository(tmp_path / "part")
    git(scene.project, "submodule", "--quiet", "add", str(tmp_path / "part"), "part")
    commit(scene.project, "with a part")
    scene.ready()
    git(scene.directory(), "submodule", "--quiet", "update", "--init")
    shutil.rmtree(scene.directory())
    scene.ready()
    (kept,) = (scene.root / ".clew" / "kept").iterdir()
    assert (kept / "part" / "HEAD").exists()


def test_an_empty_directory_is_taken(scene: Scene) -> None:
    scene.directory().mkdir(parents=True)
    assert scene.ready().step is PlaceStep.MAKE


@pytest.mark.parametrize("name", ["with space", "ünïcödé-日本", "-dash", "new\nline", "quote'\"", "trailing ", "$(x)"])
def test_a_project_may_be_called_anything(tmp_path: Path, name: str) -> None:
    scene = Scene(tmp_path / name)
    scene.ready()
    assert scene.ready().step is PlaceStep.USE
    commit(scene.directory(), "work")
    shutil.rmtree(scene.directory())
    assert scene.ready().step is PlaceStep.MAKE_AGAIN
    (listed,) = run(scene.workspaces.listed())
    assert listed.unmerged == 1


def test_a_root_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "disk")
    scene = Scene(tmp_path)
    made = scene.ready()
    assert made.directory.real == str(tmp_path / "disk" / "pr_1" / "ln_1")
    assert scene.ready().step is PlaceStep.USE


@pytest.mark.case("C18")
@pytest.mark.parametrize(
    "spelling", ["{root}/pr_1/ln_1/", "{root}/pr_1/../pr_1/./ln_1", "{root}//pr_1//ln_1", "{link}/pr_1/ln_1"]
)
def test_every_spelling_is_the_same_place(scene: Scene, tmp_path: Path, spelling: str) -> None:
    made = scene.ready()
    (tmp_path / "link").symlink_to(scene.root)
    spelled = spelling.format(root=scene.root, link=tmp_path / "link")
    scene.workspaces = GitWorkspaces(tmp_path / "link") if "{link}" in spelling else scene.workspaces
    again = scene.ensure(directory=spelled)
    assert isinstance(again, Ensured), again
    assert again.step is PlaceStep.USE
    assert again.directory == made.directory


def test_hooks_and_redirecting_variables_are_not_ours(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = scene.project / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "wrong"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    scene.workspaces = GitWorkspaces(scene.root)
    scene.ready()
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "wrong").exists()
