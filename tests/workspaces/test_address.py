"""Projects that come from an address: cloned once, a worktree for each lane."""

import asyncio
import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from clew.kernel import FoundReason, PlaceStep
from clew.ports.workspaces import Ensured, Held, SourceKind
from tests.workspaces.kit import PROJECT, Scene, commit, git, repository, run


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    return repository(tmp_path / "origin", "trunk")


@pytest.fixture
def remote(tmp_path: Path, origin: Path) -> Scene:
    return Scene(tmp_path, f"file://{origin}", SourceKind.ADDRESS)


def mirror(scene: Scene) -> Path:
    return scene.root / PROJECT / ".source"


def test_lanes_share_one_clone_and_start_from_its_default_branch(remote: Scene, origin: Path) -> None:
    async def both() -> list[Ensured | Held]:
        return await asyncio.gather(*(remote.workspaces.ensure(remote.wanted(lane)) for lane in ("ln_1", "ln_2")))

    assert [type(each) for each in run(both())] == [Ensured, Ensured]
    assert git(remote.directory("ln_1"), "rev-parse", "HEAD") == git(origin, "rev-parse", "trunk")
    assert git(remote.directory("ln_1"), "rev-parse", "--abbrev-ref", "origin/HEAD") == "origin/trunk"
    assert [each.name for each in sorted(mirror(remote).parent.iterdir())] == [".source", "ln_1", "ln_2"]
    assert remote.ready("ln_1").step is PlaceStep.USE


def test_a_new_lane_starts_from_what_the_address_has_now(remote: Scene, origin: Path) -> None:
    remote.ready("ln_1")
    work = commit(remote.directory("ln_1"), "work")
    tip = commit(origin, "later")
    remote.ready("ln_2")
    assert git(remote.directory("ln_2"), "rev-parse", "HEAD") == tip
    assert git(remote.directory("ln_1"), "rev-parse", "HEAD") == work, "a fetch leaves the lanes' branches alone"
    assert git(remote.directory("ln_1"), "config", "branch.clew/ln_1.merge", ok=False) == "", "it tracks nothing"
    git(remote.directory("ln_1"), "push", "--quiet", "origin", "HEAD")
    assert git(origin, "rev-parse", "clew/ln_1") == work


def test_a_base_is_a_branch_of_the_address(remote: Scene, origin: Path) -> None:
    git(origin, "switch", "--quiet", "-c", "next")
    tip = commit(origin, "next")
    git(origin, "switch", "--quiet", "trunk")
    remote.ready("ln_1", dataclasses.replace(remote.source, base="next"))
    assert git(remote.directory(), "rev-parse", "HEAD") == tip


@pytest.mark.case("D03")
def test_an_address_that_cannot_be_reached_holds_for_now(remote: Scene, origin: Path, tmp_path: Path) -> None:
    origin.rename(tmp_path / "away")
    held = remote.held()
    assert held.reason is FoundReason.CANNOT_MAKE
    assert held.passing
    assert str(origin) in held.words
    assert list(mirror(remote).parent.iterdir()) == [], "no half of a clone"
    (tmp_path / "away").rename(origin)
    remote.ready("ln_1")
    origin.rename(tmp_path / "away")
    assert remote.ready("ln_1").step is PlaceStep.USE
    assert remote.held("ln_2").passing, "not from what the address had at some time"
    commit(remote.directory("ln_1"), "work")
    shutil.rmtree(remote.directory("ln_1"))
    assert remote.ready("ln_1").step is PlaceStep.MAKE_AGAIN, "its branch is here"


@pytest.mark.case("D13")
def test_an_address_that_changed_goes_on_with_the_same_worktrees(remote: Scene, origin: Path, tmp_path: Path) -> None:
    remote.ready("ln_1")
    origin.rename(tmp_path / "moved")
    moved = dataclasses.replace(remote.source, source=f"file://{tmp_path / 'moved'}")
    assert remote.ready("ln_1", moved).step is PlaceStep.USE
    assert remote.ready("ln_2", moved).step is PlaceStep.MAKE


@pytest.mark.case("D13")
def test_a_clone_that_is_gone_is_not_replaced_under_a_worktree(remote: Scene) -> None:
    remote.ready()
    (remote.directory() / "open.txt").touch()
    shutil.rmtree(mirror(remote))
    held = remote.held()
    assert held.reason is FoundReason.PROJECT_MOVED
    assert (remote.directory() / "open.txt").exists()
    assert not mirror(remote).exists()


def test_what_a_clone_left_that_was_cut_short_is_removed(remote: Scene) -> None:
    left = mirror(remote).with_name(".source.0badcafe")
    left.mkdir(parents=True)
    (left / "junk").touch()
    remote.ready()
    assert not left.exists()


def test_a_password_in_an_address_is_not_told(remote: Scene) -> None:
    source = dataclasses.replace(remote.source, source="http://me:hunter2@127.0.0.1:9/x.git")
    held = remote.held("ln_1", source)
    assert held.passing
    assert "hunter2" not in held.words
    assert "hunter2" not in repr(source)
    assert os.environ.get("GIT_TERMINAL_PROMPT") is None
