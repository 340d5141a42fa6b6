"""Pins: a run reports which session it is in, and the lane's pointer follows."""

from dataclasses import dataclass

from clew.kernel.directory import Directory
from clew.kernel.ids import NativeId, RunId, RuntimeId
from clew.kernel.reason import Reason


@dataclass(frozen=True, slots=True)
class Pin:
    """Session and runtime in one value, from one run: neither can be written without the other.

    `order` is the run's position among the lane's runs, by which a late pin is recognised. `durable`: the agent can
    find the session again from another process.
    """

    run: RunId
    order: int
    native_id: NativeId
    runtime: RuntimeId
    directory: Directory
    durable: bool = True


class PinReason(Reason):
    FIRST = "pin:first", "The lane had no session; {pin.native_id} is its first."
    SAME = "pin:same", "{pin.native_id} is the lane's session already."
    NEW_GENERATION = "pin:new-generation", "{pin.native_id} follows {held.native_id} as a new generation."
    LATE = "pin:late", "Run {pin.run} is older than the one that set {held.native_id}, which stays."
    NOT_DURABLE = "pin:not-durable", "{pin.native_id} could not be found again yet, so it is not recorded."


@dataclass(frozen=True, slots=True)
class Pinned:
    """The lane's pointer after a pin, and whether a generation is appended."""

    held: Pin | None
    appends: bool
    reason: PinReason
    words: str


def pin(held: Pin | None, new: Pin) -> Pinned:
    if not new.durable:
        reason, after = PinReason.NOT_DURABLE, held
    elif held is None:
        reason, after = PinReason.FIRST, new
    elif new.order < held.order:
        reason, after = PinReason.LATE, held
    elif (new.native_id, new.runtime) == (held.native_id, held.runtime):
        reason, after = PinReason.SAME, new
    else:
        reason, after = PinReason.NEW_GENERATION, new
    appends = reason in (PinReason.FIRST, PinReason.NEW_GENERATION)
    return Pinned(after, appends, reason, reason.fill(pin=new, held=held))
