"""How much is asked for at once, and what may be said in one request."""

from clew.control.faults import BadRequest

MOST = 500
LONGEST = 1_000_000
"""Characters of one text; more than any agent takes in one turn."""


def how_many(limit: int) -> int:
    if not 1 <= limit <= MOST:
        raise BadRequest(f"A page of {limit} cannot be given.", f"Ask for 1 to {MOST}, and for the page before.")
    return limit


def not_too_long(text: str, what: str) -> str:
    if len(text) > LONGEST:
        raise BadRequest(f"{what} has {len(text)} characters; {LONGEST} are allowed.", "Put it into a file instead.")
    return text
