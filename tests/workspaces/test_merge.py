"""Committing and merging a lane's work: all of it arrives, or nothing is changed."""

import os
from pathlib import Path

import pytest

from clew.kernel import WorkspaceId
from clew.ports.work import Committed, Merged
from clew.ports.workspaces import Ensured, Held
from clew.workspaces.faults import (
    CannotMergeInto,
    MergeConflict,
    NoRemote,
    NothingToCommit,
    NothingToMerge,
    OnOtherBranch,
    StillBusy,
    Uncommitted,
)
from clew.workspaces.proposal import forge_of
from tests.workspaces.kit import Scene, commit, git, run

PLACE = WorkspaceId("ws_ln_1")


@pytest.fixture
def worked(scene: Scene) -> Scene:
    """A lane with one commit that the base does not have."""
    scene.ready()
    (scene.directory() / "work.txt").write_text("work\n")
    commit(scene.directory(), "work")
    return scene


def commits(scene: Scene, message: str = "Done") -> Committed:
    return run(scene.workspaces.commit(PLACE, message, "eva"))


def merges(scene: Scene, into: str | None = None) -> Merged:
    return run(scene.workspaces.merge(PLACE, into, "Merge clew/ln_1 (issue-1)", "eva"))


def everything(at: Path) -> tuple[str, ...]:
    """All that a merge could change: branches, files and the state of a checkout."""
    files = sorted(
        (str(each), each.read_bytes()) for each in at.rglob("*") if each.is_file() and ".git" not in each.parts
    )
    return git(at, "for-each-ref"), git(at, "status", "--porcelain=v2", "--branch"), repr(files)


def test_a_commit_has_all_that_git_does_not_ignore_under_the_users_name(scene: Scene) -> None:
    scene.ready()
    (scene.directory() / "a.txt").write_text("changed\n")
    (scene.directory() / "new.txt").write_text("new\n")
    (scene.directory() / ".env").write_text("SECRET=1\n")
    done = commits(scene)
    assert (done.files, done.work.uncommitted, done.work.commits) == (2, 0, 1)
    assert git(scene.directory(), "show", "--format=%an %cn %s", "--name-only", "HEAD").split("\n\n") == [
        "eva eva Done",
        "a.txt\nnew.txt",
    ]
    git(scene.project, "config", "user.name", "Eva Person")
    git(scene.project, "config", "user.email", "eva@example.org")
    (scene.directory() / "a.txt").write_text("once more\n")
    commits(scene)
    assert git(scene.directory(), "log", "-1", "--format=%an %cn") == "Eva Person Eva Person"
    with pytest.raises(NothingToCommit):
        commits(scene)


def test_a_merge_reaches_the_base_and_the_files_of_its_checkout(worked: Scene) -> None:
    done = merges(worked)
    assert (done.into, done.updated, done.work.commits) == ("main", str(worked.project), 0)
    assert (worked.project / "work.txt").read_text() == "work\n"
    assert git(worked.project, "status", "--porcelain") == ""
    assert git(worked.project, "log", "-1", "--format=%s") == "Merge clew/ln_1 (issue-1)"
    assert len(git(worked.project, "rev-list", "--parents", "-1", "main").split()) == 3
    with pytest.raises(NothingToMerge):
        merges(worked)


def test_a_branch_that_nobody_has_checked_out_is_moved_alone(worked: Scene) -> None:
    git(worked.project, "branch", "release")
    done = merges(worked, "release")
    assert (done.into, done.updated) == ("release", None)
    assert git(worked.project, "rev-parse", "release") == done.commit
    assert not (worked.project / "work.txt").exists()


def test_a_conflict_names_the_files_and_leaves_everything_as_it_was(worked: Scene) -> None:
    (worked.project / "work.txt").write_text("theirs\n")
    commit(worked.project, "the same file")
    before = everything(worked.project), everything(worked.directory())
    with pytest.raises(MergeConflict, match=r"conflicts with main in work\.txt\. Nothing was changed\."):
        merges(worked)
    assert (everything(worked.project), everything(worked.directory())) == before


