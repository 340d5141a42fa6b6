"""Failures of a turn: what Claude Code's last line says of one, in our words."""

from collections.abc import Mapping
from typing import Any

from clew.kernel import Instant
from clew.ports.events import ErrorCode, Failed

_BY_STATUS: Mapping[int, ErrorCode] = {
    400: ErrorCode.BAD_REQUEST,
    401: ErrorCode.NOT_ALLOWED,
    403: ErrorCode.NOT_ALLOWED,
    404: ErrorCode.BAD_REQUEST,
    413: ErrorCode.BAD_REQUEST,
    429: ErrorCode.USAGE_LIMIT,
}

# Where no answer came there is no status; the kind of error is all there is.
_BY_KIND: Mapping[str, ErrorCode] = {
    "authentication_failed": ErrorCode.NOT_ALLOWED,
    "billing_error": ErrorCode.NOT_ALLOWED,
    "invalid_request": ErrorCode.BAD_REQUEST,
    "model_not_found": ErrorCode.BAD_REQUEST,
    "rate_limit": ErrorCode.USAGE_LIMIT,
    "server_error": ErrorCode.MODEL_UNREACHABLE,
}

_RETRYABLE = frozenset(
    {
        ErrorCode.MODEL_UNREACHABLE,
        ErrorCode.MODEL_FAILED,
        ErrorCode.USAGE_LIMIT,
        ErrorCode.PROGRAM_ENDED,
        ErrorCode.TOO_SLOW,
    }
)


def failure(
    code: ErrorCode, words: str, reset_at: Instant | None = None, raw: Mapping[str, Any] | None = None
) -> Failed:
    return Failed(code, words, code in _RETRYABLE, reset_at, raw=raw or {})


def failure_in(result: Mapping[str, Any], kind: str | None, reset_at: Instant | None) -> Failed | None:
    """None when the turn ended well. `subtype` says success of failures too; `is_error` does not."""
    if not result.get("is_error"):
        return None
    code = code_of(result.get("api_error_status"), kind, ErrorCode.UNKNOWN)
    errors = "; ".join(str(each) for each in result.get("errors") or ())
    words = str(result.get("result") or errors or result.get("subtype") or "The turn failed.")
    return failure(code, words, reset_at if code is ErrorCode.USAGE_LIMIT else None, result)


def code_of(status: object, kind: str | None, otherwise: ErrorCode) -> ErrorCode:
    if isinstance(status, int):
        return _BY_STATUS.get(status, ErrorCode.MODEL_FAILED if status >= 500 else ErrorCode.BAD_REQUEST)
    return _BY_KIND.get(kind or "", otherwise)
