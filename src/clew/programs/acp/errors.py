"""Why a turn failed, read from what is structured in an agent's error: its code, and a status of HTTP in its data."""

from collections.abc import Iterator, Mapping
from typing import Any

from clew.ports.events import ErrorCode, Failed
from clew.programs.rpc import CallRefused
from clew.programs.secrets import Redactor

_LOGIN_NEEDED = -32000
_STATUS = ("status", "statusCode", "httpStatusCode", "http_status_code", "status_code")
_RESET = ("resetAt", "resetsAt", "reset_at", "resets_at")


def failure(refusal: CallRefused, redactor: Redactor) -> Failed:
    """Only a structured sign tells what it was; words alone leave it unknown, and unknown is not tried again."""
    fields = dict(_fields(refusal.data))
    status = next((fields[name] for name in _STATUS if isinstance(fields.get(name), int)), None)
    reset = next((float(fields[name]) for name in _RESET if isinstance(fields.get(name), int | float)), None)
    details = fields.get("details")
    words = (
        f"{refusal.words} ({details})" if isinstance(details, str) and details not in refusal.words else refusal.words
    )
    code, retryable = _meaning(refusal.code, status)
    raw = redactor.value({"code": refusal.code, "message": refusal.words, "data": refusal.data})
    return Failed(code, redactor.text(words), retryable, reset, raw=raw)


def _meaning(code: int, status: int | None) -> tuple[ErrorCode, bool]:
    match status:
        case 401 | 403:
            return ErrorCode.NOT_ALLOWED, False
        case 429:
            return ErrorCode.USAGE_LIMIT, True
        case int() if status >= 500:
            return ErrorCode.MODEL_FAILED, True
        case int() if status >= 400:
            return ErrorCode.BAD_REQUEST, False
    return (ErrorCode.NOT_ALLOWED if code == _LOGIN_NEEDED else ErrorCode.UNKNOWN), False


def _fields(data: Any) -> Iterator[tuple[str, Any]]:
    """What is named anywhere in it, the outermost last so that it counts."""
    if isinstance(data, list):
        for each in data:
            yield from _fields(each)
    if isinstance(data, Mapping):
        for each in data.values():
            yield from _fields(each)
        yield from data.items()
