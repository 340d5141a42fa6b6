"""Leases and silence: how long a daemon keeps a run, when a runtime counts as gone, and when a silent run is ended.

Every instant is the database's. A server that was down has received nothing, so after its start it waits as long as
usual before it calls a runtime silent.
"""

from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.ids import Instant
from clew.kernel.reason import Reason


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds: the length of a lease, the silence until a runtime counts as offline, and the grace after that."""

    lease: float = 60.0
    offline_after: float = 90.0
    grace: float = 600.0


def leased(now: Instant, patience: Patience) -> Instant:
    return now + patience.lease


def expired(until: Instant, now: Instant) -> bool:
    """A lease is valid until its end, exclusive."""
    return now >= until


class Presence(StrEnum):
    ONLINE = "online"
    OFFLINE = "offline"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Heard:
    """When a runtime last reported, and since when this server has been running."""

    last_seen: Instant
    listening_since: Instant = 0.0

    def silent_for(self, now: Instant) -> float:
        return max(0.0, now - max(self.last_seen, self.listening_since))


def presence(heard: Heard, now: Instant, patience: Patience) -> Presence:
    silent = heard.silent_for(now)
    if silent < patience.offline_after:
        return Presence.ONLINE
    return Presence.OFFLINE if silent < patience.offline_after + patience.grace else Presence.GONE


class LeaseReason(Reason):
    HELD = "lease:held", "The lease holds for {left:.0f} s more."
    GRACE = "lease:grace", "The runtime has been silent for {silent:.0f} s; its run is kept for {left:.0f} s more."
    UNANSWERED = "lease:unanswered", "The daemon never confirmed the claim, and its lease has expired."
    FORGOTTEN = "lease:forgotten", "The runtime has reported since the lease expired, but not on this run."
    GRACE_OVER = "lease:grace-over", "The runtime has been silent for {silent:.0f} s, longer than the grace period."


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a run still belongs to the daemon that claimed it; `left` is for how long at least."""

    kept: bool
    reason: LeaseReason
    silent: float = 0.0
    left: float = 0.0

    @property
    def words(self) -> str:
        return self.reason.fill(silent=self.silent, left=self.left)


def standing(until: Instant, opened: bool, heard: Heard, now: Instant, patience: Patience) -> Standing:
    """Kept while the lease is valid. A run that was opened is kept through the grace period as well."""
    until = max(until, heard.listening_since + patience.lease)
    silent = heard.silent_for(now)
    if not expired(until, now):
        return Standing(True, LeaseReason.HELD, silent, until - now)
    if not opened:
        return Standing(False, LeaseReason.UNANSWERED, silent)
    if heard.last_seen >= until:
        return Standing(False, LeaseReason.FORGOTTEN, silent)
    if presence(heard, now, patience) is Presence.GONE:
        return Standing(False, LeaseReason.GRACE_OVER, silent)
    return Standing(True, LeaseReason.GRACE, silent, patience.offline_after + patience.grace - silent)


class GonePolicy(StrEnum):
    """What happens to queued runs whose runtime does not come back."""

    SURFACE = "surface"
    MOVE = "move"


class Stranding(StrEnum):
    WAIT = "wait"
    MOVE = "move"
    SURFACE = "surface"


class StrandedReason(Reason):
    ONLINE = "stranded:no", "The runtime is online."
    MAY_RETURN = "stranded:may-return", "The runtime is offline and may come back; the run waits for it."
    MOVED = "stranded:moved", "The runtime is gone; the policy moves its queued runs to another."
    NOWHERE = "stranded:nowhere", "The runtime is gone, and no other can take the run; a person has to choose."
    SURFACED = "stranded:surfaced", "The runtime is gone; a person decides whether the run waits or moves."


def stranded(where: Presence, removed: bool, policy: GonePolicy, elsewhere: bool) -> tuple[Stranding, StrandedReason]:
    """What a queued run does about its runtime. A runtime that a person removed counts as gone at once."""
    if not removed and where is Presence.ONLINE:
        return Stranding.WAIT, StrandedReason.ONLINE
    if not removed and where is Presence.OFFLINE:
        return Stranding.WAIT, StrandedReason.MAY_RETURN
    if policy is GonePolicy.SURFACE:
        return Stranding.SURFACE, StrandedReason.SURFACED
    if elsewhere:
        return Stranding.MOVE, StrandedReason.MOVED
    return Stranding.SURFACE, StrandedReason.NOWHERE


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """Seconds without output until a run is flagged, and until it is ended. Most providers end a silent turn before."""

    flag_after: float = 300.0
    end_after: float = 3600.0


class SilenceReason(Reason):
    SPEAKING = "silence:none", "Last output {silent:.0f} s ago: {last}"
    WAITING = "silence:waiting", "It waits for an answer, so its silence does not count. Last output: {last}"
    FLAGGED = (
        "silence:flagged",
        "No output for {silent:.0f} s. The turn is ended in {left:.0f} s if nothing comes. Last: {last}",
    )
    ENDED = "silence:ended", "Ended: no output for {silent:.0f} s. Last: {last}"


@dataclass(frozen=True, slots=True)
class Silence:
    """What a run's silence means; `last` is its last output. `left`: seconds until it is ended if nothing comes."""

    reason: SilenceReason
    silent: float
    last: str
    left: float

    @property
    def ends(self) -> bool:
        return self.reason is SilenceReason.ENDED

    @property
    def flagged(self) -> bool:
        return self.reason is SilenceReason.FLAGGED

    @property
    def words(self) -> str:
        last = self.last or "nothing at all"
        return self.reason.fill(silent=self.silent, left=self.left, last=last)


def silence(
    last_at: Instant, last: str, waiting: bool, now: Instant, limits: SilenceLimits, ends_in: float | None = None
) -> Silence:
    """Flagged first, then ended. Silence does not count while the run waits for a person. `ends_in`: seconds until its
    provider ends the turn, where it does so itself."""
    silent = max(0.0, now - last_at)
    left = max(0.0, limits.end_after - silent)
    left = left if ends_in is None else max(0.0, min(left, ends_in))
    if waiting:
        reason = SilenceReason.WAITING
    elif silent >= limits.end_after:
        reason = SilenceReason.ENDED
    elif silent >= limits.flag_after:
        reason = SilenceReason.FLAGGED
    else:
        reason = SilenceReason.SPEAKING
    return Silence(reason, silent, last, left)
