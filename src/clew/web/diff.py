"""Unified diffs as git prints them, read into files, hunks and lines. Pure; nothing in a diff makes it fail."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)
_ESCAPE = re.compile(rb'\\(?:([0-7]{3})|([abtnvfr"\\]))')
_ESCAPED = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))
_NOTHING = "/dev/null"


class LineKind(StrEnum):
    """Of a line of a hunk. A note is git's own, as that there is no newline at the end."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    NOTE = "note"


_KINDS = {" ": LineKind.SAME, "+": LineKind.ADDED, "-": LineKind.REMOVED, "\\": LineKind.NOTE}


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`old` and `new` are its numbers in the file before and after, where it is in them."""

    kind: LineKind
    text: str
    old: int | None = None
    new: int | None = None

    @property
    def sign(self) -> str:
        match self.kind:
            case LineKind.ADDED:
                return "+"
            case LineKind.REMOVED:
                return "\N{MINUS SIGN}"
            case LineKind.SAME | LineKind.NOTE:
                return ""


@dataclass(frozen=True, slots=True)
class Hunk:
    old_start: int
    new_start: int
    within: str
    """What git says the hunk is in, as the line that begins a function."""
    lines: tuple[DiffLine, ...]


class Change(StrEnum):
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    COPIED = "copied"


@dataclass(frozen=True, slots=True)
class DiffFile:
    """`old` is None for a new file, `new` for a removed one. `whole` is False where the diff ended within a hunk."""

    old: str | None = None
    new: str | None = None
    change: Change = Change.CHANGED
    old_mode: str = ""
    new_mode: str = ""
    binary: bool = False
    hunks: tuple[Hunk, ...] = ()
    whole: bool = True
    added: int = field(init=False, default=0)
    removed: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        kinds = [line.kind for hunk in self.hunks for line in hunk.lines]
        object.__setattr__(self, "added", kinds.count(LineKind.ADDED))
        object.__setattr__(self, "removed", kinds.count(LineKind.REMOVED))

    @property
    def name(self) -> str:
        """As it is called now; a removed file, as it was called."""
        return (self.old if self.new is None else self.new) or ""

    @property
    def paths(self) -> tuple[str, ...]:
        """What a diff of this file alone has to be asked for."""
        return tuple(dict.fromkeys(path for path in (self.new, self.old) if path))

    @property
    def lines(self) -> int:
        return sum(len(hunk.lines) for hunk in self.hunks)


def files_of(text: str) -> tuple[DiffFile, ...]:
    """In git's order. What stands before the first file is none of git's diff, and left out."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    # Within a hunk every line has a sign before it, so no content can look like the start of a file.
    starts = [index for index, line in enumerate(lines) if line.startswith("diff --git ")]
    return tuple(_file(lines[start:end]) for start, end in pairwise([*starts, len(lines)]))


def _file(lines: list[str]) -> DiffFile:
    same = _same_name(lines[0].removeprefix("diff --git "))
    found = DiffFile(same, same)
    at = 1
    while at < len(lines) and not lines[at].startswith("@@ "):
        found = _headed(found, lines[at])
        at += 1
    hunks = tuple(_hunks(lines[at:]))
    complete = all(whole for _, whole in hunks)
    return replace(found, hunks=tuple(hunk for hunk, _ in hunks), whole=complete)


def _headed(file: DiffFile, line: str) -> DiffFile:
    """With what one line of its head says."""
    for word, read in _HEADS.items():
        if line.startswith(word):
            return read(file, line.removeprefix(word))
    return file


def _old(file: DiffFile, text: str) -> DiffFile:
    name = _side(text, "a/")
    return file if name is None else replace(file, old=name)


def _new(file: DiffFile, text: str) -> DiffFile:
    name = _side(text, "b/")
    return file if name is None else replace(file, new=name)


_HEADS: Mapping[str, Callable[[DiffFile, str], DiffFile]] = {
    "--- ": _old,
    "+++ ": _new,
    "rename from ": lambda file, text: replace(file, old=unquoted(text), change=Change.RENAMED),
    "rename to ": lambda file, text: replace(file, new=unquoted(text), change=Change.RENAMED),
    "copy from ": lambda file, text: replace(file, old=unquoted(text), change=Change.COPIED),
    "copy to ": lambda file, text: replace(file, new=unquoted(text), change=Change.COPIED),
    "new file mode ": lambda file, text: replace(file, old=None, new_mode=text, change=Change.ADDED),
    "deleted file mode ": lambda file, text: replace(file, new=None, old_mode=text, change=Change.REMOVED),
    "old mode ": lambda file, text: replace(file, old_mode=text),
    "new mode ": lambda file, text: replace(file, new_mode=text),
    "Binary files ": lambda file, _: replace(file, binary=True),
    "GIT binary patch": lambda file, _: replace(file, binary=True),
}


def _side(text: str, prefix: str) -> str | None:
    """The name in a line with --- or +++; None for no file. After a name with spaces git writes a tab."""
    name = unquoted(text.removesuffix("\t"))
    return None if name == _NOTHING else name.removeprefix(prefix)


def _same_name(both: str) -> str | None:
    """The name in `a/NAME b/NAME`. Git says elsewhere what two different names are."""
    middle = len(both) // 2
    one, two = both[:middle], both[middle + 1 :]
    if both[middle : middle + 1] != " ":
        return None
    old, new = unquoted(one).removeprefix("a/"), unquoted(two).removeprefix("b/")
    return new if old == new else None


def unquoted(name: str) -> str:
    """A name as git quotes it if it has signs that are not plain: in quotation marks, with escapes of bytes."""
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    inner = name[1:-1].encode("utf-8", "surrogatepass")
    plain = _ESCAPE.sub(_byte, inner)
    return plain.decode("utf-8", "replace")


def _byte(found: re.Match[bytes]) -> bytes:
    octal, letter = found[1], found[2]
    return bytes([_ESCAPED[letter[0]]]) if octal is None else bytes([int(octal, 8) & 0xFF])


def _hunks(lines: list[str]) -> Iterator[tuple[Hunk, bool]]:
    """Each with whether all its lines are there."""
    at = 0
    while at < len(lines):
        head = _HUNK.fullmatch(lines[at])
        at += 1
        if head is None:
            continue
        old, new = int(head[1]), int(head[3])
        old_left, new_left = int(head[2] or 1), int(head[4] or 1)
        hunk: list[DiffLine] = []
        first = (old, new)
        while at < len(lines) and (old_left or new_left or lines[at].startswith("\\")):
            # A blank line without its sign is one that git was told to write so.
            kind = _KINDS.get(lines[at][:1] or " ")
            if kind is None:
                break
            is_old = kind in (LineKind.SAME, LineKind.REMOVED)
            is_new = kind in (LineKind.SAME, LineKind.ADDED)
            hunk.append(DiffLine(kind, lines[at][1:], old if is_old else None, new if is_new else None))
            old, new, old_left, new_left = old + is_old, new + is_new, old_left - is_old, new_left - is_new
            at += 1
        yield Hunk(*first, head[5], tuple(hunk)), old_left <= 0 and new_left <= 0
