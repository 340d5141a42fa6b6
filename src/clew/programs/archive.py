"""Archives: a session's files in one file with a list of what belongs in, checked whole before anything is restored.

A later archive of files that only grow may hold their tails alone; joined with the one before, it is whole again.
"""

import hashlib
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from clew.programs.faults import BadArchive

VERSION = 1
_LIST = "clew-archive.json"

# All that zipfile lets out when its bytes are not what they should be.
_DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True, slots=True)
class Item:
    """One file: its size and digest when whole, and from which byte on this archive holds it."""

    name: str
    size: int
    digest: str
    start: int = 0


@dataclass(frozen=True, slots=True)
class Contents:
    """The list: whose session it is, in which format, and the files. `facts` are the provider's own."""

    provider: str
    format: str
    native_id: str
    items: tuple[Item, ...]
    facts: Mapping[str, Any]

    @property
    def whole(self) -> bool:
        return all(item.start == 0 for item in self.items)


def pack(
    into: Path,
    provider: str,
    format_: str,
    native_id: str,
    files: Mapping[str, bytes],
    facts: Mapping[str, Any],
    since: Contents | None = None,
) -> str:
    """Write an archive and give its digest. With `since`, a file that only grew is held from where that one ended."""
    before = {item.name: item for item in since.items} if since is not None else {}
    items, parts = [], {}
    for name, data in files.items():
        old = before.get(name)
        grown = old is not None and len(data) >= old.size and _digest(data[: old.size]) == old.digest
        start = old.size if old is not None and grown else 0
        items.append(Item(name, len(data), _digest(data), start))
        parts[name] = data[start:]
    contents = Contents(provider, format_, native_id, tuple(items), facts)
    beside = into.with_name(into.name + ".part")
    try:
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            archive.writestr(_LIST, json.dumps(_to_json(contents), sort_keys=True))
            for name, data in parts.items():
                archive.writestr(name, data)
        with beside.open("rb") as written:
            os.fsync(written.fileno())
        beside.replace(into)
    finally:
        beside.unlink(missing_ok=True)
    return file_digest(into)


def contents_of(path: Path) -> Contents:
    """The list alone, for a look; what it promises is checked by `unpack`."""
    with _opened(path) as archive:
        return _list(archive, path)


def unpack(path: Path, provider: str, formats: frozenset[str]) -> tuple[Contents, dict[str, bytes]]:
    """Every file, checked against the list: whole, undamaged, of this provider and a format it reads."""
    with _opened(path) as archive:
        contents = _list(archive, path)
        if contents.provider != provider or contents.format not in formats:
            raise BadArchive(
                f"{path.name} holds a session of {contents.provider} ({contents.format}); {provider} reads"
                f" {', '.join(sorted(formats))}.",
                "Restore it with the agent it came from.",
            )
        if not contents.whole:
            raise BadArchive(f"{path.name} holds only what was added.", "Join it with the archive before it first.")
        return contents, _files(archive, contents, path, {})


def join(base: Path, tail: Path, into: Path) -> str:
    """A whole archive from one and what was added since; its digest."""
    with _opened(base) as first, _opened(tail) as second:
        old, new = _list(first, base), _list(second, tail)
        if (old.provider, old.format) != (new.provider, new.format):
            raise BadArchive(f"{tail.name} does not continue {base.name}.", "Make a whole archive instead.")
        files = _files(second, new, tail, _files(first, old, base, {}))
    return pack(into, new.provider, new.format, new.native_id, files, new.facts)


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _DAMAGE as fault:
        raise _damaged(path, str(fault)) from fault


def _list(archive: zipfile.ZipFile, path: Path) -> Contents:
    try:
        stored = json.loads(archive.read(_LIST))
        if stored["version"] != VERSION:
            raise BadArchive(
                f"{path.name} has version {stored['version']}; this program reads {VERSION}.", "Use a newer Clew."
            )
        items = tuple(
            Item(_safe(each["name"], path), each["size"], each["digest"], each["start"]) for each in stored["items"]
        )
        return Contents(stored["provider"], stored["format"], stored["native_id"], items, stored["facts"])
    except _DAMAGE as fault:
        raise _damaged(path, f"its list cannot be read ({fault})") from fault


def _files(archive: zipfile.ZipFile, contents: Contents, path: Path, before: Mapping[str, bytes]) -> dict[str, bytes]:
    files = {}
    for item in contents.items:
        try:
            # The list has the last word on how much there is to unpack.
            if archive.getinfo(item.name).file_size != item.size - item.start:
                raise _damaged(path, f"{item.name} is not as long as the list says")
            part = archive.read(item.name)
        except _DAMAGE as fault:
            raise _damaged(path, f"{item.name} cannot be read ({fault})") from fault
        data = before.get(item.name, b"")[: item.start] + part
        if (len(data), _digest(data)) != (item.size, item.digest):
            raise _damaged(path, f"{item.name} is not what the list says")
        files[item.name] = data
    return files


def _safe(name: str, path: Path) -> str:
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or not name or "\\" in name or name != str(parts):
        raise _damaged(path, f"it names a file outside of itself ({name!r})")
    return name


def _damaged(path: Path, why: str) -> BadArchive:
    return BadArchive(f"{path.name} is damaged or no archive: {why}.", "Nothing was changed; use another copy.")


def _to_json(contents: Contents) -> dict[str, Any]:
    return {
        "version": VERSION,
        "provider": contents.provider,
        "format": contents.format,
        "native_id": contents.native_id,
        "facts": dict(contents.facts),
        "items": [
            {"name": item.name, "size": item.size, "digest": item.digest, "start": item.start}
            for item in contents.items
        ],
    }
