"""Failures: what Codex says of a turn that went wrong, as far as a retry depends on it."""

import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from clew.kernel import Instant
from clew.ports.events import ErrorCode, Failed

_Meaning = tuple[ErrorCode, bool]

_NAMED: Mapping[str, _Meaning] = {
    "usageLimitExceeded": (ErrorCode.USAGE_LIMIT, True),
    "rateLimitExceeded": (ErrorCode.USAGE_LIMIT, True),
    "sessionBudgetExceeded": (ErrorCode.USAGE_LIMIT, False),
    "internalServerError": (ErrorCode.MODEL_FAILED, True),
    "serverOverloaded": (ErrorCode.MODEL_FAILED, True),
    "flexUnavailable": (ErrorCode.MODEL_FAILED, True),
    "policyCapacityUnavailable": (ErrorCode.MODEL_FAILED, True),
    "unauthorized": (ErrorCode.NOT_ALLOWED, False),
    "cyberPolicy": (ErrorCode.NOT_ALLOWED, False),
    "misalignmentPolicyViolation": (ErrorCode.NOT_ALLOWED, False),
    "tooManyDenials": (ErrorCode.NOT_ALLOWED, False),
    "badRequest": (ErrorCode.BAD_REQUEST, False),
    "contextWindowExceeded": (ErrorCode.BAD_REQUEST, False),
    "modelNotFound": (ErrorCode.BAD_REQUEST, False),
    "activeTurnNotSteerable": (ErrorCode.BAD_REQUEST, False),
}
_BY_STATUS = frozenset(
    {
        "httpConnectionFailed",
        "responseStreamConnectionFailed",
        "responseStreamDisconnected",
        "responseTooManyFailedAttempts",
    }
)
_WORTH_ANOTHER_TRY = frozenset({408, 409, 425})
_RESET = re.compile(
    r"try again at (?:(?P<date>[A-Z][a-z]{2} \d{1,2})(?:st|nd|rd|th), (?P<year>\d{4}) )?"
    r"(?P<hour>\d{1,2}:\d{2} [AP]M)\b"
)


def failed(error: Mapping[str, Any], retried: bool, windows: Mapping[str, Any], raw: Mapping[str, Any]) -> Failed:
    """`retried` tells that the program itself had tried again; `windows` are the last usage limits that it told."""
    words = str(error.get("message") or "Codex did not say why.")
    code, retryable = _meaning(error.get("codexErrorInfo"), words, retried)
    ends = reset_at(words, windows, time.time()) if code is ErrorCode.USAGE_LIMIT else None
    return Failed(code, words, retryable, ends, raw=raw)


def _meaning(info: Any, words: str, retried: bool) -> _Meaning:
    match info:
        case "other" | None if retried:
            # It says no more when a stream breaks; a request that is refused it does not try again.
            return ErrorCode.MODEL_UNREACHABLE, True
        case "other" | None if _is_error_body(words):
            return ErrorCode.BAD_REQUEST, False
        case str():
            return _NAMED.get(info, (ErrorCode.UNKNOWN, False))
        case dict() if info:
            name, about = next(iter(info.items()))
            status = about.get("httpStatusCode") if isinstance(about, Mapping) else None
            return _by_status(status) if name in _BY_STATUS else _NAMED.get(str(name), (ErrorCode.UNKNOWN, False))
        case _:
            return ErrorCode.UNKNOWN, False


def _by_status(status: Any) -> _Meaning:
    match status:
        case 401 | 403:
            return ErrorCode.NOT_ALLOWED, False
        case 429:
            return ErrorCode.USAGE_LIMIT, True
        case int() if status >= 500 or status in _WORTH_ANOTHER_TRY:
            return ErrorCode.MODEL_FAILED, True
        case int():
            return ErrorCode.BAD_REQUEST, False
        case _:
            return ErrorCode.MODEL_UNREACHABLE, True


def _is_error_body(words: str) -> bool:
    """A model's refusal of a request comes through as the body it sent."""
    try:
        body = orjson.loads(words)
    except orjson.JSONDecodeError:
        return False
    return isinstance(body, dict) and "error" in body


def reset_at(words: str, windows: Mapping[str, Any], now: Instant) -> Instant | None:
    """When the limit ends: by the windows that are used up, else by the sentence, in the machine's own time."""
    kept = (windows.get(name) for name in ("primary", "secondary"))
    full = [each for each in kept if isinstance(each, Mapping) and each.get("usedPercent", 0) >= 100]
    ends = [float(each["resetsAt"]) for each in full if each.get("resetsAt")]
    return max(ends) if ends else _said(words, now)


def _said(words: str, now: Instant) -> Instant | None:
    found = _RESET.search(words)
    if found is None:
        return None
    today = datetime.fromtimestamp(now).astimezone()
    day = f"{found['date']} {found['year']}" if found["date"] else today.strftime("%b %d %Y")
    try:
        # The zone is put last: it may change between now and then.
        said = datetime.strptime(f"{day} {found['hour']}", "%b %d %Y %I:%M %p").astimezone()
    except ValueError:
        return None
    return said.timestamp()
