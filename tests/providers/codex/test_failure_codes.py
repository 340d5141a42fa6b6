"""What Codex says of a failure, and what is made of it."""

from datetime import datetime
from typing import Any

import pytest

from clew.ports.events import ErrorCode
from clew.providers.codex.events import failed, reset_at

BODY = '{"error": {"message": "no", "type": "invalid_request"}}'


@pytest.mark.case("L06")
@pytest.mark.parametrize(
    ("info", "words", "retried", "code", "retryable"),
    [
        ("internalServerError", "", True, ErrorCode.MODEL_FAILED, True),
        ("serverOverloaded", "", False, ErrorCode.MODEL_FAILED, True),
        ("unauthorized", "", False, ErrorCode.NOT_ALLOWED, False),
        ("contextWindowExceeded", "", False, ErrorCode.BAD_REQUEST, False),
        ("usageLimitExceeded", "", False, ErrorCode.USAGE_LIMIT, True),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "", True, ErrorCode.NOT_ALLOWED, False),
        ({"httpConnectionFailed": {"httpStatusCode": 503}}, "", True, ErrorCode.MODEL_FAILED, True),
        ({"httpConnectionFailed": {"httpStatusCode": None}}, "", True, ErrorCode.MODEL_UNREACHABLE, True),
        ({"httpConnectionFailed": {"httpStatusCode": 422}}, "", False, ErrorCode.BAD_REQUEST, False),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, "", False, ErrorCode.USAGE_LIMIT, True),
        ({"responseStreamDisconnected": {}}, "", True, ErrorCode.MODEL_UNREACHABLE, True),
        ({"activeTurnNotSteerable": {"turnKind": "review"}}, "", False, ErrorCode.BAD_REQUEST, False),
        ("other", "stream disconnected before completion", True, ErrorCode.MODEL_UNREACHABLE, True),
        ("other", BODY, False, ErrorCode.BAD_REQUEST, False),
        ("other", "what is this?", False, ErrorCode.UNKNOWN, False),
        ("somethingOfTomorrow", "", False, ErrorCode.UNKNOWN, False),
        ({"somethingOfTomorrow": {}}, "", False, ErrorCode.UNKNOWN, False),
        (None, "", False, ErrorCode.UNKNOWN, False),
    ],
)
def test_a_failure_has_a_code(info: Any, words: str, retried: bool, code: ErrorCode, retryable: bool) -> None:
    found = failed({"codexErrorInfo": info, "message": words}, retried, {}, {})
    assert (found.code, found.retryable) == (code, retryable)
    assert found.words


NOW = datetime.fromisoformat("2026-11-16 00:57:30").timestamp()


@pytest.mark.case("L10")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("You have hit your usage limit. Visit … or try again at 1:57 AM.", "2026-11-16 01:57"),
        ("… try again at Nov 18th, 2026 11:05 PM.", "2026-11-18 23:05"),
        ("… try again at Dec 1st, 2026 12:00 AM.", "2026-12-01 00:00"),
        ("… try again later.", None),
        ("… try again at Feb 31st, 2026 1:00 AM.", None),
    ],
)
def test_the_end_of_a_limit_is_read_from_the_sentence(words: str, expected: str | None) -> None:
    found = reset_at(words, {}, NOW)
    assert found == (None if expected is None else datetime.fromisoformat(expected).timestamp())


@pytest.mark.case("L10")
def test_the_end_of_a_limit_is_that_of_the_windows_that_are_used_up() -> None:
    windows = {
        "primary": {"usedPercent": 100, "resetsAt": 2_000, "windowDurationMins": 300},
        "secondary": {"usedPercent": 40, "resetsAt": 9_000, "windowDurationMins": 10_080},
    }
    assert reset_at("try again at 1:57 AM", windows, NOW) == 2_000
    assert reset_at("no time", {"primary": None, "secondary": None}, NOW) is None
