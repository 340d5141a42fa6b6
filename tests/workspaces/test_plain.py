"""Plain directories, used in place by one lane at a time, and agents' homes."""

import os
import time
from pathlib import Path

import pytest

from clew.kernel import FoundReason, PlaceStep
from clew.ports.workspaces import Ensured, Held
from clew.workspaces import GitWorkspaces
from tests.workspaces.kit import Scene, git, home, plain, run


def test_a_second_lane_is_told_who_has_the_directory(tmp_path: Path) -> None:
    directory = tmp_path / "papers"
    directory.mkdir()

    async def scene() -> None:
        one, two = GitWorkspaces(tmp_path / "root"), GitWorkspaces(tmp_path / "root")
        first, second = plain(directory, "ln_1", "agent Ada's lane ln_1"), plain(directory, "ln_2")
        assert isinstance(await one.ensure(first), Ensured)
        assert isinstance(await one.ensure(first), Ensured)
        await one.release(first)
        for asked in (one, two):
            held = await asked.ensure(second)
            assert isinstance(held, Held)
            assert held.reason is FoundReason.IN_USE
            assert held.passing
            assert f"agent Ada's lane ln_1 works there since {time.strftime('%Y-')}" in held.words
        assert isinstance(await two.ensure(first), Ensured), "the lane itself may come again"
        await one.release(first)
        assert isinstance(await two.ensure(second), Held), "it has not left everywhere"
        await two.release(first)
        assert isinstance(await two.ensure(second), Ensured)
        await two.release(second)
        await two.release(second)

    run(scene())
    assert (tmp_path / "root").stat().st_mode & 0o77 == 0
    assert list(directory.iterdir()) == [], "nothing of Clew is in the user's directory"


@pytest.mark.case("C18")
@pytest.mark.parametrize("spelling", ["{0}/link", "{0}/papers/", "{0}/papers/../papers", "{0}//papers"])
def test_another_spelling_is_no_second_directory(tmp_path: Path, spelling: str) -> None:
    directory = tmp_path / "papers"
    directory.mkdir()
    (tmp_path / "link").symlink_to(directory)
    other = Path(spelling.format(tmp_path)) if spelling != "{0}/papers/" else directory

    async def scene() -> None:
        workspaces = GitWorkspaces(tmp_path / "root")
        first = await workspaces.ensure(plain(directory, "ln_1"))
        again = await workspaces.ensure(plain(other, "ln_1"))
        assert isinstance(first, Ensured)
        assert isinstance(again, Ensured)
        assert first.directory == again.directory
        assert isinstance(await workspaces.ensure(plain(other, "ln_2")), Held)
        await workspaces.close()
        assert isinstance(await workspaces.ensure(plain(other, "ln_2")), Ensured)
        await workspaces.close()

    run(scene())


@pytest.mark.case("D13")
def test_a_directory_that_is_gone_is_not_made(tmp_path: Path) -> None:
    held = run(GitWorkspaces(tmp_path / "root").ensure(plain(tmp_path / "gone", "ln_1")))
    assert isinstance(held, Held)
    assert held.reason is FoundReason.PROJECT_MOVED
    assert not (tmp_path / "gone").exists()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    held = run(GitWorkspaces(tmp_path / "root").ensure(plain(tmp_path / "file", "ln_1")))
    assert isinstance(held, Held)
    assert held.reason is FoundReason.CANNOT_MAKE


@pytest.mark.case("D09")
@pytest.mark.parametrize("below", ["", "sub"])
def test_a_worktree_of_another_lane_is_no_plain_directory(scene: Scene, below: str) -> None:
    scene.ready("ln_1")
    held = run(scene.workspaces.ensure(plain(scene.directory("ln_1") / below, "ln_2")))
    assert isinstance(held, Held)
    assert held.reason is FoundReason.FOREIGN_MARKER
    assert "ln_1" in held.words


def test_a_repository_may_be_used_in_place(scene: Scene) -> None:
    result = run(scene.workspaces.ensure(plain(scene.project, "ln_1")))
    assert isinstance(result, Ensured)
    assert git(scene.project, "status", "--porcelain") == ""
    run(scene.workspaces.close())


def test_a_home_is_made_on_demand_for_its_owner_alone(tmp_path: Path) -> None:
    workspaces = GitWorkspaces(tmp_path / "root", homes=tmp_path / "homes")
    wanted = home(tmp_path / "homes" / "deep" / "ada")
    made = run(workspaces.ensure(wanted))
    assert isinstance(made, Ensured)
    assert made.step is PlaceStep.MAKE
    assert (tmp_path / "homes" / "deep" / "ada").stat().st_mode & 0o777 == 0o700
    again = run(workspaces.ensure(wanted))
    assert isinstance(again, Ensured)
    assert again.step is PlaceStep.USE


def test_a_home_that_leads_out_or_is_a_file_is_refused(tmp_path: Path) -> None:
    homes = tmp_path / "homes"
    homes.mkdir()
    (tmp_path / "outside").mkdir()
    (homes / "ada").symlink_to(tmp_path / "outside")
    (homes / "bob").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    workspaces = GitWorkspaces(tmp_path / "root", homes=homes)
    out, file = run(workspaces.ensure(home(homes / "ada"))), run(workspaces.ensure(home(homes / "bob")))
    dangling = run(workspaces.ensure(home(tmp_path / "dangling")))
    assert isinstance(out, Held)
    assert out.reason is FoundReason.OUTSIDE_ROOT
    assert isinstance(file, Held)
    assert file.reason is FoundReason.CANNOT_MAKE
    assert isinstance(dangling, Held)
    assert not (tmp_path / "nowhere").exists()


def test_a_home_that_a_person_named_elsewhere_is_used(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "mine").symlink_to(tmp_path / "real")
    result = run(GitWorkspaces(tmp_path / "root").ensure(home(tmp_path / "mine")))
    assert isinstance(result, Ensured)
    assert result.directory.real == os.fspath(tmp_path / "real")


def test_all_lanes_of_an_agent_share_its_home(tmp_path: Path) -> None:
    workspaces = GitWorkspaces(tmp_path / "root")
    for lane in ("ln_1", "ln_2"):
        assert isinstance(run(workspaces.ensure(home(tmp_path / "root" / "homes" / "ada", lane))), Ensured)
