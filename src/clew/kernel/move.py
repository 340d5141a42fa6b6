"""A move of a session between machines: the steps, who may write at each, and how to go on after a crash."""

from collections.abc import Mapping
from enum import StrEnum

from clew.kernel.reason import Reason


class MoveState(StrEnum):
    """Sealed: the source wrote its archive and writes no more. Landed: the target restored it.

    Verified: the target's agent says that it is this session. Committed: the lane's session is the target's.
    """

    IDLE = "idle"
    SEALED = "sealed"
    LANDED = "landed"
    VERIFIED = "verified"
    COMMITTED = "committed"


class MoveEvent(StrEnum):
    SEAL = "seal"
    LAND = "land"
    VERIFY = "verify"
    COMMIT = "commit"
    ABORT = "abort"


class Side(StrEnum):
    SOURCE = "source"
    TARGET = "target"
    NOBODY = "nobody"


MOVE_TABLE: Mapping[tuple[MoveState, MoveEvent], MoveState] = {
    (MoveState.IDLE, MoveEvent.SEAL): MoveState.SEALED,
    (MoveState.SEALED, MoveEvent.LAND): MoveState.LANDED,
    (MoveState.SEALED, MoveEvent.ABORT): MoveState.IDLE,
    (MoveState.LANDED, MoveEvent.VERIFY): MoveState.VERIFIED,
    (MoveState.LANDED, MoveEvent.ABORT): MoveState.IDLE,
    (MoveState.VERIFIED, MoveEvent.COMMIT): MoveState.COMMITTED,
    (MoveState.VERIFIED, MoveEvent.ABORT): MoveState.IDLE,
}
"""A pair that is not listed changes nothing: a committed move is over, and going back is another move."""

WRITERS: Mapping[MoveState, Side] = {
    MoveState.IDLE: Side.SOURCE,
    MoveState.SEALED: Side.NOBODY,
    MoveState.LANDED: Side.NOBODY,
    MoveState.VERIFIED: Side.NOBODY,
    MoveState.COMMITTED: Side.TARGET,
}


class MoveStep(Reason):
    """What to do next with a move that was found in some state."""

    SOURCE_GOES_ON = "move:source-goes-on", "Nothing has moved; the source goes on."
    LAND = "move:land", "The archive is sealed; it is restored on the target, again if need be."
    VERIFY = "move:verify", "The archive has landed; the target's agent is asked which session it opens."
    COMMIT = "move:commit", "The target holds the session; the lane is given to it."
    ABORT = "move:abort", "The target does not answer; what landed is set aside and the source goes on."
    TARGET_GOES_ON = "move:target-goes-on", "The move is done; the target goes on and the source's copy is retired."


RECOVERY: Mapping[tuple[MoveState, bool], MoveStep] = {
    (MoveState.IDLE, True): MoveStep.SOURCE_GOES_ON,
    (MoveState.IDLE, False): MoveStep.SOURCE_GOES_ON,
    (MoveState.SEALED, True): MoveStep.LAND,
    (MoveState.SEALED, False): MoveStep.ABORT,
    (MoveState.LANDED, True): MoveStep.VERIFY,
    (MoveState.LANDED, False): MoveStep.ABORT,
    (MoveState.VERIFIED, True): MoveStep.COMMIT,
    (MoveState.VERIFIED, False): MoveStep.ABORT,
    (MoveState.COMMITTED, True): MoveStep.TARGET_GOES_ON,
    (MoveState.COMMITTED, False): MoveStep.TARGET_GOES_ON,
}
"""Every step can be done twice, so whoever finds a move after a crash does the next one."""


def advance_move(state: MoveState, event: MoveEvent) -> MoveState | None:
    """The next state, or None when the event cannot happen in this one."""
    return MOVE_TABLE.get((state, event))


def writer(state: MoveState) -> Side:
    """The one side that may write, or nobody; there is no value for both."""
    return WRITERS[state]


def recover(state: MoveState, target_answers: bool = True) -> MoveStep:
    """What to do next after a crash in this state."""
    return RECOVERY[state, target_answers]
