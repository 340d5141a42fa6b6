"""The files of Clew below the machine's root. None of them is in a worktree or in a directory of a person."""

import hashlib
from pathlib import Path

from clew.kernel import ProjectId, WorkspaceId
from clew.workspaces.paths import resolved

OWN = ".clew"
SOURCE = ".source"


class Layout:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.own = root / OWN

    def prepare(self) -> None:
        """For the user alone (0700): worktrees of private repositories are below it."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.own.mkdir(exist_ok=True, mode=0o700)

    def record(self, workspace: WorkspaceId) -> Path:
        return self.own / "records" / f"{_named(workspace)}.json"

    @property
    def records(self) -> Path:
        return self.own / "records"

    def making(self, directory: Path) -> Path:
        """The lock for inspecting, making or removing a directory."""
        return self.own / "locks" / f"{_key(directory)}.making"

    def use(self, directory: Path) -> Path:
        """The lane that uses a directory, and the lock on that."""
        return self.own / "locks" / f"{_key(directory)}.use"

    def cloning(self, project: ProjectId) -> Path:
        return self.own / "locks" / f"{_named(project)}.cloning"

    def setup_output(self, workspace: WorkspaceId) -> Path:
        return self.own / "setup" / f"{_named(workspace)}.log"

    def mirror(self, project: ProjectId) -> Path:
        """The clone of a project that comes from an address."""
        return self.root / _named(project) / SOURCE

    @property
    def ledger(self) -> Path:
        return self.own / "ledger"

    @property
    def trash(self) -> Path:
        """On the same disk as the workspaces, so that a rename moves one there."""
        return self.own / "trash"

    @property
    def kept(self) -> Path:
        return self.own / "kept"


def _key(directory: Path) -> str:
    return hashlib.sha256(bytes(resolved(directory))).hexdigest()[:32]


def _named(text: str) -> str:
    """A file name for an id. Ids are plain, but no type guarantees it."""
    if 0 < len(text) <= 100 and all(letter.isalnum() or letter in "_-" for letter in text) and text.isascii():
        return text
    return "x" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
