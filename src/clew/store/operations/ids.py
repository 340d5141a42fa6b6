"""New names: in the order they are made, so that an index grows at its end."""

import hashlib
import secrets
import time


def new_id(prefix: str) -> str:
    """A name nobody else has: the time, finer than a database tells it, then chance."""
    return f"{prefix}_{time.time_ns() // 1_000:014x}{secrets.token_hex(7)}"


def first_id(prefix: str, at: float) -> str:
    """Before every name that is made at that time or later, and behind those that were made before it."""
    return f"{prefix}_{max(0, int(at * 1_000_000)):014x}"


def asked_again(wake: str) -> str:
    """The wake that a person's retry makes of one that ended unserved: asking twice is asking once."""
    return derived_id("wk", "again", wake)


def derived_id(prefix: str, *parts: str) -> str:
    """The same name for the same parts, whoever asks."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return f"{prefix}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
