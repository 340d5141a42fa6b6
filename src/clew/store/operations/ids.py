"""Ids: new ones sort by the time they were made, so that an index grows at its end; derived ones are repeatable."""

import hashlib
import secrets
import time


def new_id(prefix: str) -> str:
    """A unique id: the time in microseconds, then 56 random bits."""
    return f"{prefix}_{time.time_ns() // 1_000:014x}{secrets.token_hex(7)}"


def first_id(prefix: str, at: float) -> str:
    """A value that sorts before every id made at that time or later, and after all earlier ones."""
    return f"{prefix}_{max(0, int(at * 1_000_000)):014x}"


def asked_again(wake: str) -> str:
    """The id of the wake that a person's retry makes of an unserved one. Derived, so that two retries make one wake."""
    return derived_id("wk", "again", wake)


def derived_id(prefix: str, *parts: str) -> str:
    """The same parts always give the same id."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return f"{prefix}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
