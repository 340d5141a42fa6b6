"""The list in an archive: whose session it is and which files belong to it, written down and read back with doubt."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

VERSION = 2


@dataclass(frozen=True, slots=True)
class Item:
    """One file: its size and digest when whole, and from which byte on this archive holds it."""

    name: str
    size: int
    digest: str
    start: int = 0

    @property
    def held(self) -> int:
        """How many of its bytes are in this archive."""
        return self.size - self.start


@dataclass(frozen=True, slots=True)
class Manifest:
    """`facts` are the provider's own. What holds only what was added `continues` an archive in that state."""

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
        """A digest of the session as it was: the same for a tail, and for the whole archive that it is joined to."""
        files = [[item.name, item.size, item.digest] for item in self.items]
        stated = json.dumps([self.provider, self.format, self.native_id, files])
        return hashlib.sha256(stated.encode()).hexdigest()

    @property
    def size(self) -> int:
        """Of its files when whole."""
        return sum(item.size for item in self.items)


class OtherVersion(Exception):
    """It was written by another Clew."""


def to_json(contents: Manifest) -> bytes:
    return json.dumps(
        {
            "version": VERSION,
            "provider": contents.provider,
            "format": contents.format,
            "native_id": contents.native_id,
            "facts": dict(contents.facts),
            "continues": contents.continues,
            "items": [
                {"name": item.name, "size": item.size, "digest": item.digest, "start": item.start}
                for item in contents.items
            ],
        },
        sort_keys=True,
    ).encode()


def from_json(data: bytes) -> Manifest:
    """Raises `ValueError` and the like for what is no list, or says what cannot be."""
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
    """The name of a file in an archive. Raises `ValueError` for one that leads outside."""
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
    # Half a character would fail whoever writes it down.
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
