"""How much is asked for at once, and what may be said in one request."""

from clew.control.faults import BadRequest

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
