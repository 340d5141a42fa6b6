"""What goes wrong with OpenCode: its own faults, and why a turn failed."""

import re
from collections.abc import Mapping
from typing import Any

from clew.kernel import Instant
from clew.ports.events import ErrorCode, Failed
from clew.programs.faults import ProgramEnded, Refused
from clew.programs.secrets import Redactor
from clew.providers.opencode.messages import Json


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

_NAMED: Mapping[str, ErrorCode] = {
    "ProviderAuthError": ErrorCode.NOT_ALLOWED,
    "ContextOverflowError": ErrorCode.BAD_REQUEST,
    "ContentFilterError": ErrorCode.BAD_REQUEST,
    "MessageOutputLengthError": ErrorCode.BAD_REQUEST,
    "StructuredOutputError": ErrorCode.MODEL_FAILED,
}
_UNPAID = 402


def failed(error: Json, redactor: Redactor, now: Instant) -> Failed:
    """A failure after which OpenCode does not retry."""
    name, data = str(error.get("name", "")), error.get("data")
    details: Json = data if isinstance(data, dict) else {}
    status = details.get("statusCode")
    code = _code(name, status)
    reset = _retry_after(details.get("responseHeaders"), now) if status == 429 and name not in _NAMED else None
    words = redactor.text(str(details.get("message") or name or "OpenCode does not say why."))
    # Without the headers and the body of the raw error, which may hold anything.
    return Failed(code, words, code.is_passing, reset, raw={"name": name, "status": status})


def _code(name: str, status: object) -> ErrorCode:
    if name in _NAMED:
        return _NAMED[name]
    if isinstance(status, int):
        return ErrorCode.USAGE_LIMIT if status == _UNPAID else ErrorCode.of_status(status)
    return ErrorCode.MODEL_UNREACHABLE if name == "APIError" else ErrorCode.UNKNOWN


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
