"""The names of a lane's directory and branch, made for people: `web/issue-12-ada` and `clew/issue-12-login-page`."""

import re
import unicodedata

LONGEST = 40
"""Characters of a title that a branch name has at most."""

_OTHER = re.compile(r"[^a-z0-9]+")


def slug(title: str) -> str:
    """A title as part of a branch name: small ASCII letters, digits and single hyphens. May be empty."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = _OTHER.sub("-", plain).strip("-")
    if len(words) <= LONGEST:
        return words
    whole, _, _ = words[: LONGEST + 1].rpartition("-")
    return whole or words[:LONGEST]


def thread_name(kind: str, number: int | None, title: str, agent: str) -> str:
    """The thread as part of a directory name."""
    if number is not None:
        return f"{kind}-{number}"
    if kind == "own":
        return f"own-{agent}"
    return "-".join(part for part in (kind, slug(title)) if part)


def directory_name(kind: str, number: int | None, title: str, agent: str) -> str:
    name = thread_name(kind, number, title, agent)
    return name if kind == "own" else f"{name}-{agent}"


def branch_name(kind: str, number: int | None, title: str, agent: str, first: bool) -> str:
    """The first lane of a thread has the thread's name; others add their agent's. The machine that makes the branch
    appends a number where another branch has that name."""
    parts = [thread_name(kind, number, title, agent)]
    if number is not None and (words := slug(title)):
        parts.append(words)
    if not first:
        parts.append(agent)
    return "clew/" + "-".join(parts)


def numbered(name: str, number: int) -> str:
    """The name, or where it is taken the next one to try."""
    return name if number == 1 else f"{name}-{number}"
