"""How long a text is, in tokens, as far as that can be told without any agent's own count."""

_CHARACTERS = 4
_AROUND = 24
"""Tokens of what introduces an entry and of its fence."""


def tokens_of(text: str) -> int:
    """Rather too many: a script of few letters has more tokens than four bytes each would say."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _CHARACTERS)


def size_in_prompt(text: str, said: int = 0) -> int:
    """What an entry takes, whatever smaller number was said of it."""
    return max(said, tokens_of(text)) + _AROUND
