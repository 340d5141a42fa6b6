"""A worktree that was made again says so, with what was lost, until somebody keeps those words."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import PlaceStep
from clew.ports.workspaces import Ensured, SourceKind
from clew.workspaces import GitWorkspaces
from clew.workspaces.checkout import Checkout
from tests.workspaces.kit import Scene, commit, git, home, plain, repository, run


def told(scene: Scene, tip: str, subject: str, *more: str) -> str:
    words = (
        f"{scene.directory()} was gone and was made again from branch clew/ln_1, at commit {tip[:7]} ({subject}).",
        "Whatever was not committed there is lost.",
        *more,
    )
    return " ".join(words)


@pytest.mark.case("D16")
def test_it_says_where_from_which_branch_and_at_which_commit(scene: Scene) -> None:
    assert scene.ready().remade == ""
    (scene.directory() / "door").write_text("oak\n")
    tip = commit(scene.directory(), "A door\n\nof oak")
    (scene.directory() / "window").write_text("glass\n")
    assert scene.ready().remade == ""
    shutil.rmtree(scene.directory())
    again = scene.ready()
    assert (again.step, again.remade) == (PlaceStep.MAKE_AGAIN, told(scene, tip, "A door"))


@pytest.mark.case("D16")
def test_it_is_said_until_it_is_kept_elsewhere_also_by_the_next_process(scene: Scene) -> None:
    scene.ready()
    shutil.rmtree(scene.directory())
    first = scene.ready().remade
    assert first
    scene.workspaces = GitWorkspaces(scene.root)
    again = scene.ready()
    assert (again.step, again.remade) == (PlaceStep.USE, first)
    run(scene.workspaces.acknowledge(scene.wanted()))
    run(scene.workspaces.acknowledge(scene.wanted("ln_2")))
    assert scene.ready().remade == ""
    scene.workspaces = GitWorkspaces(scene.root)
    assert scene.ready().remade == ""


class Killed(Exception):
    """As if the process had ended here."""


@pytest.mark.case("D16", "D11")
@pytest.mark.parametrize("at", ["setup", "finish", "checkout"])
def test_one_that_was_not_finished_says_it_once_it_is(scene: Scene, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    scene.ready()
    tip = git(scene.directory(), "rev-parse", "HEAD")
    shutil.rmtree(scene.directory())
    make = Checkout.make

    async def killed_in_checkout(self: Checkout, *what: Any) -> None:
        await make(self, *what)
        (scene.project / ".git" / "worktrees" / "ln_1" / "index").unlink()
        raise Killed

    def killed_in_finish(*_: object) -> None:
        raise Killed

    if at == "setup":
        assert "no compiler" in scene.held(source=scene.with_setup("echo no compiler; exit 3")).words
    else:
        with monkeypatch.context() as patch:
            if at == "finish":
                patch.setattr(Checkout, "finish", killed_in_finish)
            else:
                patch.setattr(Checkout, "make", killed_in_checkout)
            with pytest.raises(Killed):
                scene.ready()
    again = scene.ready()
    assert (again.step, again.remade) == (PlaceStep.MAKE, told(scene, tip, "first"))


@pytest.mark.case("D16")
def test_one_that_was_only_away_was_not_made_again(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.ready()
    scene.directory().rename(tmp_path / "unplugged")

    async def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Checkout, "_clear", fails)
        scene.held()
    (tmp_path / "unplugged").rename(scene.directory())
    back = scene.ready()
    assert (back.step, back.remade) == (PlaceStep.USE, "")


@pytest.mark.case("D16")
def test_what_git_still_knows_is_named_and_nothing_else(scene: Scene) -> None:
    scene.ready("ln_1")
    scene.ready("ln_2")
    directory = scene.directory()
    tip = commit(directory, "work\u2028on it")
    for number in range(2):
        (directory / "a.txt").write_text(f"{number}\n")
        git(directory, "stash", "push", "--quiet", *(["-m", "later"] if number else []))
    (scene.directory("ln_2") / "a.txt").write_text("other\n")
    git(scene.directory("ln_2"), "stash")
    for number in range(7):
        (directory / f"new {number}\n.txt").touch()
    git(directory, "add", "-A")
    (directory / "never-added.txt").touch()
    shutil.rmtree(directory)
    assert scene.ready().remade == told(
        scene,
        tip,
        "work on it",
        "Staged there and never committed: new 0 .txt, new 1 .txt, new 2 .txt, new 3 .txt, new 4 .txt and 2 more.",
        "2 stashes made on this branch are still there: see `git stash list`.",
    )


@pytest.mark.case("D16")
def test_a_head_that_was_elsewhere_is_named(scene: Scene) -> None:
    scene.ready()
    tip = git(scene.directory(), "rev-parse", "HEAD")
    git(scene.directory(), "checkout", "--quiet", "--detach")
    astray = commit(scene.directory(), "on no branch")
    shutil.rmtree(scene.directory())
    before = f"Before that it was at commit {astray[:12]}, on no branch."
    assert scene.ready().remade == told(scene, tip, "first", before)


@pytest.mark.case("D16")
@pytest.mark.parametrize("forgotten", ["reference", "everything"])
def test_where_git_forgot_it_less_is_known(scene: Scene, forgotten: str) -> None:
    scene.ready()
    tip = git(scene.directory(), "rev-parse", "HEAD")
    (scene.directory() / "staged.txt").touch()
    git(scene.directory(), "add", "-A")
    shutil.rmtree(scene.directory())
    git(scene.project, "worktree", "prune")
    if forgotten == "everything":
        shutil.rmtree(scene.root)
    assert scene.ready().remade == told(scene, tip, "first")


@pytest.mark.case("D16")
def test_a_clone_of_ours_says_the_same(tmp_path: Path) -> None:
    source = repository(tmp_path / "elsewhere")
    scene = Scene(tmp_path, f"file://{source}", SourceKind.ADDRESS)
    scene.ready()
    directory = scene.directory()
    tip = git(directory, "rev-parse", "HEAD")
    (directory / "a.txt").write_text("changed\n")
    git(directory, "stash", "--quiet")
    (directory / "b.txt").touch()
    git(directory, "add", "-A")
    shutil.rmtree(directory)
    staged = "Staged there and never committed: b.txt."
    stash = "1 stash that was made on this branch is still there: see `git stash list`."
    assert scene.ready().remade == told(scene, tip, "first", staged, stash)


@pytest.mark.case("D16")
def test_a_plain_directory_and_a_home_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    places = GitWorkspaces(tmp_path / "root", tmp_path / "homes")
    for wanted in (plain(tmp_path / "notes", "ln_1"), home(tmp_path / "homes" / "ada")):
        for _ in range(2):
            ensured = run(places.ensure(wanted))
            assert isinstance(ensured, Ensured), ensured
            assert ensured.remade == ""
            run(places.acknowledge(wanted))
            run(places.release(wanted))
        shutil.rmtree(wanted.workspace.directory.path)
    again = run(places.ensure(home(tmp_path / "homes" / "ada")))
    assert isinstance(again, Ensured)
    assert again.remade == ""
