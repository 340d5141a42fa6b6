"""Secrets: values that must not appear in a log, an event or a message, taken out wherever they might."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

HIDDEN = "[hidden]"
_SHORTEST = 6
# An author is none, and a working directory (PWD) is none; a database's password (MYSQL_PWD) is one.
_NAMES = re.compile(
    r"KEY|TOKEN|SECRET|PASSW(OR)?D|PASSPHRASE|CREDENTIAL|AUTH(?!OR(?!I))|PRIVATE|COOKIE|BEARER"
    r"|(^|_)(PASS|PAT|DSN)(_|$)|_PWD$",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"://[^/@\s]*?:([^/@\s]+)@")
"""The password in an address, as databases and proxies have it."""
_LONG_LINE = 16


class Redactor:
    """Knows the values of an environment whose names say that they are secret, and passwords in its addresses."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        found: set[str] = set()
        for name, value in environment.items():
            found.update(_IN_ADDRESS.findall(value))
            if _NAMES.search(name):
                # A key of several lines is told line by line.
                found.update((value, *(line for line in value.splitlines() if len(line) >= _LONG_LINE)))
        # A short value would hide ordinary words; it is no secret worth the name.
        self._values = sorted((value for value in found if len(value) >= _SHORTEST), key=len, reverse=True)

    def text(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return text

    def value(self, value: Any) -> Any:
        """The same in everything that JSON can hold."""
        if not self._values:
            return value
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.value(each) for each in value]
            case dict():
                return {self.value(key): self.value(each) for key, each in value.items()}
            case _:
                return value

    def stream(self) -> "Redaction":
        return Redaction(self._values)


class Redaction:
    """Text that comes in parts: a part's end is held back while it may be the beginning of a secret."""

    def __init__(self, values: Sequence[str]) -> None:
        self._values = values
        self._held = ""

    def feed(self, part: str) -> str:
        """As much of the text so far as can be shown."""
        text = self._held + part
        for value in self._values:
            text = text.replace(value, HIDDEN)
        longest = max((_begun(text, value) for value in self._values), default=0)
        shown, self._held = text[: len(text) - longest], text[len(text) - longest :]
        return shown

    def flush(self) -> str:
        """What was held back, once nothing more comes."""
        held, self._held = self._held, ""
        return held


def _begun(text: str, value: str) -> int:
    """How much of the secret the text ends with."""
    longest = min(len(text), len(value) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(value[:size])), 0)
