"""What OpenCode shows to the providers of models, as one short digest: another one tells that a key was changed."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from clew.programs.json_lines import loads
from clew.providers.opencode.home import data

_NAMES = re.compile(r"_API_(KEY|TOKEN)$|_ACCESS_(KEY|TOKEN)(_ID)?$|_BEARER_TOKEN(_|$)")
_CONTENT = "OPENCODE_AUTH_CONTENT"
"""The variable that OpenCode reads instead of its file, where it is set."""
_KEYS = ("key", "token")
"""What stays the same until a person changes it. The tokens of a login are new every few hours; its account stays."""
_LOGIN = ("accountId", "enterpriseUrl")


def credential(environment: Mapping[str, str]) -> str | None:
    """`key:` and eight letters; None where there is no key at all."""
    found = sorted([*_variables(environment), *_logins(environment)])
    return f"key:{hashlib.sha256(orjson.dumps(found)).hexdigest()[:8]}" if found else None


def _variables(environment: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    yield from (("variable", name, value) for name, value in environment.items() if value and _NAMES.search(name))


def _logins(environment: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for provider, held in _kept(environment).items():
        if isinstance(held, dict):
            kind = str(held.get("type", ""))
            names = _LOGIN if kind == "oauth" else _KEYS
            yield ("file", str(provider), kind, *(str(held.get(name, "")) for name in names))


def _kept(environment: Mapping[str, str]) -> dict[str, Any]:
    try:
        value = loads(environment.get(_CONTENT, "").encode() or (data(environment) / "auth.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
