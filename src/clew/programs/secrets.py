"""Redaction: secret values of an environment are removed from logs, events and messages."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

HIDDEN = "[hidden]"
_SHORTEST = 6
# AUTHOR and PWD (the working directory) are not secret; MYSQL_PWD is.
_NAMES = re.compile(
    r"KEY|TOKEN|SECRET|PASSW(OR)?D|PASSPHRASE|CREDENTIAL|AUTH(?!OR(?!I))|PRIVATE|COOKIE|BEARER"
    r"|(^|_)(PASS|PAT|DSN)(_|$)|_PWD$",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"://[^/@\s]*?:([^/@\s]+)@")
"""The password in a URL, as for databases and proxies."""
_LONG_LINE = 16


class Redactor:
    """Hides the values of variables with a secret name, and passwords in URLs."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        found: set[str] = set()
        for name, value in environment.items():
            found.update(_IN_ADDRESS.findall(value))
            if _NAMES.search(name):
                # A key of several lines may be printed line by line.
                found.update((value, *(line for line in value.splitlines() if len(line) >= _LONG_LINE)))
        # A short value would hide ordinary words.
        self._values = sorted((value for value in found if len(value) >= _SHORTEST), key=len, reverse=True)

    def text(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return text

    def value(self, value: Any) -> Any:
        """The same for any JSON value."""
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
    """Text that comes in parts. The end of a part is held back while it may be the beginning of a secret."""

    def __init__(self, values: Sequence[str]) -> None:
        self._values = values
        self._held = ""

    def feed(self, part: str) -> str:
        """The text that can be shown by now."""
        text = self._held + part
        for value in self._values:
            text = text.replace(value, HIDDEN)
        longest = max((_begun(text, value) for value in self._values), default=0)
        shown, self._held = text[: len(text) - longest], text[len(text) - longest :]
        return shown

    def flush(self) -> str:
        """What was held back, when no more parts come."""
        held, self._held = self._held, ""
        return held


def _begun(text: str, value: str) -> int:
    """The length of the secret's beginning that the text ends with."""
    longest = min(len(text), len(value) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(value[:size])), 0)
