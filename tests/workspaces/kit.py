"""Repositories to work on, lanes that want a place in them, and git as a person would use it."""

import asyncio
import os
import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from clew.kernel import Directory, LaneId, MachineId, ProjectId, Workspace, WorkspaceId, WorkspaceKind
from clew.ports.workspaces import Ensured, Held, PlaceWanted, ProjectSource, Setup, SourceKind
from clew.workspaces import GitWorkspaces

T = TypeVar("T")

PROJECT = ProjectId("pr_1")
MACHINE = MachineId("m_1")

# Nothing of the person who runs the tests, and a name for their commits.
PERSON = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "P",
    "GIT_AUTHOR_EMAIL": "p@example.invalid",
    "GIT_COMMITTER_NAME": "P",
    "GIT_COMMITTER_EMAIL": "p@example.invalid",
    "LC_ALL": "C",
}


def run(scene: Coroutine[Any, Any, T], seconds: float = 60.0) -> T:
    async def within() -> T:
        async with asyncio.timeout(seconds):
            return await scene

    return asyncio.run(within())


def git(at: Path, *arguments: str, ok: bool = True) -> str:
    command = ["git", "-c", "protocol.file.allow=always", "-C", str(at), *arguments]
    done = subprocess.run(command, env=PERSON, capture_output=True, check=False)
    assert done.returncode == 0 or not ok, done.stderr.decode(errors="replace")
    return os.fsdecode(done.stdout).rstrip("\n")


def repository(at: Path, branch: str = "main") -> Path:
    """A repository with two files in one commit."""
    at.mkdir(parents=True)
    git(at, "init", "--quiet", f"--initial-branch={branch}")
    (at / "a.txt").write_text("a\n")
    (at / "sub").mkdir()
    (at / "sub" / "b.txt").write_text("b\n")
    (at / ".gitignore").write_text("ignored/\n.env\n")
    commit(at, "first")
    return at


def commit(at: Path, message: str) -> str:
    git(at, "add", "-A")
    git(at, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(at, "rev-parse", "HEAD")


class Scene:
    """A root, a project and its lanes."""

    def __init__(self, place: Path, source: str | None = None, kind: SourceKind = SourceKind.REPOSITORY) -> None:
        self.root = place / "root"
        self.project = place / "project"
        if source is None:
            repository(self.project)
        self.source = ProjectSource(PROJECT, source or str(self.project), kind)
        self.workspaces = GitWorkspaces(self.root)

    def directory(self, lane: str = "ln_1") -> Path:
        return self.root / PROJECT / lane

    def wanted(self, lane: str = "ln_1", source: ProjectSource | None = None, **changes: Any) -> PlaceWanted:
        workspace = Workspace(
            WorkspaceId(f"ws_{lane}"),
            WorkspaceKind.WORKTREE,
            Directory(str(changes.get("directory", self.directory(lane)))),
            PROJECT,
            MACHINE,
            changes.get("branch", f"clew/{lane}"),
        )
        return PlaceWanted(LaneId(lane), workspace, source or self.source)

    def with_setup(self, *commands: str, seconds: float = 30.0, **environment: str) -> ProjectSource:
        setup = Setup(commands, {"PATH": os.environ["PATH"], **environment}, seconds)
        return ProjectSource(PROJECT, self.source.source, self.source.kind, setup=setup)

    def ensure(self, lane: str = "ln_1", source: ProjectSource | None = None, **changes: Any) -> Ensured | Held:
        wanted = self.wanted(lane, source, **changes)
        return run(_ensure_and_release(self.workspaces, wanted))

    def ready(self, lane: str = "ln_1", source: ProjectSource | None = None) -> Ensured:
        result = self.ensure(lane, source)
        assert isinstance(result, Ensured), result
        return result

    def held(self, lane: str = "ln_1", source: ProjectSource | None = None, **changes: Any) -> Held:
        result = self.ensure(lane, source, **changes)
        assert isinstance(result, Held), result
        return result

    def worktrees(self) -> list[str]:
        listing = git(self.project, "worktree", "list", "--porcelain")
        return [line.removeprefix("worktree ") for line in listing.splitlines() if line.startswith("worktree ")]


async def _ensure_and_release(workspaces: GitWorkspaces, wanted: PlaceWanted) -> Ensured | Held:
    result = await workspaces.ensure(wanted)
    await workspaces.release(wanted)
    return result


def plain(directory: Path, lane: str, who: str = "") -> PlaceWanted:
    workspace = Workspace(WorkspaceId(f"ws_{lane}"), WorkspaceKind.DIRECTORY, Directory(str(directory)), PROJECT)
    return PlaceWanted(LaneId(lane), workspace, who=who)


def home(directory: Path, lane: str = "ln_1") -> PlaceWanted:
    workspace = Workspace(WorkspaceId("ws_home"), WorkspaceKind.AGENT_HOME, Directory(str(directory)))
    return PlaceWanted(LaneId(lane), workspace)
