"""From done to merged on the command line, with a real server, real repositories and the guide agent."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.kit import Said, environment, here
from tests.cli.terminal import PATIENCE, terminal
from tests.cli.test_end_to_end import done, latest, up
from tests.workspaces.kit import commit, git, repository

# One server for all of them.
pytestmark = pytest.mark.xdist_group("work")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("clew") / "data"
    with up(place):
        for name in ("ada", "cody"):
            done(place, "agent", "add", name, "--provider", "guide", "--mode", "full")
        yield place


@dataclass(frozen=True)
class Desk:
    """A person at a project of their own. The commands run in this process, which is faster."""

    data: Path
    project: Path
    capfd: pytest.CaptureFixture[str]

    def open(self, title: str, body: str, agent: str = "ada") -> str:
        """An issue that the agent has worked on."""
        new = ("issue", "new", title, "--body", body, "--project", self.project.name, "--assign", agent)
        said = self.says(*new, "-w")
        assert said.status == 0, said
        return said.out.removeprefix("Opened ").split(";", 1)[0]

    def says(self, *words: object) -> Said:
        return here(self.capfd, *words)

    def does(self, *words: object) -> str:
        said = self.says(*words)
        assert said.status == 0, said
        return said.out

    def lane(self, ref: str, agent: str = "ada") -> dict[str, object]:
        page = json.loads(self.does("thread", "show", ref, "--json"))
        return next(lane for lane in page["lanes"] if lane["agent"] == agent)

    def worktree(self, ref: str, agent: str = "ada") -> Path:
        return Path(str(self.lane(ref, agent)["directory"]))


@pytest.fixture
def desk(
    data: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Desk:
    for name, value in environment(CLEW_DATA=str(data)).items():
        monkeypatch.setenv(name, value)
    project = repository(tmp_path / f"p{abs(hash(request.node.name)) % 10**8}")
    desk = Desk(data, project, capfd)
    desk.does("project", "add", project.name, project)
    return desk


def test_the_end_of_a_turn_says_what_changed_and_diff_shows_it(desk: Desk) -> None:
    ref = desk.open("Login page", "WRITE: notes.txt hello")
    said = desk.says("issue", "comment", ref, "WRITE: more.txt hi", "-w")
    assert f"· 2 files changed, 2 uncommitted: clew diff {ref}\n" in said.err
    assert f"2 files changed, 2 uncommitted: clew diff {ref}" in desk.does("thread", "show", ref)
    shown = desk.does("diff", ref)
    assert "+hello" in shown
    assert "+hi" in shown
    assert "\x1b" not in shown
    assert "+hello" not in desk.does("diff", ref.removeprefix("issue-"), "--", "more.txt")
    assert "2 files changed" in desk.does("diff", ref, "--stat")
    of_run = desk.does("diff", ref, "--run", latest(desk.data, ref))
    assert "+hi" in of_run
    assert "+hello" not in of_run
    assert desk.does("diff", json.loads(desk.does("runs", "show", ref, "--json"))["ref"]) == of_run
    assert json.loads(desk.does("diff", ref, "--json"))["work"]["words"] == "2 files changed, 2 uncommitted"


def test_diff_says_what_there_is_instead(desk: Desk) -> None:
    ref = desk.open("Elsewhere", "WRITE: notes.txt hello")
    other = desk.says("diff", ref, "--agent", "cody")
    assert (other.status, "Agents that have one: ada." in other.err) == (1, True)
    lone = json.loads(desk.does("issue", "new", "Alone", "--json"))["thread"]["ref"]
    assert "has no project" in desk.says("diff", lone).err
    another = desk.open("Another", "WRITE: x.txt y")
    wrong = desk.says("diff", ref, "--run", latest(desk.data, another))
    assert (wrong.status, f"is ada's in {another}." in wrong.err) == (1, True)


def test_a_chat_without_a_title_is_given_a_project(desk: Desk) -> None:
    desk.does("chat", "ada", "--once", "hello", "--no-project")
    chat = json.loads(desk.does("threads", "--json"))
    ref = next(each["ref"] for each in chat if each["kind"] == "chat")
    said = desk.does("issue", "edit", ref, "--project", desk.project.name)
    assert f"Changed {ref} ({desk.project.name}).\n" in said


def test_diff_of_work_before_the_project_was_given_says_so(desk: Desk) -> None:
    said = desk.says("issue", "new", "Early", "--body", "How are you?", "--assign", "ada", "-w")
    ref = said.out.removeprefix("Opened ").split(";", 1)[0]
    desk.does("issue", "edit", ref, "--project", desk.project.name)
    refused = desk.says("diff", ref).err
    assert f"ada has not worked in {ref} since it has the project {desk.project.name}." in refused
    assert f"Its next run gets a branch: `clew say {ref} TEXT`." in refused


def test_an_agent_whose_issues_are_merged_can_be_removed(desk: Desk) -> None:
    desk.does("agent", "add", "dot", "--provider", "guide", "--mode", "full")
    ref = desk.open("Her last", "WRITE: notes.txt hello", "dot")
    desk.does("commit", ref, "-m", "Done")
    assert f"dot has open issues: {ref}." in desk.says("agent", "remove", "dot").err
    desk.does("merge", ref)
    desk.does("agent", "remove", "dot")


def test_on_a_terminal_a_diff_has_colours_and_a_pager(desk: Desk, tmp_path: Path) -> None:
    ref = desk.open("Colours", "WRITE: notes.txt hello")
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED\ncat\n")
    pager.chmod(0o755)
    with terminal("diff", ref, CLEW_DATA=str(desk.data), PAGER=str(pager), NO_COLOR="") as screen:
        screen.until("\x1b[32m+hello")
        assert screen.ended() == 0
        assert "PAGED" not in screen.seen, "it fits on the screen"
    (desk.worktree(ref) / "long.txt").write_text("line\n" * 200)
    with terminal("diff", ref, CLEW_DATA=str(desk.data), PAGER=str(pager), NO_COLOR="") as screen:
        screen.until("PAGED")
        screen.until("+line")


def stage(desk: Desk, ref: str) -> str:
    return str(json.loads(desk.does("thread", "show", ref, "--json"))["thread"]["stage"])


def test_an_issue_goes_from_done_to_merged_with_a_conflict_on_the_way(desk: Desk) -> None:
    ref = desk.open("Login page", "WRITE: a.txt of ada")
    assert stage(desk, ref) == "ready for review"
    refused = desk.says("merge", ref)
    assert refused.status == 1
    assert f'in no commit: a.txt. Commit them with `clew commit {ref} -m "…"`' in refused.err
    assert desk.does("commit", ref, "-m", "Show the form").startswith(f"Committed 1 file on clew/{ref}-login-page (")
    (desk.project / "a.txt").write_text("of a person\n")
    commit(desk.project, "meanwhile")
    conflict = desk.says("merge", ref)
    assert conflict.status == 1
    assert f"clew/{ref}-login-page conflicts with main in a.txt. Nothing was changed." in conflict.err
    assert f"clew checkout {ref}" in conflict.err
    assert git(desk.project, "status", "--porcelain") == ""
    # A person resolves it in the agent's worktree.
    directory = Path(desk.does("checkout", ref).strip())
    git(directory, "merge", "--quiet", "main", ok=False)
    (directory / "a.txt").write_text("of both\n")
    desk.does("commit", ref, "-m", "Resolve")
    desk.does("checkout", ref, "--done")
    said = desk.does("merge", ref)
    assert said.startswith(f"Merged clew/{ref}-login-page into main (")
    assert f"clew workspaces clean {directory}" in said
    assert (desk.project / "a.txt").read_text() == "of both\n"
    assert stage(desk, ref) == "merged"
    assert "merged into main" in desk.does("issue", "show", ref)
    assert "merged" in desk.does("issue", "list", "--state", "all")
    assert "Nothing to merge" in desk.says("merge", ref).err
    desk.does("workspaces", "clean", directory)
    assert not directory.exists()
    assert git(desk.project, "branch", "--list", "clew/*") == ""


def test_wakes_wait_while_a_person_works_in_the_worktree_and_say_why(desk: Desk) -> None:
    ref = desk.open("By hand", "WRITE: notes.txt hello")
    directory = desk.does("checkout", ref).strip()
    waits = desk.says("issue", "comment", ref, "WRITE: more.txt hi", "-w")
    assert waits.status == 1
    assert f"works in {directory} by hand." in waits.err
    assert f"clew checkout {ref} --agent ada --done" in waits.err
    assert "clew retry" not in waits.err
    assert stage(desk, ref) == "needs you"
    assert "works there" in desk.does("thread", "show", ref)
    assert not (Path(directory) / "more.txt").exists()
    assert f"ada has {directory} again." in desk.does("checkout", ref, "--done")
    assert "+hi" in _eventually(desk, ref, "+hi")
    assert desk.says("checkout", ref, "--done").status == 1


def _eventually(desk: Desk, ref: str, words: str) -> str:
    limit = time.monotonic() + PATIENCE
    while words not in (shown := desk.does("diff", ref)) and time.monotonic() < limit:
        time.sleep(0.2)
    return shown


def test_a_merge_while_the_agent_waits_for_an_answer_names_the_answer(desk: Desk) -> None:
    desk.does("agent", "add", "eve", "--provider", "guide", "--mode", "ask")
    ref = desk.open("Asked", "hello", "eve")
    desk.does("say", ref, "RUN: ls")
    limit = time.monotonic() + PATIENCE
    while stage(desk, ref) != "needs you" and time.monotonic() < limit:
        time.sleep(0.2)
    for command in ("merge", "checkout"):
        refused = desk.says(command, ref)
        assert f"eve waits for your answer in {ref}. Answer it (`clew approvals`)" in refused.err, refused
    desk.does("cancel", ref)


def test_closing_an_issue_says_what_is_not_merged_and_clean_spares_open_ones(desk: Desk) -> None:
    ref = desk.open("Left", "WRITE: notes.txt hello")
    said = desk.does("issue", "close", ref)
    assert f"Not merged: 1 file changed, 1 uncommitted on clew/{ref}-left, which is kept. Commit with" in said
    assert f'`clew commit {ref} --agent ada -m "…"`, then merge with `clew merge {ref} --agent ada`.' in said
    desk.does("issue", "reopen", ref)
    desk.does("commit", ref, "-m", "Done")
    closed = desk.does("issue", "close", ref)
    assert f"Not merged: 1 file changed on clew/{ref}-left, which is kept. Merge with" in closed
    untouched = desk.open("Only asked", "How are you?")
    where = desk.worktree(untouched)
    assert f"{untouched} is open" in desk.does("workspaces", "clean", "--dry-run")
    assert "would be removed" in desk.does("workspaces", "clean", "--dry-run", "--open")
    assert where.is_dir()


@pytest.mark.case("D14")
def test_ada_writes_and_cody_reviews_by_two_commands(desk: Desk) -> None:
    ref = desk.open("Login page", "How are you?")
    (desk.worktree(ref) / "notes.txt").write_text("hello")
    review = desk.says("issue", "comment", ref, "RUN: cat notes.txt; git branch --show-current", "--to", "cody", "-w")
    assert review.status == 0, review
    assert "TOOL SAID: hello" in review.out
    assert f"clew/{ref}-login-page-cody" in review.out
    assert "begins with the work of another: ada's branch" in review.err
    prompts = desk.does("logs", latest(desk.data, ref), "--full")
    assert f"ada's branch clew/{ref}-login-page" in prompts
    desk.does("commit", ref, "-m", "Done")
    merged = desk.does("merge", ref)
    assert "Not merged" not in merged, "the reviewer has copies, and nothing else"
    assert f"clew workspaces clean {desk.worktree(ref)} {desk.worktree(ref, 'cody')}\n" in merged
    assert stage(desk, ref) == "merged"
    # What the reviewer sees is a copy: ada's worktree has what it had.
    assert (desk.worktree(ref) / "notes.txt").read_text() == "hello"


@pytest.mark.case("D14")
def test_later_work_of_another_agent_is_named_and_a_merge_asks_whose_is_meant(desk: Desk) -> None:
    ref = desk.open("Two hands", "WRITE: a.txt of ada")
    assert desk.says("say", ref, "WRITE: b.txt of cody", "--to", "cody", "-w").status == 0
    later = f"cody worked in {ref} after ada, on clew/{ref}-two-hands-cody, and ada's branch does not have that work"
    shown = desk.says("diff", ref)
    assert f"This is ada's work. {later}: `clew diff {ref} --agent cody`." in shown.err
    assert "+of ada" in shown.out
    assert "of cody" not in shown.out
    done = desk.says("commit", ref, "-m", "Of ada")
    assert f"This is ada's work. {later}: `clew commit {ref} --agent cody" in done.err
    for command in ("merge", "pr"):
        refused = desk.says(command, ref)
        choice = f"`clew {command} {ref} --agent cody` or `clew {command} {ref} --agent ada`"
        assert (refused.status, f"{later}. Choose whose: {choice}." in refused.err) == (1, True), refused
    assert "cody worked" not in desk.says("diff", ref, "--agent", "ada").err
    # Every remedy is about the agent that was named.
    refused = desk.says("merge", ref, "--agent", "cody")
    assert f'`clew commit {ref} --agent cody -m "…"`' in refused.err
    desk.does("commit", ref, "--agent", "cody", "-m", "Of cody")
    closed = desk.says("checkout", ref, "--agent", "cody")
    assert f"until `clew checkout {ref} --agent cody --done`." in closed.err
    desk.does("checkout", ref, "--agent", "cody", "--done")
    none = desk.says("checkout", ref, "--agent", "cody", "--done")
    assert f"`clew checkout {ref} --agent cody`" in none.err
    (desk.project / "b.txt").write_text("of a person\n")
    commit(desk.project, "meanwhile")
    conflict = desk.says("merge", ref, "--agent", "cody")
    assert f'`clew say {ref} --to cody "Merge main' in conflict.err
    assert f"`clew checkout {ref} --agent cody`" in conflict.err
    # Ada's branch gets all of it, and there is nothing left to choose.
    git(desk.worktree(ref), "merge", "--quiet", f"clew/{ref}-two-hands-cody")
    git(desk.worktree(ref), "merge", "--quiet", "-X", "ours", "main")
    assert desk.does("merge", ref).startswith(f"Merged clew/{ref}-two-hands into main (")


@pytest.mark.case("D14")
def test_from_chooses_where_a_second_agent_begins(desk: Desk) -> None:
    ref = desk.open("Start over", "How are you?")
    (desk.worktree(ref) / "notes.txt").write_text("hello")
    said = desk.says("issue", "assign", ref, "cody", "--from", "base", "-w")
    assert said.status == 0, said
    assert not (desk.worktree(ref, "cody") / "notes.txt").exists()
    again = desk.says("issue", "comment", ref, "go on", "--to", "cody", "--from", "ada")
    assert (again.status, "works in" in again.err) == (1, True)
    assert desk.says("issue", "comment", ref, "go on", "--to", "guide", "--from", "no such").status == 1
    other = desk.open("By say", "How are you?")
    (desk.worktree(other) / "notes.txt").write_text("hello")
    assert desk.says("say", other, "Look.", "--to", "cody", "--from", "base", "-w").status == 0
    assert not (desk.worktree(other, "cody") / "notes.txt").exists()


@pytest.mark.case("D15")
def test_a_branch_that_an_agent_made_is_accepted_by_a_command(desk: Desk) -> None:
    ref = desk.open("Own branch", "RUN: git switch -q -c feature/mine")
    held = desk.says("issue", "comment", ref, "WRITE: notes.txt hello", "-w")
    assert held.status == 1
    assert f"should be on branch clew/{ref}-own-branch but is on feature/mine." in held.err
    directory = desk.worktree(ref)
    assert f"clew workspaces accept {directory}" in held.err
    listed = json.loads(desk.does("workspaces", "--json"))
    assert any(f"on feature/mine instead of clew/{ref}-own-branch" in each["note"] for each in listed)
    said = desk.does("workspaces", "accept", ref)
    assert said == f"ada works on branch feature/mine in {ref}. The branch clew/{ref}-own-branch is kept.\n"
    assert "+hello" in _eventually(desk, ref, "+hello")
    assert desk.lane(ref)["branch"] == "feature/mine"


def test_a_branch_of_that_name_is_left_alone_and_the_server_knows_the_other_name(desk: Desk) -> None:
    newest = json.loads(desk.does("issue", "list", "--state", "all", "--limit", "1", "--json"))
    number = int(newest[0]["ref"].removeprefix("issue-")) + 1 if newest else 1
    git(desk.project, "branch", f"clew/issue-{number}-taken")
    ref = desk.open("Taken", "WRITE: notes.txt hello")
    assert desk.lane(ref)["branch"] == f"clew/issue-{number}-taken-2"


def test_pr_prints_how_to_open_one(desk: Desk) -> None:
    ref = desk.open("Login page", "WRITE: notes.txt hello")
    desk.does("commit", ref, "-m", "Show the form")
    assert "no remote" in desk.says("pr", ref).err
    git(desk.project, "remote", "add", "origin", "git@gitlab.com:acme/app.git")
    said = desk.does("pr", ref)
    assert f"push -u origin clew/{ref}-login-page" in said
    assert "https://gitlab.com/acme/app/-/merge_requests/new?" in said
