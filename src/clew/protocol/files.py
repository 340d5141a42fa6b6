"""Files that are sent with messages: what each is, how many and how large they may be, and their names."""

import json
import unicodedata
from collections.abc import Iterable
from dataclasses import astuple, dataclass

LARGEST_FILE = 10_000_000
LARGEST_TOGETHER = 25_000_000
"""Bytes of one file, and of all files of a message."""
MOST_FILES = 10
"""Files of a message."""

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Media types that a page may show. Everything else is only downloaded, as bytes without a meaning."""

_LONGEST_NAME = 120
"""Bytes of a name: file systems take 255."""
_REPLACED = frozenset('/\\:*?"<>|')


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a message. `kind` is the media type that its sender's program named."""

    id: str
    name: str
    kind: str
    size: int


def write_files(files: Iterable[SentFile]) -> str | None:
    """As the journal stores them: a JSON list, or nothing for none."""
    return json.dumps([astuple(each) for each in files]) if files else None


def read_files(stored: str | None) -> tuple[SentFile, ...]:
    """Raises a ValueError if the text is not such a list."""
    if stored is None:
        return ()
    try:
        return tuple(
            SentFile(str(id_), str(name), str(kind), int(size)) for id_, name, kind, size in json.loads(stored)
        )
    except (TypeError, RecursionError) as fault:
        raise ValueError(f"it is no list of files: {fault}") from fault


def safe_name(name: str) -> str:
    """The name as a file can have it on every machine: without a path, hidden characters, or a dot at its beginning."""
    last = unicodedata.normalize("NFC", name.replace("\\", "/").rstrip("/").rpartition("/")[2])
    shown = "".join("_" if each in _REPLACED or _is_hidden(each) else each for each in last).lstrip(". ").rstrip(". ")
    stem, dot, ending = shown.rpartition(".")
    if not dot or len(ending) > 20:
        stem, ending = shown, ""
    room = _LONGEST_NAME - len(f"{dot}{ending}".encode() if ending else b"")
    stem = stem.encode()[:room].decode(errors="ignore").rstrip(". ")
    return (f"{stem}.{ending}" if ending else stem) or "file"


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character)[0] == "C" or unicodedata.category(character) in ("Zl", "Zp")
