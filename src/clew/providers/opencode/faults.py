"""What goes wrong with OpenCode: its own faults, and why a turn failed."""

import re
from collections.abc import Mapping
from typing import Any

from clew.kernel import Instant
from clew.ports.events import ErrorCode, Failed
from clew.programs.faults import ProgramEnded, Refused
from clew.programs.secrets import Redactor
from clew.providers.opencode.messages import Json


class SessionMissing(Refused):
    code = "opencode:session-missing"


class SessionDiverged(Refused):
    code = "opencode:session-diverged"


class CutOff(ProgramEnded):
    """The server ended during a call that must not be repeated: the call may have taken effect."""

    code = "opencode:cut-off"


class ModelUnknown(Refused):
    code = "opencode:model-unknown"


class NotListening(ProgramEnded):
    """The connection was refused, so the server got nothing of the call."""

    code = "opencode:not-listening"


ABORTED = "MessageAbortedError"

# While OpenCode retries, it reports only the text of the last failure.
_LIMITED = re.compile(r"\b429\b|rate.?limit|too many requests|usage limit|quota|limit reached|exhausted", re.IGNORECASE)
_UNREACHED = re.compile(
    r"connect|socket|network|fetch failed|econn|enotfound|eai_again|timed? ?out|terminated|reset", re.IGNORECASE
)

_NAMED: Mapping[str, tuple[ErrorCode, bool]] = {
    "ProviderAuthError": (ErrorCode.NOT_ALLOWED, False),
    "ContextOverflowError": (ErrorCode.BAD_REQUEST, False),
    "ContentFilterError": (ErrorCode.BAD_REQUEST, False),
    "MessageOutputLengthError": (ErrorCode.BAD_REQUEST, False),
    "StructuredOutputError": (ErrorCode.MODEL_FAILED, True),
}


def failed(error: Json, redactor: Redactor, now: Instant) -> Failed:
    """A failure after which OpenCode does not retry."""
    name, data = str(error.get("name", "")), error.get("data")
    details: Json = data if isinstance(data, dict) else {}
    code, again, reset = _meaning(name, details, now)
    words = redactor.text(str(details.get("message") or name or "OpenCode does not say why."))
    # Without the headers and the body of the raw error, which may hold anything.
    return Failed(code, words, again, reset, raw={"name": name, "status": details.get("statusCode")})


def _meaning(name: str, details: Json, now: Instant) -> tuple[ErrorCode, bool, Instant | None]:
    if name in _NAMED:
        return (*_NAMED[name], None)
    match details.get("statusCode"):
        case 401 | 403:
            return ErrorCode.NOT_ALLOWED, False, None
        case 402:
            return ErrorCode.USAGE_LIMIT, True, None
        case 429:
            return ErrorCode.USAGE_LIMIT, True, _retry_after(details.get("responseHeaders"), now)
        case int(status) if status >= 500:
            return ErrorCode.MODEL_FAILED, True, None
        case int():
            return ErrorCode.BAD_REQUEST, False, None
        case _ if name == "APIError":
            return ErrorCode.MODEL_UNREACHABLE, True, None
        case _:
            return ErrorCode.UNKNOWN, False, None


def gave_up(words: str, seconds: float, redactor: Redactor, reset: Instant | None = None) -> Failed:
    """Clew ends a turn in which OpenCode would go on to retry for too long."""
    code = ErrorCode.MODEL_FAILED
    if reset is not None or _LIMITED.search(words):
        code = ErrorCode.USAGE_LIMIT
    elif _UNREACHED.search(words):
        code = ErrorCode.MODEL_UNREACHABLE
    said = f"The model failed again and again for {seconds:g} s: {redactor.text(words)}"
    return Failed(code, said, retryable=True, reset_at=reset)


def _retry_after(headers: Any, now: Instant) -> Instant | None:
    try:
        return now + float(headers["retry-after"])
    except (KeyError, TypeError, ValueError):
        return None
