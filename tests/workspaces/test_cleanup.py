"""What is listed, and what may go: only what loses nothing, unless it was asked for by name."""

import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from clew.kernel import PlaceStep, WorkspaceId
from clew.ports.workspaces import Cleaned, CleanReason, Listed, ListedState, SourceKind
from clew.workspaces import GitWorkspaces
from clew.workspaces.cleanup import REMOVING, WORDS, remove_tree
from clew.workspaces.inventory import disk_use
from tests.workspaces.kit import Scene, commit, git, plain, repository, run

ASKED = (WorkspaceId("ws_ln_1"),)


def one(scene: Scene) -> Listed:
    (listed,) = run(scene.workspaces.listed())
    return listed


def clean(scene: Scene, *asked: WorkspaceId, idle: float = 0.0) -> Cleaned:
    (cleaned,) = run(scene.workspaces.clean(asked, idle))
    return cleaned


def branches(scene: Scene) -> str:
    return git(scene.project, "for-each-ref", "--format=%(refname:short)", "refs/heads/clew")


@pytest.mark.case("D12")
def test_every_workspace_is_listed_with_what_it_takes(scene: Scene) -> None:
    scene.ready("ln_1")
    scene.ready("ln_2")
    first = scene.directory("ln_1")
    (first / "big.bin").write_bytes(os.urandom(200_000))
    os.link(first / "big.bin", first / "again.bin")
    (first / "ignored").mkdir()
    (first / "ignored" / "cache").write_bytes(os.urandom(100_000))
    one, two = run(scene.workspaces.listed())
    assert (one.lane, one.project, one.branch, one.workspace) == ("ln_1", "pr_1", "clew/ln_1", "ws_ln_1")
    assert one.state is ListedState.READY
    assert 300_000 <= one.disk.total < 400_000, "a hard link is counted once"
    assert 100_000 <= one.disk.ignored < 130_000
    assert (one.changes, one.dirty) == (2, True)
    assert one.last_used is not None
    assert (two.changes, two.unmerged, two.dirty) == (0, 0, False)


@pytest.mark.case("D12")
def test_where_one_is_named_no_other_goes(scene: Scene) -> None:
    scene.ready("ln_1")
    scene.ready("ln_2")
    (gone,) = run(scene.workspaces.clean([WorkspaceId("ws_ln_2")], 0.0))
    assert (gone.removed, gone.listed.lane) == (True, "ln_2")
    assert scene.directory("ln_1").exists()


@pytest.mark.case("D12")
def test_what_is_merged_goes_with_its_branch(scene: Scene) -> None:
    scene.ready()
    commit(scene.directory(), "work")
    assert one(scene).unmerged == 1
    kept = clean(scene)
    assert (kept.removed, kept.reason) == (False, CleanReason.UNMERGED)
    git(scene.project, "merge", "--quiet", "clew/ln_1")
    gone = clean(scene)
    assert (gone.removed, gone.reason) == (True, CleanReason.MERGED)
    assert gone.freed > 0
    assert not scene.directory().exists()
    assert branches(scene) == ""
    assert scene.worktrees() == [str(scene.project)]
    assert list((scene.root / ".clew" / "trash").iterdir()) == []
    assert run(scene.workspaces.listed()) == []
    assert scene.ready().step is PlaceStep.MAKE


@pytest.mark.case("D12")
@pytest.mark.parametrize("change", ["changed", "untracked", "staged", "deleted"])
def test_what_is_in_no_commit_stays(scene: Scene, change: str) -> None:
    scene.ready()
    directory = scene.directory()
    match change:
        case "changed":
            (directory / "a.txt").write_text("changed\n")
        case "untracked":
            (directory / "new.txt").touch()
        case "staged":
            (directory / "new.txt").touch()
            git(directory, "add", "new.txt")
        case _:
            (directory / "a.txt").unlink()
    kept = clean(scene)
    assert (kept.removed, kept.reason) == (False, CleanReason.DIRTY)
    assert directory.exists()
    asked = clean(scene, *ASKED)
    assert (asked.removed, asked.reason) == (True, CleanReason.ASKED_MERGED)