def test_what_is_not_committed_refuses_the_merge_on_either_side(worked: Scene) -> None:
    (worked.directory() / "loose.txt").write_text("x\n")
    before = everything(worked.project), everything(worked.directory())
    with pytest.raises(Uncommitted, match=r"in no commit: loose\.txt\. Commit them with `clew commit"):
        merges(worked)
    (worked.directory() / "loose.txt").unlink()
    (worked.project / "a.txt").write_text("a person's own change\n")
    with pytest.raises(CannotMergeInto, match=r"has main checked out, has changes that are in no commit: a\.txt"):
        merges(worked)
    git(worked.project, "checkout", "a.txt")
    # A new file of the person that the merge would overwrite.
    (worked.project / "work.txt").write_text("a person's own file\n")
    with pytest.raises(CannotMergeInto, match="would be overwritten"):
        merges(worked)
    assert (worked.project / "work.txt").read_text() == "a person's own file\n"
    (worked.project / "work.txt").unlink()
    assert (everything(worked.project), git(worked.directory(), "status", "--porcelain")) == (before[0], "")


def test_an_unfinished_merge_of_a_person_is_left_alone(worked: Scene) -> None:
    git(worked.project, "switch", "--quiet", "-c", "side")
    (worked.project / "a.txt").write_text("side\n")
    commit(worked.project, "side")
    git(worked.project, "switch", "--quiet", "main")
    (worked.project / "a.txt").write_text("main\n")
    commit(worked.project, "main")
    git(worked.project, "merge", "side", ok=False)
    before = everything(worked.project)
    with pytest.raises(CannotMergeInto, match="in the midst of a merge"):
        merges(worked)
    assert everything(worked.project) == before


def test_a_target_that_cannot_be_is_refused_with_what_there_is(worked: Scene) -> None:
    with pytest.raises(CannotMergeInto, match=r"There is no branch 'nope'\. Name one that exists: "):
        merges(worked, "nope")
    for number in range(8):
        git(worked.project, "branch", f"clew/other-{number}")
    with pytest.raises(CannotMergeInto, match=r"Name one that exists: main, clew/"):
        merges(worked, "nope")
    with pytest.raises(CannotMergeInto, match="own branch"):
        merges(worked, "clew/ln_1")


def test_nothing_is_committed_or_merged_while_an_agent_works_there(worked: Scene) -> None:
    async def story() -> None:
        wanted = worked.wanted()
        await worked.workspaces.ensure(wanted)
        with pytest.raises(StillBusy):
            await worked.workspaces.commit(PLACE, "Done", "eva")
        with pytest.raises(StillBusy):
            await worked.workspaces.merge(PLACE, None, "Merge", "eva")
        await worked.workspaces.release(wanted)

    run(story())


@pytest.mark.case("D15")
def test_a_branch_that_the_agent_made_is_held_with_both_names_until_it_is_accepted(scene: Scene) -> None:
    scene.ready()
    git(scene.directory(), "switch", "--quiet", "-c", "feature/login")
    tip = commit(scene.directory(), "work")
    held = scene.held()
    assert "should be on branch clew/ln_1 but is on feature/login." in held.words
    assert f"`clew workspaces accept {scene.directory()}`" in held.words
    with pytest.raises(OnOtherBranch, match="clew workspaces accept"):
        merges(scene)
    assert run(scene.workspaces.accept_branch(PLACE)).branch == "feature/login"
    assert scene.ready().branch == "feature/login"
    merges(scene)
    assert git(scene.project, "merge-base", "main", tip) == tip
    assert git(scene.project, "branch", "--list", "clew/ln_1").strip() == "clew/ln_1", "the former branch is kept"


@pytest.mark.case("D15")
def test_no_branch_and_another_lanes_branch_are_not_accepted(scene: Scene) -> None:
    scene.ready("ln_2")
    scene.ready()
    git(scene.directory(), "switch", "--quiet", "--detach")
    with pytest.raises(OnOtherBranch, match="on no branch"):
        run(scene.workspaces.accept_branch(PLACE))
    assert "clew/ln_1" in scene.held().words
    git(scene.directory(), "switch", "--quiet", "clew/ln_1")
    assert scene.ready().branch == "clew/ln_1"


