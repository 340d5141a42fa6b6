"""Statements as PostgreSQL takes them: their values by number."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MARK = re.compile(r"%\((\w+)\)s|%%")


@dataclass(frozen=True, slots=True)
class Numbered:
    """A statement as the server takes it: its values by number, and their names in that order."""

    sql: bytes
    names: tuple[str, ...]


def numbered(sql: str) -> Numbered:
    """The same statement with $1, $2 in the place of %(names)s."""
    names: dict[str, int] = {}

    def number(mark: re.Match[str]) -> str:
        name = mark[1]
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    text = _MARK.sub(number, sql)
    return Numbered(text.encode(), tuple(names))


Call = tuple[Numbered, Mapping[str, Any]]
"""A statement and its values."""
