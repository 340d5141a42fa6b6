"""The manifest of an archive: whose session it is and which files it has. Nothing in one is trusted on reading."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

VERSION = 2


@dataclass(frozen=True, slots=True)
class Item:
    """One file: its whole size and digest, and the first byte that this archive holds."""

    name: str
    size: int
    digest: str
    start: int = 0

    @property
    def held(self) -> int:
        """How many of its bytes this archive holds."""
        return self.size - self.start


@dataclass(frozen=True, slots=True)
class Manifest:
    """`facts` are the provider's own. An archive that holds only additions `continues` one with that `state`."""

    provider: str
    format: str
    native_id: str
    items: tuple[Item, ...]
    facts: Mapping[str, Any]
    continues: str | None = None

    @property
    def whole(self) -> bool:
        return self.continues is None

    @property
    def state(self) -> str:
        """A digest of the session's files. The same for additions and for the whole archive that they are joined to."""
        files = [[item.name, item.size, item.digest] for item in self.items]
        stated = json.dumps([self.provider, self.format, self.native_id, files])
        return hashlib.sha256(stated.encode()).hexdigest()

    @property
    def size(self) -> int:
        """Of all files when whole."""
        return sum(item.size for item in self.items)


class OtherVersion(Exception):
    """Another version of Clew wrote it."""


def to_json(manifest: Manifest) -> bytes:
    return json.dumps(
        {
            "version": VERSION,
            "provider": manifest.provider,
            "format": manifest.format,
            "native_id": manifest.native_id,
            "facts": dict(manifest.facts),
            "continues": manifest.continues,
            "items": [
                {"name": item.name, "size": item.size, "digest": item.digest, "start": item.start}
                for item in manifest.items
            ],
        },
        sort_keys=True,
    ).encode()


def from_json(data: bytes) -> Manifest:
    """Raises `ValueError`, `KeyError` or `TypeError` for a malformed or inconsistent manifest."""
    stored = json.loads(data)
    if stored["version"] != VERSION:
        raise OtherVersion(str(stored["version"])[:80])
    items = tuple(map(_item, _of(list, stored["items"])))
    if len({item.name for item in items}) != len(items):
        raise ValueError("it lists a file twice")
    continues = None if stored["continues"] is None else _text(stored["continues"])
    if continues is None and any(item.start for item in items):
        raise ValueError("it does not say what it continues")
    provider, format_, native_id = (_text(stored[name]) for name in ("provider", "format", "native_id"))
    return Manifest(provider, format_, native_id, items, _of(dict, stored["facts"]), continues)


def safe(name: str) -> str:
    """Return the name of a file in an archive. Raises `ValueError` for one that leads outside."""
    parts = PurePosixPath(name)
    odd = "\\" in name or "\0" in name or name != str(parts)
    if parts.is_absolute() or ".." in parts.parts or name in ("", ".") or odd:
        raise ValueError(f"it names a file outside of itself ({name!r})")
    return name


def _item(stored: Any) -> Item:
    size, start = _number(stored["size"]), _number(stored["start"])
    if start > size:
        raise ValueError("it begins a file after its end")
    return Item(safe(_text(stored["name"])), size, _text(stored["digest"]), start)


def _text(value: Any) -> str:
    text: str = _of(str, value)
    # Raises for half a character, which cannot be written later.
    text.encode()
    return text


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no size")
    return value


def _of(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}"[:200])
    return value
