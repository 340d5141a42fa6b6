"""Where Clew keeps what below the machine's root. Nothing of it is in anybody's worktree or directory."""

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
        """What is made of private repositories is its user's alone."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.own.mkdir(exist_ok=True, mode=0o700)

    def record(self, workspace: WorkspaceId) -> Path:
        return self.own / "records" / f"{_named(workspace)}.json"

    @property
    def records(self) -> Path:
        return self.own / "records"

    def making(self, directory: Path) -> Path:
        """The lock of whoever looks at, makes or removes a directory."""
        return self.own / "locks" / f"{_key(directory)}.making"

    def use(self, directory: Path) -> Path:
        """Who works in a directory, and the lock that goes with them."""
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
        """On the same disk as the workspaces, so that one goes there in a single step."""
        return self.own / "trash"

    @property
    def kept(self) -> Path:
        return self.own / "kept"


def _key(directory: Path) -> str:
    return hashlib.sha256(bytes(resolved(directory))).hexdigest()[:32]


def _named(text: str) -> str:
    """A name made of an id; ids are plain, but nobody promises it."""
    if 0 < len(text) <= 100 and all(letter.isalnum() or letter in "_-" for letter in text) and text.isascii():
        return text
    return "x" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
