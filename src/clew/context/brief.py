"""The brief: a line for each entry that is not told word for word. And how long a text is, in tokens."""

from collections.abc import Sequence

from clew.kernel import AgentId, voice
from clew.ports.context import Entry

_LONGEST = 200
"""Characters of an entry that its line shows."""
_CHARACTERS = 4
_AROUND = 24
"""Tokens of the line that introduces an entry, and of its fence."""


def tokens_of(text: str) -> int:
    """An estimate on the high side, without any model's own tokenizer: four bytes to a token."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _CHARACTERS)


def size_in_prompt(text: str, recorded: int = 0) -> int:
    """The tokens of an entry in a prompt; a recorded size that is too small does not count."""
    return max(recorded, tokens_of(text)) + _AROUND


def brief_of(entries: Sequence[Entry], tokens: int, reader: AgentId) -> str:
    """The entries in at most so many tokens. Where there is no room for the oldest, their number stands for them."""
    lines: list[str] = []
    # The line that counts what is left out needs room, too.
    left = tokens - 20
    for entry in reversed(entries):
        line = _line(entry, reader)
        left -= tokens_of(line)
        if left < 0:
            break
        lines.append(line)
    if len(lines) < len(entries):
        lines.append(f"({len(entries) - len(lines)} earlier entries are left out.)")
    return "\n".join(reversed(lines))


def _line(entry: Entry, reader: AgentId) -> str:
    text = " ".join(entry.body.split())
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
    return f"[{entry.facts.seq}] {voice(entry.facts, reader).words} {short}"
