"""A directory, equal to itself however its path is spelled."""

import posixpath
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Directory:
    """Equal when it is the same place. The machine that has the disk resolves links (`real`); the rest is done here."""

    path: str = field(compare=False)
    real: str | None = field(default=None, compare=False)
    place: str = field(init=False)

    def __post_init__(self) -> None:
        known = self.path if self.real is None else self.real
        if not known.startswith("/"):
            raise ValueError(f"a directory must be an absolute path, and {known!r} is not: give the whole path")
        # POSIX keeps exactly two leading slashes apart; no system Clew runs on does.
        object.__setattr__(self, "place", "/" + posixpath.normpath(known).lstrip("/"))

    def __str__(self) -> str:
        return self.path