def test_a_pull_request_needs_a_remote_and_says_how_it_is_opened(worked: Scene) -> None:
    with pytest.raises(NoRemote):
        run(worked.workspaces.propose(PLACE, "Title", ""))
    git(worked.project, "remote", "add", "origin", "git@gitlab.com:acme/app.git")
    told = run(worked.workspaces.propose(PLACE, "Title", ""))
    assert told.url is None
    assert told.push == f"git -C {worked.directory()} push -u origin clew/ln_1"
    assert told.address is not None
    assert told.address.startswith("https://gitlab.com/acme/app/-/merge_requests/new?")


def test_gh_opens_the_pull_request_where_it_is_installed(
    worked: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = tmp_path / "github.example" / "acme" / "app.git"
    git(worked.project, "init", "--quiet", "--bare", str(remote))
    git(worked.project, "remote", "add", "origin", "https://github.example/acme/app.git")
    git(worked.project, "config", f"url.{remote}.pushInsteadOf", "https://github.example/acme/app.git")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "gh").write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/asked\necho https://github.example/pull/7\n'
    )
    (programs / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    told = run(worked.workspaces.propose(PLACE, "Login page", "text"))
    asked = (tmp_path / "asked").read_text().splitlines()
    assert told.url == "https://github.example/pull/7"
    assert asked[:4] == ["pr", "create", "--repo", "github.example/acme/app"]
    assert git(remote, "branch", "--format=%(refname:short)") == "clew/ln_1"


@pytest.mark.parametrize(
    ("address", "host", "path"),
    [
        ("git@github.com:acme/app.git", "github.com", "acme/app"),
        ("https://me:secret@github.com/acme/app", "github.com", "acme/app"),
        ("ssh://git@gitlab.example.org:2222/group/sub/app.git", "gitlab.example.org", "group/sub/app"),
    ],
)
def test_an_address_is_read_as_a_host_and_a_path(address: str, host: str, path: str) -> None:
    forge = forge_of(address)
    assert forge is not None
    assert (forge.host, forge.path) == (host, path)
    assert forge_of("/srv/app.git") is None


@pytest.mark.case("D14")
def test_a_second_lane_begins_with_all_of_the_firsts_work_and_is_told_of_it(worked: Scene) -> None:
    tip = git(worked.directory(), "rev-parse", "HEAD")
    (worked.directory() / "loose.txt").write_text("not committed\n")
    (worked.directory() / "a.txt").unlink()
    before = everything(worked.directory())
    second = begun(worked, "ln_2", "clew/ln_1", "ada")
    assert git(second, "rev-parse", "HEAD") == tip
    assert git(second, "symbolic-ref", "--short", "HEAD") == "clew/ln_2"
    assert (second / "loose.txt").read_text() == "not committed\n"
    assert git(second, "status", "--porcelain").split("\n") == [" D a.txt", "?? loose.txt"]
    told = ensured(worked, "ln_2", "clew/ln_1", "ada").remade
    assert told.startswith(
        f"This worktree begins with the work of another: ada's branch clew/ln_1, at commit {tip[:10]}."
    )
    assert "It changed a.txt, loose.txt, work.txt." in told
    assert "where it is not committed either: a.txt, loose.txt." in told
    assert everything(worked.directory())[1:] == before[1:], "the first worktree is only read"


@pytest.mark.case("D14")
def test_new_commits_of_the_first_are_taken_over_or_told_with_how_to_take_them(worked: Scene) -> None:
    second = begun(worked, "ln_2", "clew/ln_1", "ada")
    run(worked.workspaces.acknowledge(worked.wanted("ln_2")))
    assert ensured(worked, "ln_2", "clew/ln_1", "ada").remade == ""
    (worked.directory() / "more.txt").write_text("more\n")
    tip = commit(worked.directory(), "more")
    told = ensured(worked, "ln_2", "clew/ln_1", "ada").remade
    assert told == "ada's branch clew/ln_1 has new commits (1). This branch has them now."
    assert git(second, "rev-parse", "HEAD") == tip
    run(worked.workspaces.acknowledge(worked.wanted("ln_2")))
    own = commit(second, "of its own")
    commit(worked.directory(), "and more")
    (worked.directory() / "loose.txt").write_text("x\n")
    told = ensured(worked, "ln_2", "clew/ln_1", "ada").remade
    assert "take them with `git merge clew/ln_1`." in told
    assert f"not committed: loose.txt; it is in {worked.directory()}." in told
    assert git(second, "rev-parse", "HEAD") == own


@pytest.mark.case("D14")
def test_a_worktree_with_copies_alone_follows_the_first_and_has_no_work_of_its_own(worked: Scene) -> None:
    (worked.directory() / "loose.txt").write_text("not committed\n")
    (worked.directory() / "a.txt").write_text("changed\n")
    second, place = begun(worked, "ln_2", "clew/ln_1", "ada"), WorkspaceId("ws_ln_2")
    run(worked.workspaces.acknowledge(worked.wanted("ln_2")))
    found = run(worked.workspaces.work(place))
    assert (found.files, found.uncommitted, found.commits) == (0, 0, 0), "it is the first one's work"
    (worked.directory() / "loose.txt").unlink()
    tip = commit(worked.directory(), "more")
    (worked.directory() / "next.txt").write_text("next\n")
    told = ensured(worked, "ln_2", "clew/ln_1", "ada").remade
    assert told == (
        "ada's branch clew/ln_1 has new commits (1). This branch has them now. Changed there since the last turn here, "
        "and not committed: loose.txt, next.txt; this worktree has the same now."
    )
    assert git(second, "rev-parse", "HEAD") == tip
    assert git(second, "status", "--porcelain") == "?? next.txt"
    assert (second / "a.txt").read_text() == "changed\n"
    assert run(worked.workspaces.work(place)).files == 0
    # From its first change on, its work is its own, and Clew replaces nothing.
    (second / "next.txt").write_text("of the second\n")
    assert run(worked.workspaces.work(place)).uncommitted == 1
    (worked.directory() / "next.txt").write_text("of the first\n")
    told = ensured(worked, "ln_2", "clew/ln_1", "ada").remade
    assert f"not committed: next.txt; it is in {worked.directory()}." in told
    assert (second / "next.txt").read_text() == "of the second\n"


@pytest.mark.case("D14")
def test_a_branch_to_begin_from_that_is_gone_is_the_base_or_is_said(worked: Scene) -> None:
    assert git(begun(worked, "ln_2", "clew/gone", "ada"), "rev-parse", "HEAD") == git(
        worked.project, "rev-parse", "main"
    )
    held = worked.ensure("ln_3", begins="clew/gone")
    assert isinstance(held, Held)
    assert "there is no branch 'clew/gone' to begin from" in held.words
    git(worked.project, "branch", "clew/gone", "clew/ln_1")
    assert (begun(worked, "ln_3", "clew/gone", None) / "work.txt").exists()


def ensured(scene: Scene, lane: str, begins: str, by: str | None) -> Ensured:
    result = scene.ensure(lane, begins=begins, begun_by=by)
    assert isinstance(result, Ensured), result
    return result


def begun(scene: Scene, lane: str, begins: str, by: str | None) -> Path:
    ensured(scene, lane, begins, by)
    return scene.directory(lane)


def test_a_new_worktree_says_what_it_does_not_have(scene: Scene, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(inner))
    (inner / "x").write_text("x")
    commit(inner, "inner")
    git(scene.project, "submodule", "--quiet", "add", str(inner), "vendor/inner")
    commit(scene.project, "a submodule")
    (scene.project / "a.txt").write_text("in the works\n")
    told = scene.ready().remade
    assert f"Uncommitted changes in {scene.project} are not in this worktree: a.txt." in told
    assert "Submodules are empty in this worktree (vendor/inner)" in told
    run(scene.workspaces.acknowledge(scene.wanted()))
    assert scene.ready().remade == ""


def test_a_dry_run_removes_nothing_and_an_open_threads_workspace_is_spared(scene: Scene) -> None:
    scene.ready()
    lane = scene.wanted().lane
    (dry,) = run(scene.workspaces.clean(dry=True))
    assert (dry.removed, "would be removed" in dry.words) == (True, True)
    assert scene.directory().is_dir()
    (spared,) = run(scene.workspaces.clean(spared={lane: "issue-1 is open."}))
    assert (spared.removed, spared.words) == (False, "Kept: issue-1 is open.")
    (removed,) = run(scene.workspaces.clean([PLACE], spared={lane: "issue-1 is open."}))
    assert removed.removed
