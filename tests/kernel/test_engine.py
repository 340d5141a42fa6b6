"""A failing context engine: held or taken over, and always said."""

import pytest

from clew.kernel.context import EngineFailure, EnginePolicy, EngineReason, on_engine_failure

pytestmark = pytest.mark.case("X03")


def test_the_run_is_held_as_configured() -> None:
    assert on_engine_failure(EnginePolicy.HOLD, "mine", "{boom}", "plain") == EngineFailure(
        None, EngineReason.HELD, "The context engine mine failed, and the run is held as configured: {boom}"
    )


def test_another_engine_takes_over_as_configured() -> None:
    assert on_engine_failure(EnginePolicy.FALL_BACK, "mine", "boom", "plain") == EngineFailure(
        "plain", EngineReason.FELL_BACK, "The context engine mine failed, and plain takes over as configured: boom"
    )


@pytest.mark.parametrize("fallback", [None, "mine"])
def test_when_none_is_left_the_run_is_held(fallback: str | None) -> None:
    assert on_engine_failure(EnginePolicy.FALL_BACK, "mine", "boom", fallback) == EngineFailure(
        None, EngineReason.NO_FALLBACK, "The context engine mine failed, and none is left to take over: boom"
    )


def test_the_codes_are_these() -> None:
    assert [reason.code for reason in EngineReason] == ["engine:held", "engine:fell-back", "engine:no-fallback"]
