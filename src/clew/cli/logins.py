"""What a person is told of logins: the server's words, and which of the keys they name are set in this shell."""

import os
import re

_KEY = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN)\b")
_PASSED_ON = re.compile(r"`(clew agent [^`]*--(?:add-)?env) NAME`")
_SERVERS = re.compile(r"[^.`]* set for the server")


def with_keys_here(words: str) -> str:
    """The words, and for each key that they name and this shell has, how it is passed on. Values are never shown."""
    passed = _PASSED_ON.search(words)
    if passed is None and "printenv" not in words:
        return words
    here = [name for name in dict.fromkeys(_KEY.findall(words)) if os.environ.get(name)]
    if passed is None:
        return " ".join([words, *(f"{name} is set here." for name in here)])
    known = _KEY.findall(found[0]) if (found := _SERVERS.search(words)) else []
    said = ("Pass it on" if name in known else f"{name} is set here; pass it on" for name in here)
    return " ".join([words, *(f"{each} with `{passed[1]} {name}`." for each, name in zip(said, here, strict=True))])