@pytest.mark.case("D12")
def test_an_unmerged_one_that_is_asked_for_leaves_its_branch(scene: Scene) -> None:
    scene.ready()
    tip = commit(scene.directory(), "work")
    gone = clean(scene, *ASKED)
    assert (gone.removed, gone.reason) == (True, CleanReason.ASKED)
    assert branches(scene) == "clew/ln_1"
    assert scene.ready().step is PlaceStep.MAKE_AGAIN
    assert git(scene.directory(), "rev-parse", "HEAD") == tip


@pytest.mark.case("D12")
def test_commits_on_no_branch_count(scene: Scene) -> None:
    scene.ready()
    git(scene.directory(), "checkout", "--quiet", "--detach")
    commit(scene.directory(), "adrift")
    assert clean(scene).reason is CleanReason.UNMERGED


@pytest.mark.case("D12")
def test_a_merge_that_is_not_finished_stays(scene: Scene) -> None:
    scene.ready()
    git(scene.directory(), "rebase", "--quiet", "--exec", "false", "--root", ok=False)
    kept = clean(scene)
    assert not kept.removed
    assert "rebase" in kept.listed.midst


@pytest.mark.case("D12")
def test_ignored_files_do_not_keep_it(scene: Scene) -> None:
    scene.ready()
    (scene.directory() / ".env").write_text("x" * 10_000)
    listed = one(scene)
    assert not listed.dirty
    assert listed.disk.ignored >= 10_000
    assert clean(scene).removed


@pytest.mark.case("D12")
def test_one_that_is_in_use_stays_even_when_asked_for(scene: Scene) -> None:
    async def used() -> None:
        wanted = dataclasses.replace(scene.wanted(), who="agent Ada's lane ln_1")
        await scene.workspaces.ensure(wanted)
        (kept,) = await GitWorkspaces(scene.root).clean(ASKED)
        assert (kept.removed, kept.reason) == (False, CleanReason.IN_USE)
        assert "agent Ada's lane ln_1 works there since" in kept.words
        await scene.workspaces.release(wanted)
        (gone,) = await GitWorkspaces(scene.root).clean(ASKED)
        assert gone.removed

    run(used())


@pytest.mark.case("D12")
def test_one_used_a_short_while_ago_may_be_kept(scene: Scene) -> None:
    scene.ready()
    assert clean(scene, idle=3600.0).reason is CleanReason.RECENT
    assert clean(scene).removed


@pytest.mark.case("D12")
def test_locked_and_foreign_ones_stay_even_when_asked_for(scene: Scene) -> None:
    scene.ready()
    git(scene.project, "worktree", "lock", "--reason", "mine", str(scene.directory()))
    kept = clean(scene, *ASKED)
    assert (kept.reason, "mine" in kept.words) == (CleanReason.LOCKED, True)
    git(scene.project, "worktree", "unlock", str(scene.directory()))
    clean(scene)
    git(scene.project, "worktree", "add", "--quiet", str(scene.directory("hand-made")))
    (scene.directory("notes")).mkdir()
    (scene.directory("link")).symlink_to(scene.project)
    for each in run(scene.workspaces.clean(ASKED)):
        assert (each.removed, each.reason) == (False, CleanReason.NOT_OURS)
    assert scene.directory("hand-made").exists()
    assert scene.directory("notes").exists()
    assert scene.project.exists()


@pytest.mark.case("D12")
def test_submodules_are_kept_unless_asked_for(scene: Scene, tmp_path: Path) -> None:
    repository(tmp_path / "part")
    git(scene.project, "submodule", "--quiet", "add", str(tmp_path / "part"), "part")
    commit(scene.project, "with a part")
    scene.ready()
    git(scene.directory(), "submodule", "--quiet", "update", "--init")
    assert clean(scene).reason is CleanReason.SUBMODULES
    (scene.directory() / "part" / "a.txt").write_text("changed")
    assert clean(scene).reason is CleanReason.DIRTY
    assert clean(scene, *ASKED).removed


def test_a_stash_outlives_its_worktree(scene: Scene) -> None:
    scene.ready()
    (scene.directory() / "a.txt").write_text("stashed\n")
    git(scene.directory(), "stash")
    assert clean(scene).removed
    assert "a.txt" in git(scene.project, "stash", "show", "--name-only")


