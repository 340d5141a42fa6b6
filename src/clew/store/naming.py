"""New names: in the order they are made, so that an index grows at its end."""

import hashlib
import secrets
import time


def new_id(prefix: str) -> str:
    """A name nobody else has: the time, finer than a database tells it, then chance."""
    return f"{prefix}_{time.time_ns() // 1_000:014x}{secrets.token_hex(7)}"


def derived_id(prefix: str, *parts: str) -> str:
    """The same name for the same parts, whoever asks."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return f"{prefix}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
