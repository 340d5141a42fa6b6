"""Limits on what a request may contain: names, titles, texts, and how many rows it asks for."""

import re
from typing import get_args

from clew.control.faults import BadName, BadRequest
from clew.protocol.views import Mode

MOST = 500
"""Rows of one page."""

LONGEST = 160_000
"""Bytes of one text. A prompt has room for slightly more; a text that fits into no prompt would be held forever."""

_LONGEST_TITLE = 300
_SHOWN = 60
_SHAPE = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


def check_name(name: str, what: str) -> str:
    """Names are used in paths, branches and addresses."""
    if _SHAPE.fullmatch(name) is None:
        shown = repr(name) if len(name) <= _SHOWN else f"{name[:_SHOWN]!r}…"
        allowed = "Use up to 40 small letters, digits, - and _, beginning with a letter or digit"
        possible = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")
        near = f", such as {possible}" if _SHAPE.fullmatch(possible) and 2 * len(possible) > len(name) else ""
        raise BadName(f"{shown} cannot be the name of {what}.", f"{allowed}{near}.")
    return name


def check_limit(limit: int) -> int:
    if not 1 <= limit <= MOST:
        raise BadRequest(f"A page cannot have {limit} rows.", f"Ask for 1 to {MOST}, then for the page before it.")
    return limit


def check_size(text: str, what: str) -> str:
    size = len(text.encode(errors="replace"))
    if size > LONGEST:
        raise BadRequest(
            f"{what} has {size:,} bytes; the limit is {LONGEST:,}.",
            "Put it into a file of the project, and say where that file is.",
        )
    return text


def check_title(title: str) -> str:
    """One line that is not empty."""
    line = " ".join(title.split())
    if not line:
        raise BadRequest("The title is empty.", f"Give 1 to {_LONGEST_TITLE} characters.")
    if len(line) > _LONGEST_TITLE:
        words = f"The title has {len(line):,} characters; the limit is {_LONGEST_TITLE}."
        raise BadRequest(words, "Put the rest into the text.")
    return line


def check_mode(mode: str) -> str:
    modes = get_args(Mode)
    if mode not in modes:
        raise BadRequest(f"Unknown permission mode {mode!r}.", f"Use one of: {', '.join(modes)}.")
    return mode
