"""The work in a worktree: everything that the base does not have, or what one run changed."""

import pytest

from clew.kernel import RunId, WorkspaceId
from clew.ports.work import Diff, DiffWanted, Work
from clew.workspaces.faults import NoSuchRunHere, NoWorktree
from clew.workspaces.snapshot import LARGEST
from tests.workspaces.kit import Scene, commit, git, run

PLACE = WorkspaceId("ws_ln_1")


def diff(scene: Scene, *paths: str, stat: bool = False, of: str | None = None) -> Diff:
    wanted = DiffWanted(paths, stat, None if of is None else RunId(of))
    return run(scene.workspaces.diff(PLACE, wanted))


def work(scene: Scene) -> Work:
    return run(scene.workspaces.work(PLACE))


def test_committed_uncommitted_and_new_files_are_shown_and_ignored_ones_are_not(scene: Scene) -> None:
    scene.ready()
    directory = scene.directory()
    (directory / "a.txt").write_text("committed\n")
    commit(directory, "work")
    (directory / "sub" / "b.txt").write_text("changed\n")
    (directory / "new.txt").write_text("new\n")
    (directory / ".env").write_text("SECRET=1\n")
    found = diff(scene)
    assert [line for line in found.text.splitlines() if line.startswith("+++")] == [
        "+++ b/a.txt",
        "+++ b/new.txt",
        "+++ b/sub/b.txt",
    ]
    assert "SECRET" not in found.text
    counted = found.work
    assert (counted.base, counted.branch, counted.files, counted.uncommitted, counted.commits) == (
        "main",
        "clew/ln_1",
        3,
        2,
        1,
    )
    assert work(scene) == counted


def test_what_the_base_got_meanwhile_is_not_the_lanes_work(scene: Scene) -> None:
    scene.ready()
    (scene.project / "theirs.txt").write_text("x\n")
    commit(scene.project, "of somebody else")
    assert diff(scene).text == ""
    assert work(scene).files == 0


def test_a_diff_is_narrowed_to_files_and_to_counts(scene: Scene) -> None:
    scene.ready()
    (scene.directory() / "a.txt").write_text("1\n")
    (scene.directory() / "sub" / "b.txt").write_text("2\n")
    assert "b.txt" not in diff(scene, "a.txt").text
    assert "a.txt" not in diff(scene, "sub").text
    assert diff(scene, "*.txt").text == "", "a name is no pattern"
    assert "2 files changed" in diff(scene, stat=True).text


def test_names_of_files_are_shown_as_they_are_typed(scene: Scene) -> None:
    scene.ready()
    (scene.directory() / "ünï 日本.txt").write_text("1\n")
    assert "+++ b/ünï 日本.txt" in diff(scene).text
    assert " ünï 日本.txt | 1 +" in diff(scene, stat=True).text


def test_a_diff_has_the_same_form_whatever_a_person_has_configured(scene: Scene) -> None:
    scene.ready()
    (scene.directory() / "a.txt").write_text("1\n")
    plain = diff(scene).text
    for setting in ("diff.noprefix", "diff.mnemonicPrefix"):
        git(scene.project, "config", setting, "true")
        assert diff(scene).text == plain


def test_a_run_is_shown_with_what_it_changed_committed_or_not(scene: Scene) -> None:
    scene.ready()
    wanted, directory = scene.wanted(), scene.directory()
    (directory / "earlier.txt").write_text("x\n")
    run(scene.workspaces.begin_run(wanted, RunId("rn_1")))
    (directory / "a.txt").write_text("of the run\n")
    commit(directory, "committed in the run")
    (directory / "loose.txt").write_text("y\n")
    # A second try of the same run does not move its beginning.
    run(scene.workspaces.begin_run(wanted, RunId("rn_1")))
    counted = run(scene.workspaces.end_run(wanted, RunId("rn_1")))
    (directory / "later.txt").write_text("z\n")
    text = diff(scene, of="rn_1").text
    assert [line for line in text.splitlines() if line.startswith("+++")] == ["+++ b/a.txt", "+++ b/loose.txt"]
    assert (counted.files, counted.uncommitted) == (3, 1)
    with pytest.raises(NoSuchRunHere):
        diff(scene, of="rn_2")


def test_looking_leaves_index_and_branches_alone(scene: Scene) -> None:
    scene.ready()
    directory = scene.directory()
    (directory / "a.txt").write_text("staged\n")
    git(directory, "add", "a.txt")
    (directory / "new.txt").write_text("new\n")
    before = git(directory, "status", "--porcelain=v2", "--branch"), git(scene.project, "for-each-ref")
    diff(scene)
    run(scene.workspaces.begin_run(scene.wanted(), RunId("rn_1")))
    assert (git(directory, "status", "--porcelain=v2", "--branch"), git(scene.project, "for-each-ref")) == before


def test_a_new_file_that_is_too_large_is_named_and_not_stored(scene: Scene) -> None:
    scene.ready()
    with (scene.directory() / "big.bin").open("wb") as file:
        file.truncate(LARGEST + 1)
    found = diff(scene)
    assert (found.text, found.left_out, found.work.files) == ("", ("big.bin",), 1)


def test_a_worktree_that_is_gone_says_so(scene: Scene) -> None:
    with pytest.raises(NoWorktree):
        diff(scene)
