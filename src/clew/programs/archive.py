"""Archives: a session's files in one file with a list of what belongs in, checked whole before anything is restored.

A later archive may hold only what was added since an earlier one; joined with that one, it is whole again.
"""

import contextlib
import hashlib
import os
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from clew.programs.checks import check_paths
from clew.programs.faults import BadArchive, Refused
from clew.programs.manifest import VERSION, Item, Manifest, OtherVersion, from_json, safe, to_json

LARGEST = 2**30
"""Bytes of all files of a session together. They are held in memory, so nobody may make us hold more."""

_LARGEST_LIST = 16 * 2**20
_PIECE = 2**20
_LIST = "clew-archive.json"
# The library unpacks these in pieces no longer than it is asked for; others it does not.
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

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
class Packed:
    """What `pack` wrote: the digest of its bytes, and whether it can be restored by itself."""

    digest: str
    whole: bool


def pack(
    into: Path,
    provider: str,
    format_: str,
    native_id: str,
    files: Mapping[str, bytes],
    facts: Mapping[str, Any],
    since: Path | None = None,
) -> Packed:
    """Write an archive. With `since`, an earlier one of this session, what that has is left out.

    A file that only grew is held from where that one ended; one that was rewritten is held whole.
    """
    check_paths(into)
    before = Manifest(provider, format_, native_id, (), {})
    if since is not None:
        before = _earlier(since, before)
        _must_stay(since, into)
    known = {item.name: item for item in before.items}
    try:
        items = tuple(_item(safe(name), data, known.get(name)) for name, data in files.items())
    except ValueError as fault:
        raise Refused(f"Session {native_id} cannot be archived: {fault}.", "Look at its files.") from fault
    continues = before.state if any(item.start for item in items) else None
    contents = Manifest(provider, format_, native_id, items, facts, continues)
    listed = to_json(contents)
    if contents.size > LARGEST or len(listed) > _LARGEST_LIST:
        raise Refused(f"Session {native_id} has {contents.size} bytes in {len(items)} files.", _too_large())
    with _written(into) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        archive.writestr(_LIST, listed)
        for item in items:
            if item.held:
                archive.writestr(item.name, files[item.name][item.start :])
    return Packed(file_digest(into), contents.whole)


def contents_of(path: Path) -> Manifest:
    """The list alone, for a look; what it promises is checked by `unpack`."""
    with _opened(path) as archive:
        return _list(archive, path)


def unpack(path: Path, provider: str, formats: frozenset[str]) -> tuple[Manifest, dict[str, bytes]]:
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
    """A whole archive from a whole one and what was added since; its digest."""
    with _opened(base) as first, _opened(tail) as second:
        old, new = _list(first, base), _list(second, tail)
        if new.whole:
            raise BadArchive(f"{tail.name} continues nothing: it is whole.", "Restore it as it is.")
        if not old.whole:
            raise BadArchive(f"{base.name} holds only what was added.", "Join it with the archive before it first.")
        if new.continues != old.state:
            raise BadArchive(
                f"{tail.name} does not continue {base.name}.", "Join it with the one that it was made from."
            )
        files = _files(second, new, tail, _files(first, old, base, {}))
    return pack(into, new.provider, new.format, new.native_id, files, new.facts).digest


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---------------------------------------------------------------- writing


def _item(name: str, data: bytes, old: Item | None) -> Item:
    grown = old is not None and len(data) >= old.size and _digest(data[: old.size]) == old.digest
    return Item(name, len(data), _digest(data), old.size if old is not None and grown else 0)


def _earlier(since: Path, now: Manifest) -> Manifest:
    """Its list, if it is undamaged and of the same session: otherwise somebody's books are wrong."""
    with _opened(since) as archive:
        old = _list(archive, since)
        if (old.provider, old.format, old.native_id) != (now.provider, now.format, now.native_id):
            raise BadArchive(
                f"{since.name} holds session {old.native_id} of {old.provider} ({old.format}), not {now.native_id} of"
                f" {now.provider} ({now.format}).",
                "Name an archive of this session, or none.",
            )
        for item in old.items:
            whole = _part(archive, item, since)
            if item.start == 0 and _digest(whole) != item.digest:
                raise _damaged(since, f"{item.name} is not what the list says")
    return old


