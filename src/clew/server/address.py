"""Request addresses: refused with control characters in them; an encoded slash belongs to a name."""

import re
from urllib.parse import unquote, unquote_to_bytes

from starlette.types import Scope

from clew.server.problems import NotUnderstood

_ENCODED_SLASH = re.compile(rb"%2f", re.IGNORECASE)
_KEPT = "\x1f"
"""Stands for an encoded slash while the route is looked up. No address has it otherwise: it is a control character."""


def check_address(scope: Scope) -> None:
    # PostgreSQL stores no NUL, and no name in Clew has control characters.
    for part in (scope["path"].encode("utf-8", "replace"), unquote_to_bytes(scope["query_string"])):
        if any(byte < 32 or byte == 127 for byte in part):
            raise NotUnderstood("The address contains control characters.", "Remove them.")


def keep_slashes(scope: Scope) -> Scope:
    """The server decodes the path before the route is looked up; `github:acme%2Fapp` would become two segments."""
    raw = scope.get("raw_path") or b""
    if _ENCODED_SLASH.search(raw) is None:
        return scope
    return {**scope, "path": unquote(_ENCODED_SLASH.sub(_KEPT.encode(), raw))}


def with_slashes(text: str) -> str:
    """A part of the path as it was meant."""
    return text.replace(_KEPT, "/")
