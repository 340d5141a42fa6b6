"""A policy that a person wrote, as JSON in a file or on stdin."""

import json
import math
from pathlib import Path
from typing import Any

from clew.ports.fault import Fault


class BadPolicy(Fault):
    code = "cli:bad-policy"


class _Repeated(ValueError):
    pass


def read_policy(file: Path | str) -> dict[str, object]:
    """From a file, or from a text that was read from stdin."""
    named = file if isinstance(file, Path) else "The text on stdin"
    try:
        text = file.read_text(encoding="utf-8") if isinstance(file, Path) else file
        policy = json.loads(text, object_pairs_hook=_each_once, parse_float=_finite, parse_constant=_finite)
    except OSError as fault:
        raise BadPolicy(f"{named} cannot be read: {fault.strerror}.", "Name a JSON file.") from fault
    except _Repeated as fault:
        raise BadPolicy(f"{named} has the field {fault} twice.", "Leave one of them out.") from fault
    except (ValueError, RecursionError) as fault:
        raise BadPolicy(f"{named} is not JSON: {fault}.", "Fix it, and try again.") from fault
    if not isinstance(policy, dict):
        raise BadPolicy(f"{named} does not contain a policy.", "It must be a JSON object, as in `clew replay --help`.")
    return policy


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Repeated(name)
        found[name] = value
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number that JSON has")
    return number