def _must_stay(since: Path, into: Path) -> None:
    if into.exists() and into.samefile(since):
        raise Refused(f"{into} would take the place of what it continues.", "Name another file.")


@contextlib.contextmanager
def _written(into: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name when it is whole and on the disk. A session is nobody else's to read."""
    beside: Path | None = None
    try:
        number, name = tempfile.mkstemp(prefix=f".{into.name[:100]}.", suffix=".part", dir=into.parent)
        beside = Path(name)
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(into)
    except OSError as fault:
        why = f"there is no directory {into.parent}" if not into.parent.is_dir() else fault.strerror or str(fault)
        raise Refused(f"The archive cannot be written to {into}: {why}.", "Mend that, or name another file.") from fault
    finally:
        if beside is not None:
            beside.unlink(missing_ok=True)


# ---------------------------------------------------------------- reading


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        told = path.stat()
        # Whoever opens a pipe waits for somebody at its other end.
        if not stat.S_ISREG(told.st_mode):
            raise _damaged(path, "it is no file")
        # Its own table of contents is read whole.
        if told.st_size > 2 * LARGEST:
            raise BadArchive(f"{path.name} is larger than any archive.", _too_large())
        return zipfile.ZipFile(path)
    except _DAMAGE as fault:
        raise _damaged(path, str(fault)) from fault


def _list(archive: zipfile.ZipFile, path: Path) -> Manifest:
    try:
        size = archive.getinfo(_LIST).file_size
        if size > _LARGEST_LIST:
            raise _damaged(path, "its list is too long")
        contents = from_json(_read(archive, _LIST, size))
    except OtherVersion as fault:
        raise BadArchive(
            f"{path.name} has version {fault}; this program reads {VERSION}.",
            "Use the Clew that made it, or archive anew.",
        ) from fault
    except _DAMAGE as fault:
        raise _damaged(path, f"its list cannot be read ({fault})") from fault
    if contents.size > LARGEST:
        raise BadArchive(f"{path.name} holds {contents.size} bytes by its list.", _too_large())
    return contents


def _files(archive: zipfile.ZipFile, contents: Manifest, path: Path, before: Mapping[str, bytes]) -> dict[str, bytes]:
    files = {}
    for item in contents.items:
        data = before.get(item.name, b"")[: item.start] + _part(archive, item, path)
        if (len(data), _digest(data)) != (item.size, item.digest):
            raise _damaged(path, f"{item.name} is not what the list says")
        files[item.name] = data
    return files


def _part(archive: zipfile.ZipFile, item: Item, path: Path) -> bytes:
    """What the archive has of that file. The list has the last word on how much there is to unpack."""
    if not item.held:
        return b""
    try:
        return _read(archive, item.name, item.held)
    except _DAMAGE as fault:
        raise _damaged(path, f"{item.name} cannot be read ({fault})") from fault


def _read(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """In pieces: whatever it would unpack to, no more than that is held."""
    told = archive.getinfo(name)
    if told.compress_type not in _PACKED or told.file_size != size:
        raise ValueError("it is not as long as the list says, or packed in another way")
    read = bytearray()
    with archive.open(told) as file:
        while piece := file.read(_PIECE):
            read += piece
            if len(read) > size:
                raise ValueError("it is longer than the list says")
    return bytes(read)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _damaged(path: Path, why: str) -> BadArchive:
    return BadArchive(f"{path.name} is damaged or no archive: {why}.", "Nothing was changed; use another copy.")


def _too_large() -> str:
    return f"Clew carries sessions of up to {LARGEST // 2**20} MB. Make it shorter in its agent, or begin a new one."
