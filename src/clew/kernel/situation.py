"""The situation: all facts of a decision in one value that can be recorded and replayed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from clew.kernel.capability import Capabilities
from clew.kernel.contract import must_be
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
    """What happens to a session when its agent gets another model."""

    FOLLOW = "follow"
    RESEED = "reseed"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a user can configure. No setting loosens what must match before a session is resumed."""

    reset: ResetPolicy = field(default_factory=ResetPolicy)
    limits: SessionLimits = UNLIMITED
    on_model_change: ModelChange = ModelChange.FOLLOW
    parallel: bool = False
    transfer: bool = True
    history_across_accounts: bool = False


@dataclass(frozen=True, slots=True)
class Here:
    """Where the run takes place, and as whom. This is the run's runtime, not the agent's current one.

    Account, credential and capabilities are those of the agent as it is started there. `account` is the one that the
    agent itself names; `credential` is a digest of the key it is given. `agent` is the agent's name.
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
        """The account the run works with, for use in a sentence."""
        return account_words(self.account, self.credential)


CANDIDATES = 20
"""How many of a lane's newest generations a caller looks up. Older ones do not change a decision in practice."""


class Source(StrEnum):
    """The sources of candidate sessions, in the order in which they are read."""

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
    """Read the sources in order until one answers. A demanded fresh start reads none.

    A fresh start by policy still reads them: the sessions are not used, but a replay can try another policy on them.
    Errors of `read` reach the caller: a failed look-up must return the claim, not start a new session.
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
    """The source whose sessions count; the other one is ignored."""
    return Source.LANE if demand.resume_run is None else Source.ASKED


def is_reset(demand: Demand, policy: Policy) -> bool:
    """A fresh start was demanded, or the policy resets for a reason and no earlier run was asked for."""
    if demand.fresh_asked_by is not None:
        return True
    return demand.resume_run is None and not policy.reset.reasons.isdisjoint(demand.reasons)


@dataclass(frozen=True, slots=True)
class Floor:
    """Where a lane's history begins after its last fresh start: only later generations and later entries count.

    `kept` are earlier entries that were given to the fresh session, and so belong to the new history.
    """

    generation: int = 0
    entry: EntrySeq = NOTHING_SEEN
    kept: tuple[EntrySeq, ...] = ()


_KINDS: tuple[tuple[str, type], ...] = (
    ("here", Here),
    ("demand", Demand),
    ("sources", tuple),
    ("head", int),
    ("place", PlaceFacts),
    ("policy", Policy),
    ("floor", Floor),
    ("probes", tuple),
)


@dataclass(frozen=True, slots=True)
class Situation:
    """The facts at the time of a decision.

    `head`: the last entry of the thread's journal. `floor`: where the history begins since the lane's last fresh start.
    `fresh_id`: an id for a new session, where the provider accepts one. `machinery_gone`: background work of the last
    run that did not survive. `probes`: the agents' answers so far; `settle` decides again with one more.
    `told_before`: a run of the lane has given its agent a prompt before, in any session. `unheard`: runs of the lane
    without evidence on whether the agent took the prompt; that is asked before anything else.
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
        for name, kind in _KINDS:
            if not isinstance(getattr(self, name), kind):
                must_be(getattr(self, name), kind, f"the field {name} of a situation")
        wants = max(self.demand.entries, default=self.head)
        if wants > self.head:
            raise ValueError(f"entry {wants} is to be answered, but the journal ends at {self.head}")
        if len({read.source for read in self.sources}) < len(self.sources):
            raise ValueError("a source was read twice: pass one read of each")
