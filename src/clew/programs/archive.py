"""Archives: a zip of a session's files with a manifest, checked completely before anything is restored.

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
from pathlib import Path
from typing import IO, Any

from clew.kernel import NativeId
from clew.ports.provider import ArchiveFile
from clew.programs.checks import check_paths
from clew.programs.faults import BadArchive, Refused
from clew.programs.manifest import VERSION, Item, Manifest, OtherVersion, from_json, safe, to_json

LARGEST = 2**30
"""Bytes of all files of a session together. They are read into memory, so this is the limit."""

_USE_ANOTHER = "Nothing was changed; use another copy."
_LARGEST_MANIFEST = 16 * 2**20
_PIECE = 2**20
_MANIFEST = "clew-archive.json"
# zipfile decompresses these two in pieces of the size that is asked for, and other methods not.
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# Everything that zipfile raises for damaged bytes.
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


def pack(
    into: Path,
    provider: str,
    format_: str,
    native_id: str,
    files: Mapping[str, bytes],
    facts: Mapping[str, Any],
    since: Path | None = None,
    turns: int | None = None,
) -> ArchiveFile:
    """Write an archive of a session with so many turns. With `since`, an earlier archive, leave out what that one has.

    Of a file that only grew, the added bytes are held; a file that was rewritten is held whole.
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
        raise Refused(
            f"Session {native_id} cannot be archived: {fault}.", "Rename that file, or start a new session."
        ) from fault
    continues = before.state if any(item.start for item in items) else None
    manifest = Manifest(provider, format_, native_id, items, facts, continues)
    listed = to_json(manifest)
    if manifest.size > LARGEST or len(listed) > _LARGEST_MANIFEST:
        raise Refused(f"Session {native_id} has {manifest.size} bytes in {len(items)} files.", _too_large())
    with _written(into) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        archive.writestr(_MANIFEST, listed)
        for item in items:
            if item.held:
                archive.writestr(item.name, files[item.name][item.start :])
    return ArchiveFile(into, format_, NativeId(native_id), file_digest(into), turns, manifest.whole)


def unpack(path: Path, provider: str, formats: frozenset[str]) -> tuple[Manifest, dict[str, bytes]]:
    """Every file, checked against the manifest: complete, undamaged, of this provider and of a format it reads."""
    with _opened(path) as archive:
        manifest = _manifest(archive, path)
        if manifest.provider != provider or manifest.format not in formats:
            raise BadArchive(
                f"{path.name} holds a session of {manifest.provider} ({manifest.format}); {provider} reads"
                f" {', '.join(sorted(formats))}.",
                "Restore it with the agent it came from.",
            )
        if not manifest.whole:
            raise BadArchive(f"{path.name} holds only additions.", "Join it with the archive before it first.")
        return manifest, _files(archive, manifest, path, {})


