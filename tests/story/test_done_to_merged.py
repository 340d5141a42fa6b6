"""From an issue to a merged change, as a person types it: ada (Claude Code) writes, cody (Codex) reviews her branch,
ada does what he remarked, main has moved on meanwhile, and in the end main has all of it."""

from pathlib import Path

import pytest

from tests.story.desk import BRANCH, DOORS, ISSUE, Desk, commit, desk, edit, git, heard

__all__ = ["desk"]

pytestmark = pytest.mark.xdist_group("story-claude")

# In parts: a marker at the beginning of a line would count as an unfinished merge of this file.
CONFLICT = '<<<<<<< HEAD\n    return ["north", "south"]\n=======\n    return ["north", "east"]\n>>>>>>> main\n'


def ada_writes(desk: Desk, gate: Path) -> None:
    """She is at work until the gate is there, so that the person can look meanwhile."""
    file = desk.worktree("issue-1-ada") / "maze.py"
    change, wait = edit(file, '["north"]', '["north", "south"]'), f"RUN: until [ -e {gate} ]; do sleep 0.1; done"
    desk.ada.loopback.teach("Add a south door", f"{change}\n{wait}\nSAY: Done.")
    assert desk.does(*ISSUE).startswith("Opened issue-1, not assigned.")
    assert desk.stage("1") == "open"
    desk.does("issue", "assign", "1", "ada")
    desk.home.until(lambda: file.exists() and "south" in file.read_text(encoding="utf-8"), "ada has changed maze.py")
    assert desk.stage("1") == "working"
    assert "ada is working in issue-1 now." in desk.refused("merge", "1")
    gate.touch()
    desk.home.quiet("issue-1")
    assert desk.stage("1") == "ready for review"
    assert git(file.parent, "branch", "--show-current") == f"{BRANCH}\n"
    assert "1 file changed, 1 uncommitted: clew diff issue-1" in desk.does("issue", "show", "1")
    assert '+    return ["north", "south"]' in desk.does("diff", "1")


def cody_reviews(desk: Desk) -> None:
    """In a worktree of his own, which begins with all of hers, committed or not."""
    look = "RUN: git branch --show-current && git diff"
    desk.cody.loopback.teach("Review this", f"{look}\nSAY: Right. But README names no door.")
    review = desk.says("issue", "comment", "1", "Review this, please.", "--to", "cody", "-w")
    assert (review.status, review.out) == (0, "Right. But README names no door.\n"), review
    told = heard(desk.cody)
    assert f"ada's branch {BRANCH}, at commit {git(desk.maze, 'rev-parse', 'main')[:10]}." in told
    assert "It changed maze.py." in told
    assert "Another agent, ada, said" in told
    seen = desk.cody.loopback.work[-1].results[-1].text
    assert f"{BRANCH}-cody\n" in seen
    assert '+    return ["north", "south"]' in seen
    assert "clew diff" not in review.err, "he changed nothing"


def ada_does_what_cody_says(desk: Desk) -> None:
    change = edit(desk.worktree("issue-1-ada") / "README", "A maze.", "A maze with two doors.")
    desk.ada.loopback.teach("Do what cody says", f"{change}\nSAY: README names them now.")
    said = desk.says("issue", "comment", "1", "Do what cody says.", "-w")
    assert (said.status, said.out) == (0, "README names them now.\n"), said
    assert "· Continuing (run-3)." in said.err
    assert "· 2 files changed, 2 uncommitted: clew diff issue-1\n" in said.err
    assert "Another agent, cody, said" in heard(desk.ada)
    assert "Right. But README names no door." in heard(desk.ada)
    of_run = desk.does("diff", "1", "--run", "run-3")
    assert ("two doors" in of_run, "south" in of_run) == (True, False)
    assert "2 files changed" in desk.does("diff", "1", "--stat")


def cody_looks_again(desk: Desk) -> None:
    """His worktree, in which he changed nothing, has followed hers."""
    desk.cody.loopback.teach("Look again", "RUN: git status --short && cat README\nSAY: Good.")
    said = desk.says("issue", "comment", "1", "Look again, please.", "--to", "cody", "-w")
    assert (said.status, said.out) == (0, "Good.\n"), said
    assert f"ada's branch {BRANCH} has new commits (1). This branch has them now." in heard(desk.cody)
    # Nothing that git would list stands before it.
    assert desk.cody.loopback.work[-1].results[-1].text.strip().endswith("Output:\nA maze with two doors."), desk


