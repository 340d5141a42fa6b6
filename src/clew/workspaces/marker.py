"""Markers and records: whose a worktree is, told in its own git directory; what Clew once made, told below its root.

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
    """A file of ours that does not hold what we wrote."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A value kept as one small file of JSON."""

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
class Marker(Kept):
    """It is written last: a worktree that bears one is finished."""

    workspace: WorkspaceId
    lane: LaneId
    project: ProjectId | None = None


@dataclass(frozen=True, slots=True)
class Record(Kept):
    """It is written first. `start` is the commit its branch began with, `base` the branch that was on."""

    workspace: WorkspaceId
    lane: LaneId
    directory: str
    project: ProjectId | None = None
    branch: str = ""
    common: str = ""
    base: str = ""
    start: str = ""
    # When it was first finished; None while that was never so.
    ready_at: Instant | None = None
    # That it was made again, and what was lost: in words, until somebody else keeps them. `remaking` are the same words
    # while it is not finished: what only was away and comes back was not made again.
    remade: str = ""
    remaking: str = ""


@dataclass(frozen=True, slots=True)
class Use(Kept):
    """Who works in a directory."""

    lane: LaneId
    who: str
    directory: str
    since: Instant
    workspace: WorkspaceId | None = None
    project: ProjectId | None = None


def write_whole(path: Path, text: bytes) -> None:
    """Whole or not at all, and on the disk before it counts."""
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
