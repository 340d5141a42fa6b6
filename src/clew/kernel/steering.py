"""Steering: which wakes an agent is told of during its running turn, and what happens to those it does not take."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from clew.kernel.admission import AdmissionReason, Carried
from clew.kernel.ids import EntrySeq, Instant, WakeId
from clew.kernel.plan import CatchUp, Outcome, Plan
from clew.kernel.reason import Reason
from clew.kernel.wake import Freshness, Wake, WakeEnd, WakeState, ready


class SteerEvent(StrEnum):
    """Tell: the run takes the wake, before anything is sent to the agent. Take, refuse: whether the agent took it. End:
    the agent took it in a run that a person has stopped."""

    TELL = "tell"
    TAKE = "take"
    END = "end"
    REFUSE = "refuse"


STEER_TABLE: Mapping[tuple[WakeState, SteerEvent], tuple[WakeState, Reason]] = {
    (WakeState.PENDING, SteerEvent.TELL): (WakeState.CLAIMED, Carried.STEERING),
    (WakeState.CLAIMED, SteerEvent.TAKE): (WakeState.CLAIMED, Carried.STEERED),
    (WakeState.CLAIMED, SteerEvent.END): (WakeState.CANCELLED, WakeEnd.BY_USER),
    (WakeState.CLAIMED, SteerEvent.REFUSE): (WakeState.PENDING, AdmissionReason.NOT_STEERED),
}
"""A pair that is not listed changes nothing. Of the claimed wakes, only those that are being told are meant. When a run
ends without an answer about them, they count as refused."""


def to_steer(pending: Iterable[Wake], asked: Collection[WakeId], told: EntrySeq, now: Instant) -> tuple[Wake, ...]:
    """The wakes to tell the agent of, in order of arrival: those in `asked`, and any that were said before them.

    A session has seen the journal up to one entry, so nothing in between can be left out. Wakes that ask for another
    session, or for an entry from before this turn, wait for the next run.
    """
    fit = [wake for wake in ready(pending, now) if _fits(wake, told)]
    through = max((wake.entries[-1] for wake in fit if wake.id in asked), default=told)
    return tuple(wake for wake in fit if wake.entries[-1] <= through)


def _fits(wake: Wake, told: EntrySeq) -> bool:
    same_session = wake.freshness is Freshness.FOLLOW_POLICY and wake.resume_run is None
    return same_session and bool(wake.entries) and min(wake.entries) > told


def steered_plan(plan: Plan, after: EntrySeq, through: EntrySeq, act_on: Sequence[EntrySeq]) -> Plan:
    """The plan for messages within a running turn: the same session, which has seen everything before them."""
    catch_up = CatchUp(after, through)
    return replace(plan, outcome=Outcome.RESUME, catch_up=catch_up, kept=(), act_on=tuple(act_on), notices=())
