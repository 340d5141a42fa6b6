"""Names that people give: short, and fit for a path, a branch and an address."""

import re

from clew.control.faults import BadName, BadRequest

_LONGEST_TITLE = 300
_SHAPE = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


def check_name(name: str, what: str) -> str:
    if _SHAPE.fullmatch(name) is None:
        raise BadName(
            f"{name[:60]!r} cannot be the name of {what}.",
            "Use up to 40 small letters, digits, - and _, beginning with a letter or digit.",
        )
    return name


MOST = 500
LONGEST = 160_000
"""Bytes of one text. A prompt has room for a little more, and what no prompt has room for would be held for ever."""


def how_many(limit: int) -> int:
    if not 1 <= limit <= MOST:
        raise BadRequest(f"A page of {limit} cannot be given.", f"Ask for 1 to {MOST}, and for the page before.")
    return limit


def not_too_long(text: str, what: str) -> str:
    size = len(text.encode(errors="replace"))
    if size > LONGEST:
        raise BadRequest(
            f"{what} has {size:,} bytes, and an agent is told {LONGEST:,} at most at once.",
            "Put it into a file of the project, and say where that is.",
        )
    return text


def check_title(title: str) -> str:
    """One line that is not empty."""
    line = " ".join(title.split())
    if not line or len(line) > _LONGEST_TITLE:
        raise BadRequest(f"A title has 1 to {_LONGEST_TITLE} characters.", "Put the rest into the text.")
    return line
