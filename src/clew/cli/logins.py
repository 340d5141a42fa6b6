"""What a person is told of logins: the server's words, and which of the keys they name are set in this shell."""

import os
import re

_KEY = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN)\b")
_PASSED_ON = re.compile(r"`clew agent edit (\S+) --add-env NAME`")


def with_keys_here(words: str) -> str:
    """The words, and for each key that they name and this shell has, how it is passed on. Values are never shown."""
    passed = _PASSED_ON.search(words)
    if passed is None and "printenv" not in words:
        return words
    here = [name for name in dict.fromkeys(_KEY.findall(words)) if os.environ.get(name)]
    if passed is None:
        return " ".join([words, *(f"{name} is set here." for name in here)])
    agent = passed[1]
    return " ".join(
        [words, *(f"{name} is set here; pass it on with `clew agent edit {agent} --add-env {name}`." for name in here)]
    )
