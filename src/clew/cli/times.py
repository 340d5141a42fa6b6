"""Times and durations: parsing and formatting."""

import re
import sys
import time
from datetime import UTC, datetime

from clew.cli.misuse import Misused


class BadDuration(Misused):
    code = "cli:bad-duration"


_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGO = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_LONGEST = 100 * 365 * 86_400
_SHOWN = 20
_FORM = "Write it like 45s, 30m, 1h30m, 7d or 2w."


def moment(at: float | None) -> str:
    """Relative on a terminal, exact elsewhere."""
    if at is None:
        return ""
    return ago(at, time.time()) if sys.stdout.isatty() else exactly(at)


def clock(at: float) -> str:
    """The time of day on a terminal, exact elsewhere."""
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S") if sys.stdout.isatty() else exactly(at)


def exactly(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def ago(at: float, now: float) -> str:
    passed = abs(now - at)
    if passed < 1:
        return "now"
    unit, name = next((unit, name) for unit, name in _AGO if passed >= unit)
    said = f"{int(passed // unit)} {name}"
    return f"{said} ago" if at < now else f"in {said}"


def until(at: float, now: float) -> str:
    """A time to come in the words that people use: until 14:20, in 3 h. Another day is named."""
    then, today = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    day = "" if then.date() == today.date() else then.strftime("%a %d %b ").replace(" 0", " ")
    left = ago(at, now) if at - now >= 1 else "due now"
    return f"until {day}{then:%H:%M}, {left}"


def lasted(start: float | None, end: float | None) -> str:
    if start is None:
        return ""
    seconds = max(0.0, (time.time() if end is None else end) - start)
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else every(round(seconds))


def seconds_of(words: str) -> float:
    """Parses 45s, 30m, 1h30m, 7d, 2w."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([smhdw])", words.strip().lower())
    whole = re.fullmatch(r"(?:\d+(?:\.\d+)?\s*[smhdw]\s*)+", words.strip().lower())
    if not whole:
        raise BadDuration(f"{words!r} is not a duration.", _FORM)
    total = sum(float(count) * _UNITS[unit] for count, unit in parts)
    if not 0 < total <= _LONGEST:
        shown = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
        raise BadDuration(f"A duration is more than 0 and at most 100 years (got {shown}).", _FORM)
    return total


def every(seconds: float) -> str:
    """Formats seconds: 90 is 1m30s."""
    said, left = "", round(seconds)
    for unit in ("w", "d", "h", "m", "s"):
        count, left = divmod(left, _UNITS[unit])
        said += f"{count}{unit}" if count else ""
    return said or f"{seconds:g}s"
