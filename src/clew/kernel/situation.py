"""The situation: everything a decision is made from, as one value that can be recorded and replayed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from clew.kernel.capability import Capabilities
from clew.kernel.evidence import Unheard
from clew.kernel.ids import (
    NOTHING_SEEN,
    AccountId,
    EntrySeq,
    Instant,
    LaneId,
    MachineId,
    NativeId,
    ProviderName,
    RunId,
    RuntimeId,
    ScopeKey,
)
from clew.kernel.permission import PermissionMode
from clew.kernel.place import PlaceFacts
from clew.kernel.probe import Probed
from clew.kernel.session import UNLIMITED, Session, SessionLimits, account_words
from clew.kernel.wake import Demand, ResetPolicy


class ModelChange(StrEnum):
    """What becomes of a session whose agent now has another model."""

    FOLLOW = "follow"
    RESEED = "reseed"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a user may set. No setting loosens what must match for a session to be resumed."""

    reset: ResetPolicy = field(default_factory=ResetPolicy)
    limits: SessionLimits = UNLIMITED
    on_model_change: ModelChange = ModelChange.FOLLOW
    parallel: bool = False
    transfer: bool = True
    history_across_accounts: bool = False


@dataclass(frozen=True, slots=True)
class Here:
    """Where the run takes place and as whom: the run's runtime, never the agent's current one.

    Account, credential and capabilities are those of the agent as it is started there. `account` is what the agent
    itself names; `credential` is a digest of the key it is given. `agent` is what the agent is called.
    """

    machine: MachineId
    runtime: RuntimeId
    provider: ProviderName
    capabilities: Capabilities
    account: AccountId | None = None
    model: str | None = None
    mode: PermissionMode = PermissionMode.READ
    mode_limits: tuple[PermissionMode, ...] = ()
    instructions: str | None = None
    tools: str | None = None
    credential: str | None = None
    agent: str = ""

    @property
    def whose(self) -> str:
        """With which account the run works, in words."""
        return account_words(self.account, self.credential)


CANDIDATES = 20
"""How many of a lane's newest generations a caller looks up. Older ones never change a decision worth making."""


class Source(StrEnum):
    """Where candidate sessions come from, in the order in which they are asked."""

    ASKED = "asked"
    LANE = "lane"


class ReadState(StrEnum):
    ANSWERED = "answered"
    EMPTY = "empty"
    NOT_READ = "not-read"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SourceRead:
    source: Source
    state: ReadState
    sessions: tuple[Session, ...] = ()
    detail: str = ""


def gather(demand: Demand, read: Callable[[Source], Sequence[Session]]) -> tuple[SourceRead, ...]:
    """Ask the sources in order until one answers; a demand for a fresh start asks none.

    A fresh start by policy asks all the same: nothing of it may be used, but another policy can be tried on it later.
    What `read` raises goes through to the caller: a failed look-up must send the claim back, not start afresh.
    """
    reads: list[SourceRead] = []
    answered = "a fresh start was demanded" if demand.fresh_asked_by is not None else ""
    for source in Source:
        if answered:
            reads.append(SourceRead(source, ReadState.NOT_READ, detail=answered))
        elif source is Source.ASKED and demand.resume_run is None:
            reads.append(SourceRead(source, ReadState.NOT_READ, detail="nobody asked for an earlier run"))
        else:
            sessions = tuple(read(source))
            reads.append(SourceRead(source, ReadState.ANSWERED if sessions else ReadState.EMPTY, sessions))
            if sessions or source is Source.ASKED:
                answered = f"the source before it ({source}) decides"
    return tuple(reads)


def decisive(demand: Demand) -> Source:
    """The source whose sessions may serve; the others are not even looked at."""
    return Source.LANE if demand.resume_run is None else Source.ASKED


def is_reset(demand: Demand, policy: Policy) -> bool:
    """A fresh start was demanded, or a reason resets by policy and nobody asked for an earlier run."""
    if demand.fresh_asked_by is not None:
        return True
    return demand.resume_run is None and not policy.reset.reasons.isdisjoint(demand.reasons)


@dataclass(frozen=True, slots=True)
class Floor:
    """Where a lane's history begins since its last fresh start: later generations only, later entries only.

    `kept` are earlier entries that the fresh start itself was told, and so belong to the new history.
    """

    generation: int = 0
    entry: EntrySeq = NOTHING_SEEN
    kept: tuple[EntrySeq, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """What was known when a run was decided.

    `head` is the last entry of the thread's journal; `floor` is what the lane's last fresh start left. `fresh_id` is
    an id to give a new session where the provider takes one. `machinery_gone` names what of the last run's background
    work did not survive. `probes` is what agents answered since; a plan is settled by deciding again with one more.
    `told_before` is whether a run of the lane has told its agent something, in whatever session that was. `unheard` are
    the lane's runs of whose prompt nobody knows whether the agent took it: that is asked before anything else.
    """

    run: RunId
    lane: LaneId
    scope: ScopeKey
    here: Here
    demand: Demand
    sources: tuple[SourceRead, ...]
    head: EntrySeq
    place: PlaceFacts
    policy: Policy = field(default_factory=Policy)
    now: Instant = 0.0
    floor: Floor = Floor()
    fresh_id: NativeId | None = None
    machinery_gone: tuple[str, ...] = ()
    probes: tuple[Probed, ...] = ()
    told_before: bool = False
    unheard: tuple[Unheard, ...] = ()

    def __post_init__(self) -> None:
        wants = max(self.demand.entries, default=self.head)
        if wants > self.head:
            raise ValueError(f"entry {wants} is to be answered, but the journal ends at {self.head}")
        if len({read.source for read in self.sources}) < len(self.sources):
            raise ValueError("a source was read twice: pass one read of each")
