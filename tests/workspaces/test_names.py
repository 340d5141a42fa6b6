"""Branches with names for people: a name that another branch has is never taken from it."""

import shutil

import pytest

from clew.ports.workspaces import Ensured
from tests.workspaces.kit import Scene, commit, git, run

NAME = "clew/issue-12-login-page"


def ensured(scene: Scene, lane: str = "ln_1", branch: str = NAME) -> Ensured:
    result = scene.ensure(lane, branch=branch)
    assert isinstance(result, Ensured), result
    return result


def test_a_lane_gets_the_branch_that_was_asked_for(scene: Scene) -> None:
    assert ensured(scene).branch == NAME
    assert git(scene.directory(), "symbolic-ref", "--short", "HEAD") == NAME
    assert ensured(scene).branch == NAME


def test_a_branch_that_was_there_before_is_left_alone_and_the_lane_gets_a_number(scene: Scene) -> None:
    git(scene.project, "branch", NAME)
    git(scene.project, "branch", f"{NAME}-2")
    before = git(scene.project, "rev-parse", NAME)
    assert ensured(scene).branch == f"{NAME}-3"
    commit(scene.directory(), "work")
    assert git(scene.project, "rev-parse", NAME) == before
    assert ensured(scene).branch == f"{NAME}-3", "the record remembers it"


def test_two_lanes_that_ask_for_one_name_get_a_branch_each(scene: Scene) -> None:
    assert ensured(scene, "ln_1").branch == NAME
    assert ensured(scene, "ln_2").branch == f"{NAME}-2"


@pytest.mark.case("D05")
@pytest.mark.parametrize("pruned", [False, True])
def test_a_lane_finds_its_branch_again_when_the_root_with_all_records_is_gone(scene: Scene, pruned: bool) -> None:
    ensured(scene)
    tip = commit(scene.directory(), "work")
    shutil.rmtree(scene.root)
    if pruned:
        git(scene.project, "worktree", "prune")
    assert ensured(scene).branch == NAME
    assert git(scene.directory(), "rev-parse", "HEAD") == tip


def test_another_lane_does_not_take_a_branch_whose_worktree_is_gone(scene: Scene) -> None:
    ensured(scene)
    tip = commit(scene.directory(), "work")
    shutil.rmtree(scene.root)
    git(scene.project, "worktree", "prune")
    assert ensured(scene, "ln_2").branch == f"{NAME}-2"
    assert git(scene.project, "rev-parse", NAME) == tip
    assert git(scene.directory("ln_2"), "rev-parse", "HEAD") != tip


def test_the_setting_that_names_the_lane_goes_with_its_branch(scene: Scene) -> None:
    ensured(scene)
    assert git(scene.project, "config", f"branch.{NAME}.clewlane") == "ln_1"
    run(scene.workspaces.clean())
    assert git(scene.project, "config", "--get-regexp", "branch[.]clew", ok=False) == ""


def test_a_worktree_with_a_name_of_old_is_found_as_it_is(scene: Scene) -> None:
    scene.ready()
    assert ensured(scene).branch == "clew/ln_1"
