"""How a wrong command line is judged: what the answer must say, and what it must not."""

import re
import shlex

from tests.cli.kit import Said

INSIDE = re.compile(r"Traceback|\bNone\b|NoneType|[A-Za-z]+Error\b|\b(?:rn|th|rt|ag|pr)_[0-9a-f]{12}|object at 0x")
"""Words of the program's inside, and ids of what has a name."""

Row = tuple[str | list[str], str]
"""A line, and the essential words of its answer: parts that follow one another, with … between."""


def typed(line: str | list[str], **places: str) -> list[str]:
    words = shlex.split(line) if isinstance(line, str) else line
    for name, place in places.items():
        words = [word.replace(name, place) for word in words]
    return words


def judge(said: Said, status: int, words: str) -> None:
    """One line on stderr that says what is wrong and what to do, and nothing else."""
    assert (said.status, said.out) == (status, ""), said
    assert re.fullmatch(r"clew: \S.*[.?] .+[.?] \[[a-z:-]+\]\n", said.err), said.err
    assert INSIDE.search(said.err) is None, said.err
    assert in_order(words, said.err), said.err


def in_order(words: str, text: str) -> bool:
    """Whether the parts of `words` follow one another in the text."""
    return re.search(".*".join(re.escape(part.strip()) for part in words.split("…")), text, re.DOTALL) is not None
