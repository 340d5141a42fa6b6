"""From done to merged on the command line, with a real server, real repositories and the guide agent."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.kit import Said
from tests.cli.terminal import terminal
from tests.cli.test_end_to_end import asked, done, latest, up
from tests.workspaces.kit import repository


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("clew") / "data"
    with up(place):
        for name in ("ada", "cody"):
            done(place, "agent", "add", name, "--provider", "guide", "--mode", "full")
        yield place


@dataclass(frozen=True)
class Desk:
    """A person at a project of their own."""

    data: Path
    project: Path

    def open(self, title: str, body: str, agent: str = "ada") -> str:
        """An issue that the agent has worked on."""
        new = ("issue", "new", title, "--body", body, "--project", self.project.name, "--assign", agent)
        said = self.says(*new, "-w")
        assert said.status == 0, said
        return said.out.removeprefix("Opened ").split(";", 1)[0]

    def says(self, *words: object) -> Said:
        return asked(self.data, *words)

    def does(self, *words: object) -> str:
        return done(self.data, *words)

    def lane(self, ref: str, agent: str = "ada") -> dict[str, object]:
        page = json.loads(self.does("thread", "show", ref, "--json"))
        return next(lane for lane in page["lanes"] if lane["agent"] == agent)

    def worktree(self, ref: str, agent: str = "ada") -> Path:
        return Path(str(self.lane(ref, agent)["directory"]))


@pytest.fixture
def desk(data: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Desk:
    project = repository(tmp_path / f"p{abs(hash(request.node.name)) % 10**8}")
    done(data, "project", "add", project.name, project)
    return Desk(data, project)


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
