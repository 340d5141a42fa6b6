"""By two commands ada (Claude Code) writes and cody (Codex) reviews. He changes something, ada takes it over in the
same conversation, main moves on, and a person resolves the conflict in ada's worktree, while a message waits."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.story.desk import BRANCH, ISSUE, Desk, commit, desk, edit, git, heard

__all__ = ["desk"]

pytestmark = pytest.mark.xdist_group("story-codex")

AUTHOR = "-c user.name=ada -c user.email=ada@example.org"


def ada_writes(desk: Desk, file: Path) -> None:
    change = edit(file, '["north"]', '["north", "south"]')
    desk.ada.loopback.teach("Add a south door", f"{change}\nSAY: Done.")
    done = desk.says(*ISSUE, "--assign", "ada", "-w")
    assert (done.status, done.out.splitlines()[-1]) == (0, "Done."), done
    assert "· 1 file changed, 1 uncommitted: clew diff issue-1\n" in done.err
    assert desk.stage("1") == "ready for review"
    desk.does("commit", "1", "-m", "A south door")


def cody_changes_what_he_reviews(desk: Desk) -> None:
    change = 'RUN: git log -1 --format=%s && sed -i \'s/"south"/"south", "cat flap"/\' maze.py'
    desk.cody.loopback.teach("Review this", f"{change}\nSAY: A cat flap was missing.")
    review = desk.says("say", "issue-1", "Review this, and mend it.", "--to", "cody", "-w")
    assert (review.status, review.out) == (0, "A cat flap was missing.\n"), review
    assert "· 1 file changed, 1 uncommitted: clew diff issue-1 --agent cody\n" in review.err
    told = heard(desk.cody)
    assert f"ada's branch {BRANCH}, at commit {git(desk.maze, 'rev-parse', BRANCH)[:10]}. It changed maze.py." in told
    assert "Another agent, ada, said" in told
    assert "A south door\n" in desk.cody.loopback.work[-1].results[-1].text, "he begins with what she committed"
    assert '["north", "south", "cat flap"]' in desk.does("diff", "1", "--agent", "cody")
    of_ada = desk.says("diff", "1")
    assert ("cat flap" in of_ada.out, f"on {BRANCH}-cody, and ada's branch does not have" in of_ada.err) == (
        False,
        True,
    )
    whose = desk.refused("merge", "1")
    assert "Choose whose: `clew merge issue-1 --agent cody` or `clew merge issue-1 --agent ada`." in whose
    desk.does("commit", "1", "--agent", "cody", "-m", "A cat flap")


def ada_takes_it_over(desk: Desk) -> None:
    before = session(desk)
    desk.ada.loopback.teach("Take over", f"RUN: git {AUTHOR} merge {BRANCH}-cody\nSAY: It has a cat flap now.")
    said = desk.says("issue", "comment", "1", "Take over what cody has on his branch.", "-w")
    assert (said.status, said.out) == (0, "It has a cat flap now.\n"), said
    assert "· Continuing (run-3).\n" in said.err
    assert session(desk) == before
    assert "Another agent, cody, said" in heard(desk.ada)
    assert "A cat flap was missing." in heard(desk.ada)
    assert "cat flap" in desk.does("diff", "1")


def session(desk: Desk) -> str:
    """The session of ada's newest run."""
    runs = json.loads(desk.does("runs", "--thread", "issue-1", "--agent", "ada", "--json"))
    return str(runs[0]["session"])


def a_person_resolves_the_conflict(desk: Desk, file: Path, conflict: str) -> None:
    """As the refusal says. What is said to ada meanwhile waits, and starts when she has her worktree again."""
    directory = file.parent
    assert f"or do it yourself in {directory} after `clew checkout issue-1`." in conflict
    assert desk.does("checkout", "1") == f"{directory}\n"
    desk.ada.loopback.teach("Add a window", f"WRITE: {directory}/window.py pass\nSAY: Added.")
    desk.does("say", "issue-1", "Add a window.")
    desk.home.until(lambda: "works there" in desk.does("issue", "show", "1"), "the message waits for the person")
    with pytest.raises(subprocess.CalledProcessError):
        git(directory, "merge", "main")
    assert "<<<<<<<" in file.read_text(encoding="utf-8")
    doors = '"north", "south", "cat flap", "east"'
    file.write_text(f"def doors() -> list[str]:\n    return [{doors}]\n", encoding="utf-8")
    commit(directory, "Merge main")
    assert not (directory / "window.py").exists()
    desk.does("checkout", "1", "--done")
    desk.home.quiet("issue-1")
    assert (directory / "window.py").exists()


@pytest.mark.case("D14")
def test_what_a_reviewer_changes_is_merged_through_the_writer_and_a_person_resolves_the_conflict(desk: Desk) -> None:
    desk.does("agent", "edit", "cody", "--mode", "full")
    file = desk.worktree("issue-1-ada") / "maze.py"
    ada_writes(desk, file)
    cody_changes_what_he_reviews(desk)
    ada_takes_it_over(desk)
    (desk.maze / "maze.py").write_text('def doors() -> list[str]:\n    return ["north", "east"]\n', encoding="utf-8")
    commit(desk.maze, "An east door")
    before = git(desk.maze, "for-each-ref"), git(file.parent, "status", "--porcelain"), file.read_text(encoding="utf-8")
    conflict = desk.refused("merge", "1")
    assert f"{BRANCH} conflicts with main in maze.py. Nothing was changed." in conflict
    assert git(desk.maze, "status", "--porcelain") == ""
    assert before == (
        git(desk.maze, "for-each-ref"),
        git(file.parent, "status", "--porcelain"),
        file.read_text(encoding="utf-8"),
    )
    assert desk.stage("1") == "ready for review"
    a_person_resolves_the_conflict(desk, file, conflict)
    desk.does("commit", "1", "-m", "A window")
    merged = desk.does("merge", "1")
    assert merged.startswith(f"Merged {BRANCH} into main (")
    assert "Not merged" not in merged
    assert '"north", "south", "cat flap", "east"' in (desk.maze / "maze.py").read_text(encoding="utf-8")
    assert git(desk.maze, "ls-files").split() == ["README", "maze.py", "window.py"]
    assert {"A south door", "A cat flap", "A window"} <= set(git(desk.maze, "log", "--format=%s").splitlines())
    assert desk.stage("1") == "merged"
    offered = merged.partition("clew workspaces clean ")[2].split()
    assert str(file.parent) in offered
    desk.does("workspaces", "clean", *offered)
    desk.does("workspaces", "clean")
    assert [each.exists() for each in (file.parent, desk.worktree("issue-1-cody"))] == [False, False]
    assert git(desk.maze, "branch", "--list", "clew/*") == ""
