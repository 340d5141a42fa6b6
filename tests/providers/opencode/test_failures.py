"""Why a turn failed: the code, whether another try is worth it, and when a limit ends."""

import pytest

from clew.ports.events import ErrorCode
from clew.programs.secrets import Redactor
from clew.providers.opencode.faults import failed, gave_up

PLAIN = Redactor({})


def of(name: str, **data: object) -> dict[str, object]:
    return {"name": name, "data": data}


@pytest.mark.case("L06")
@pytest.mark.parametrize(
    ("error", "code", "again"),
    [
        (of("APIError", message="no", statusCode=401), ErrorCode.NOT_ALLOWED, False),
        (of("APIError", message="no", statusCode=403), ErrorCode.NOT_ALLOWED, False),
        (of("ProviderAuthError", message="no", providerID="x"), ErrorCode.NOT_ALLOWED, False),
        (of("APIError", message="no", statusCode=400), ErrorCode.BAD_REQUEST, False),
        (of("APIError", message="no", statusCode=404), ErrorCode.BAD_REQUEST, False),
        (of("ContextOverflowError", message="too long"), ErrorCode.BAD_REQUEST, False),
        (of("APIError", message="no", statusCode=429), ErrorCode.USAGE_LIMIT, True),
        (of("APIError", message="no", statusCode=402), ErrorCode.USAGE_LIMIT, True),
        (of("APIError", message="no", statusCode=503), ErrorCode.MODEL_FAILED, True),
        (of("APIError", message="connect", isRetryable=True), ErrorCode.MODEL_UNREACHABLE, True),
        (of("UnknownError", message="what"), ErrorCode.UNKNOWN, False),
        ({}, ErrorCode.UNKNOWN, False),
    ],
)
def test_a_failure_has_its_code(error: dict[str, object], code: ErrorCode, again: bool) -> None:
    told = failed(error, PLAIN, 1000.0)
    assert (told.code, told.retryable) == (code, again)
    assert told.words


@pytest.mark.case("L10")
def test_the_end_of_a_limit_is_told_where_the_model_says_it() -> None:
    error = of("APIError", message="no", statusCode=429, responseHeaders={"retry-after": "60"})
    assert failed(error, PLAIN, 1000.0).reset_at == 1060.0
    error = of("APIError", message="no", statusCode=429, responseHeaders={"retry-after": "soon"})
    assert failed(error, PLAIN, 1000.0).reset_at is None


@pytest.mark.case("L06")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("The model fails with 429.", ErrorCode.USAGE_LIMIT),
        ("Rate limit exceeded", ErrorCode.USAGE_LIMIT),
        (
            "Cannot connect to API: Unable to connect. Is the computer able to access the url?",
            ErrorCode.MODEL_UNREACHABLE,
        ),
        ("Connection reset by server", ErrorCode.MODEL_UNREACHABLE),
        ("The model fails with 500.", ErrorCode.MODEL_FAILED),
        ("Provider is overloaded", ErrorCode.MODEL_FAILED),
    ],
)
def test_a_retry_that_is_given_up_is_told_by_its_words(words: str, code: ErrorCode) -> None:
    told = gave_up(words, 6.0, PLAIN)
    assert told.code is code
    assert told.retryable


def test_secrets_stay_out_of_a_failure() -> None:
    hiding = Redactor({"API_KEY": "sk-verysecret"})
    error = of("APIError", message="key sk-verysecret refused", statusCode=401, responseBody="sk-verysecret")
    assert "sk-verysecret" not in repr(failed(error, hiding, 0.0)) + str(failed(error, hiding, 0.0).raw)
