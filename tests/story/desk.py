"""A person's desk: their repository, and two agents, ada (Claude Code) and cody (Codex), each with a model of its own.
Everything is typed at the command line."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.kit import Said, clew
from tests.providers.agents import Agents
from tests.providers.rig import Rig
from tests.story.kit import House, repository, rig_of

DOORS = 'def doors() -> list[str]:\n    return ["north"]\n'


@dataclass(frozen=True)
class Desk:
    home: House
    maze: Path
    ada: Rig
    cody: Rig

    def says(self, *words: object) -> Said:
        return clew(*words, CLEW_DATA=str(self.home.data))

    def does(self, *words: object) -> str:
        said = self.says(*words)
        assert said.status == 0, said
        return said.out

    def refused(self, *words: object) -> str:
        said = self.says(*words)
        assert (said.status, said.out) == (1, ""), said
        return said.err

    def hire(self, name: str, rig: Rig, mode: str) -> None:
        settings = rig.settings("a")
        homes = [each for pair in settings.home.items() for each in ("--home", "=".join(pair))]
        given = [each for pair in settings.environment.items() for each in ("--env", "=".join(pair))]
        self.does("agent", "add", name, "--provider", rig.name, "--mode", mode, *homes, *given, "--", *settings.program)

    def stage(self, ref: str) -> str:
        return str(json.loads(self.does("issue", "show", ref, "--json"))["thread"]["stage"])

    def worktree(self, name: str) -> Path:
        return self.home.data / "workspaces" / "maze" / name


@pytest.fixture
def desk(home: House, tmp_path: Path, agents: Agents) -> Iterator[Desk]:  # noqa: ARG001 - installs them
    maze = repository(tmp_path.resolve() / "maze")
    (maze / "maze.py").write_text(DOORS, encoding="utf-8")
    commit(maze, "One door")
    rigs = [rig_of(name, (tmp_path / name).resolve()) for name in ("claude", "codex")]
    made = Desk(home, maze, *rigs)
    made.hire("ada", made.ada, "full")
    made.hire("cody", made.cody, "read")
    made.does("project", "add", "maze", maze)
    yield made
    for rig in rigs:
        rig.close()


def git(at: Path, *words: str) -> str:
    named = ("-c", "user.name=a person", "-c", "user.email=person@example.org")
    return subprocess.run(["git", "-C", at, *named, *words], check=True, capture_output=True, text=True).stdout


def commit(at: Path, message: str) -> None:
    git(at, "add", "--all")
    git(at, "commit", "--quiet", "-m", message)


def edit(file: Path, old: str, new: str) -> str:
    """Lines by which a model changes a file with Claude Code's own tools."""
    calls = (
        ("Read", {"file_path": str(file)}),
        ("Edit", {"file_path": str(file), "old_string": old, "new_string": new}),
    )
    return "\n".join(f"CALL: {tool} {json.dumps(arguments)}" for tool, arguments in calls)


def heard(rig: Rig) -> str:
    """The prompt that the model got last."""
    return rig.loopback.work[-1].prompts[-1]


BRANCH = "clew/issue-1-the-maze-has-no-way-out"
ISSUE = ("issue", "new", "The maze has no way out", "--body", "Add a south door.", "--project", "maze")