def join(base: Path, tail: Path, into: Path) -> str:
    """Write a whole archive from a whole one and the additions since; returns its digest."""
    with _opened(base) as first, _opened(tail) as second:
        old, new = _manifest(first, base), _manifest(second, tail)
        if new.whole:
            raise BadArchive(f"{tail.name} continues no archive: it is whole.", "Restore it as it is.")
        if not old.whole:
            raise BadArchive(f"{base.name} holds only additions.", "Join it with the archive before it first.")
        if new.continues != old.state:
            raise BadArchive(
                f"{tail.name} does not continue {base.name}.", "Join it with the archive that it was made from."
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
    """The manifest of the earlier archive. Raises if that is damaged or of another session."""
    with _opened(since) as archive:
        old = _manifest(archive, since)
        if (old.provider, old.format, old.native_id) != (now.provider, now.format, now.native_id):
            raise BadArchive(
                f"{since.name} holds session {old.native_id} of {old.provider} ({old.format}), not {now.native_id} of"
                f" {now.provider} ({now.format}).",
                "Name an archive of this session, or none.",
            )
        for item in old.items:
            whole = _part(archive, item, since)
            if item.start == 0 and _digest(whole) != item.digest:
                raise _damaged(since, f"{item.name} is not what the manifest says")
    return old


def _must_stay(since: Path, into: Path) -> None:
    if into.exists() and into.samefile(since):
        raise Refused(f"{into} is the archive that this one would continue.", "Name another file.")


@contextlib.contextmanager
def _written(into: Path) -> Iterator[IO[bytes]]:
    """A file that gets its name when it is complete and on disk, readable for this user only."""
    part: Path | None = None
    try:
        number, name = tempfile.mkstemp(prefix=f".{into.name[:100]}.", suffix=".part", dir=into.parent)
        part = Path(name)
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(into)
    except OSError as fault:
        why = f"there is no directory {into.parent}" if not into.parent.is_dir() else fault.strerror or str(fault)
        raise Refused(
            f"The archive cannot be written to {into}: {why}.", "Correct that, or name another file."
        ) from fault
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


# ---------------------------------------------------------------- reading


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        info = path.stat()
        # Opening a pipe would block until another process opens its other end.
        if not stat.S_ISREG(info.st_mode):
            raise _damaged(path, "it is no file")
        # zipfile reads the whole table of manifest.
        if info.st_size > 2 * LARGEST:
            raise BadArchive(f"{path.name} is larger than any archive.", _too_large())
        return zipfile.ZipFile(path)
    except _DAMAGE as fault:
        raise _damaged(path, str(fault)) from fault


def _manifest(archive: zipfile.ZipFile, path: Path) -> Manifest:
    try:
        size = archive.getinfo(_MANIFEST).file_size
        if size > _LARGEST_MANIFEST:
            raise _damaged(path, "its manifest is too long")
        manifest = from_json(_read(archive, _MANIFEST, size))
    except OtherVersion as fault:
        raise BadArchive(
            f"{path.name} has version {fault}; this program reads {VERSION}.",
            "Use the Clew that made it, or archive anew.",
        ) from fault
    except _DAMAGE as fault:
        raise _damaged(path, f"its manifest cannot be read ({fault})") from fault
    if manifest.size > LARGEST:
        raise BadArchive(f"{path.name} holds {manifest.size} bytes by its manifest.", _too_large())
    return manifest


def _files(archive: zipfile.ZipFile, manifest: Manifest, path: Path, before: Mapping[str, bytes]) -> dict[str, bytes]:
    files = {}
    for item in manifest.items:
        data = before.get(item.name, b"")[: item.start] + _part(archive, item, path)
        if (len(data), _digest(data)) != (item.size, item.digest):
            raise _damaged(path, f"{item.name} is not what the manifest says")
        files[item.name] = data
    return files


def _part(archive: zipfile.ZipFile, item: Item, path: Path) -> bytes:
    """The bytes of that file in this archive. The manifest says how many are unpacked."""
    if not item.held:
        return b""
    try:
        return _read(archive, item.name, item.held)
    except _DAMAGE as fault:
        raise _damaged(path, f"{item.name} cannot be read ({fault})") from fault


def _read(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """In pieces, so that no more than `size` bytes are ever held, whatever the zip would unpack to."""
    info = archive.getinfo(name)
    if info.compress_type not in _PACKED or info.file_size != size:
        raise ValueError("it is not as long as the manifest says, or packed in another way")
    read = bytearray()
    with archive.open(info) as file:
        while piece := file.read(_PIECE):
            read += piece
            if len(read) > size:
                raise ValueError("it is longer than the manifest says")
    return bytes(read)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _damaged(path: Path, why: str) -> BadArchive:
    return BadArchive(f"{path.name} is damaged or is no archive: {why}.", _USE_ANOTHER)


def not_restorable(path: Path, why: str) -> BadArchive:
    """For an archive that is whole, but whose contents a provider cannot restore."""
    return BadArchive(f"{path.name} cannot be restored: {why}.", _USE_ANOTHER)


def _too_large() -> str:
    return f"Clew carries sessions of up to {LARGEST // 2**20} MB. Compact it in its agent, or start a new session."
