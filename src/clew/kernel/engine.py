"""A failed context engine: the run is held or another engine takes over, as configured, with the reason recorded."""

from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.reason import Reason


class EnginePolicy(StrEnum):
    HOLD = "hold"
    FALL_BACK = "fall-back"


class EngineReason(Reason):
    HELD = "engine:held", "The context engine {engine} failed, and the run is held as configured: {why}"
    FELL_BACK = "engine:fell-back", "The context engine {engine} failed, and {fallback} takes over as configured: {why}"
    NO_FALLBACK = "engine:no-fallback", "The context engine {engine} failed, and none is left to take over: {why}"


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """The answer. `fallback` is the engine that takes over, None when the run is held."""

    fallback: str | None
    reason: EngineReason
    words: str


def on_engine_failure(policy: EnginePolicy, engine: str, why: str, fallback: str | None) -> EngineFailure:
    """An engine is not its own fallback: when the last one fails, the run is held whatever the policy says."""
    reason = _reason(policy, engine, fallback)
    taker = fallback if reason is EngineReason.FELL_BACK else None
    return EngineFailure(taker, reason, reason.fill(engine=engine, fallback=taker, why=why))


def _reason(policy: EnginePolicy, engine: str, fallback: str | None) -> EngineReason:
    match policy:
        case EnginePolicy.HOLD:
            return EngineReason.HELD
        case EnginePolicy.FALL_BACK:
            return EngineReason.NO_FALLBACK if fallback in (None, engine) else EngineReason.FELL_BACK