@pytest.mark.case("D12")
def test_orphans_are_listed_and_forgotten_only_by_name(scene: Scene) -> None:
    scene.ready()
    shutil.rmtree(scene.directory())
    listed = one(scene)
    assert (listed.state, listed.lane, listed.disk.total) == (ListedState.ORPHANED, "ln_1", 0)
    assert clean(scene).reason is CleanReason.GONE
    gone = clean(scene, *ASKED)
    assert (gone.removed, gone.reason) == (True, CleanReason.CLEARED)
    assert scene.worktrees() == [str(scene.project)]
    assert branches(scene) == "clew/ln_1"


@pytest.mark.case("D12")
def test_a_workspace_that_is_not_finished_is_shown_as_such(scene: Scene) -> None:
    scene.held("ln_1", scene.with_setup("false"))
    assert one(scene).state is ListedState.UNFINISHED
    assert clean(scene).removed
    assert branches(scene) == ""


@pytest.mark.case("D12")
def test_worktrees_of_an_address_go_the_same_way(tmp_path: Path) -> None:
    origin = repository(tmp_path / "origin")
    scene = Scene(tmp_path, f"file://{origin}", SourceKind.ADDRESS)
    scene.ready("ln_1")
    scene.ready("ln_2")
    commit(scene.directory("ln_2"), "work")
    reasons = [each.reason for each in run(scene.workspaces.clean())]
    assert reasons == [CleanReason.MERGED, CleanReason.UNMERGED]
    assert git(scene.root / "pr_1" / ".source", "branch", "--format=%(refname:short)") == "clew/ln_2"


def test_a_base_that_is_gone_leaves_where_the_branch_began(scene: Scene) -> None:
    git(scene.project, "branch", "feature")
    scene.ready("ln_1", dataclasses.replace(scene.source, base="feature"))
    git(scene.project, "branch", "-D", "feature")
    assert one(scene).unmerged == 0
    commit(scene.directory(), "work")
    assert one(scene).unmerged == 1


def test_where_the_branch_began_is_kept_when_it_is_made_again(scene: Scene) -> None:
    git(scene.project, "branch", "feature")
    source = dataclasses.replace(scene.source, base="feature")
    scene.ready("ln_1", source)
    commit(scene.directory(), "work")
    shutil.rmtree(scene.directory())
    git(scene.project, "branch", "--force", "feature", "clew/ln_1")
    scene.ready("ln_1", source)
    git(scene.project, "branch", "-D", "feature")
    assert one(scene).unmerged == 1


def test_a_renamed_file_is_one_change(scene: Scene) -> None:
    scene.ready()
    git(scene.directory(), "mv", "a.txt", "z.txt")
    assert one(scene).changes == 1


def test_without_a_record_nothing_is_known_to_be_merged(scene: Scene) -> None:
    scene.ready()
    shutil.rmtree(scene.root / ".clew" / "records")
    kept = clean(scene)
    assert (kept.removed, kept.reason) == (False, CleanReason.UNMERGED)


def test_plain_directories_are_not_below_the_root_and_never_cleaned(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    run(scene.workspaces.ensure(plain(tmp_path / "papers", "ln_1")))
    run(scene.workspaces.close())
    assert run(scene.workspaces.clean(ASKED)) == []
    assert (tmp_path / "papers").exists()


def test_every_reason_has_its_words() -> None:
    assert set(WORDS) == set(CleanReason)
    assert all("{" not in WORDS[reason] for reason in REMOVING)


def test_a_size_that_takes_too_long_is_at_least_so_much(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).write_bytes(b"x" * 5000)
    assert disk_use(tmp_path).whole
    part = disk_use(tmp_path, most=10)
    assert not part.whole
    assert 0 < part.total < disk_use(tmp_path).total
    assert disk_use(tmp_path / "nowhere").total == 0


def test_what_a_tool_made_read_only_is_removed_too(tmp_path: Path) -> None:
    deep = tmp_path / "tree" / "deep"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "outside")
    deep.chmod(0o500)
    (tmp_path / "outside").chmod(0o755)
    remove_tree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
    assert (tmp_path / "outside" / "kept").exists()
    assert (tmp_path / "outside").stat().st_mode & 0o777 == 0o755
