"""Markers and records: a marker in a worktree's git directory names its lane; a record below the root, what Clew made.

`git status` shows neither, and `git add` cannot pick them up.
"""

import json
import os
import secrets
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from clew.kernel import Instant, LaneId, ProjectId, WorkspaceId

NAME = "clew.json"
VERSION = 1


class Unreadable(ValueError):
    """A file of Clew's that does not hold what Clew wrote."""


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A value that is stored as one small JSON file."""

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """None when there is none."""
        try:
            text = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return cls.parse(text, path)

    @classmethod
    def parse(cls, text: bytes, path: Path) -> Self:
        try:
            found: dict[str, Any] = json.loads(text)
            return cls(**{each.name: found[each.name] for each in fields(cls) if each.name in found})
        except (ValueError, TypeError, AttributeError, KeyError) as fault:
            raise Unreadable(f"{path} cannot be read") from fault

    @property
    def written(self) -> bytes:
        return json.dumps({"version": VERSION, **asdict(self)}, sort_keys=True).encode()

    def write(self, path: Path) -> None:
        write_whole(path, self.written)


@dataclass(frozen=True, slots=True)
class Marker(JsonFile):
    """Whose a worktree is. Written last: a worktree with a marker is complete."""

    workspace: WorkspaceId
    lane: LaneId
    project: ProjectId | None = None


@dataclass(frozen=True, slots=True)
class Record(JsonFile):
    """What Clew makes, or made. Written first. `start` is the commit that its branch started from; `base`, the branch
    that had it."""

    workspace: WorkspaceId
    lane: LaneId
    directory: str
    project: ProjectId | None = None
    branch: str = ""
    common: str = ""
    base: str = ""
    start: str = ""
    # When it was first complete; None before that.
    ready_at: Instant | None = None
    # That it was made again and what was lost, in words, until the server has recorded them. `remaking` has the words
    # until it is complete: a directory that was only away and comes back was not made again.
    remade: str = ""
    remaking: str = ""
    # The other lane's work that its agent knows of: the commit of the branch that it began from, and the files there.
    followed: str = ""
    # The same of the files that Clew last put here from there. While it is as they are, its agent has changed nothing.
    carried: str = ""


@dataclass(frozen=True, slots=True)
class Use(JsonFile):
    """The lane that uses a directory."""

    lane: LaneId
    who: str
    directory: str
    since: Instant
    workspace: WorkspaceId | None = None
    project: ProjectId | None = None


def write_whole(path: Path, text: bytes) -> None:
    """Write a file atomically: it is on the disk (fsync) before it replaces the old one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