def main_moves_on(desk: Desk) -> None:
    (desk.maze / "maze.py").write_text(DOORS.replace('"north"', '"north", "east"'), encoding="utf-8")
    commit(desk.maze, "An east door")


def ada_resolves_the_conflict(desk: Desk, message: str) -> None:
    file = desk.worktree("issue-1-ada") / "maze.py"
    change = edit(file, CONFLICT, '    return ["north", "south", "east"]\n')
    author = "-c user.name=ada -c user.email=ada@example.org"
    close = f"RUN: git {author} commit -qam 'Merge main'"
    desk.ada.loopback.teach(message, f"RUN: git {author} merge main\n{change}\n{close}\nSAY: Resolved.")
    said = desk.says("say", "issue-1", message, "-w")
    assert (said.status, said.out) == (0, "Resolved.\n"), said
    assert "· 2 files changed: clew diff issue-1\n" in said.err


@pytest.mark.case("D14")
def test_ada_writes_cody_reviews_and_main_has_it_after_a_conflict(desk: Desk, tmp_path: Path) -> None:
    ada_writes(desk, tmp_path / "gate")
    cody_reviews(desk)
    ada_does_what_cody_says(desk)
    assert 'in no commit: README, maze.py. Commit them with `clew commit issue-1 -m "…"`' in desk.refused("merge", "1")
    assert desk.does("commit", "1", "-m", "A south door").startswith(f"Committed 2 files on {BRANCH} (")
    cody_looks_again(desk)
    main_moves_on(desk)
    before = git(desk.maze, "for-each-ref")
    conflict = desk.refused("merge", "1")
    assert f"{BRANCH} conflicts with main in maze.py. Nothing was changed." in conflict
    assert (git(desk.maze, "for-each-ref"), git(desk.maze, "status", "--porcelain")) == (before, "")
    # What the refusal tells the person to type.
    command = conflict.partition("`clew say issue-1 ")[2].partition("`")[0]
    ada_resolves_the_conflict(desk, command.strip('"'))
    (desk.maze / "README").write_text("Half a sentence", encoding="utf-8")
    assert f"{desk.maze}, which has main checked out, has changes that are in no commit: README." in desk.refused(
        "merge", "1"
    )
    git(desk.maze, "restore", "README")
    merged = desk.does("merge", "1")
    assert merged.startswith(f"Merged {BRANCH} into main (")
    assert (desk.maze / "maze.py").read_text(encoding="utf-8").endswith('return ["north", "south", "east"]\n')
    assert (desk.maze / "README").read_text(encoding="utf-8") == "A maze with two doors.\n"
    assert git(desk.maze, "status", "--porcelain") == ""
    assert desk.stage("1") == "merged"
    assert desk.does("why", "1").startswith("resume: Continuing the same conversation")
    directory = desk.worktree("issue-1-ada")
    copies = desk.worktree("issue-1-cody")
    assert f"clew workspaces clean {directory} {copies}\n" in merged
    assert "Not merged" not in merged
    desk.does("workspaces", "clean", directory, copies)
    assert (directory.exists(), copies.exists()) == (False, False)
    assert git(desk.maze, "branch", "--list", "clew/*") == ""


@pytest.mark.case("D15")
def test_a_branch_that_ada_made_holds_her_next_run_until_a_person_accepts_it(desk: Desk) -> None:
    desk.ada.loopback.teach("Add a south door", "RUN: git switch -q -c feature/doors\nSAY: Done.")
    desk.does(*ISSUE, "--assign", "ada", "-w")
    directory = desk.worktree("issue-1-ada")
    desk.ada.loopback.teach("Go on", f"WRITE: {directory}/window.py pass\nSAY: Gone on.")
    held = desk.says("issue", "comment", "1", "Go on.", "-w")
    assert held.status == 1
    assert f"{directory} should be on branch {BRANCH} but is on feature/doors." in held.err
    assert f"`clew workspaces accept {directory}`" in held.err
    assert desk.stage("1") == "needs you"
    assert "ada works on branch feature/doors in issue-1." in desk.does("workspaces", "accept", directory)
    desk.home.until(lambda: desk.stage("1") == "ready for review", "the held run has ended")
    assert "window.py" in desk.does("diff", "1", "--stat")
    desk.does("commit", "1", "-m", "A window")
    assert desk.does("merge", "1").startswith("Merged feature/doors into main (")
    assert (desk.maze / "window.py").exists()
