"""What a daemon says of a run while it goes, and what it is answered."""

from dataclasses import dataclass

from clew.kernel import (
    NOTHING_SEEN,
    AccountId,
    ApprovalId,
    Cursor,
    Directory,
    EntrySeq,
    Floor,
    Instant,
    Patience,
    PinReason,
    Plan,
    PromptId,
    RunId,
    RunState,
    Sent,
    Wake,
    WakeId,
)
from clew.wire.orders import Entry


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that its agent can find again from another process: only then is it pinned.

    It is told the journal after `begins`, and of what came before only `also`. `seen` is how far it has seen before the
    prompt of this run: a fork has seen what its origin has. `floor` is the plan's, when it cut the lane's history off.
    `credential` is a digest of the key that the agent is given.
    """

    cursor: Cursor
    directory: Directory
    account: AccountId | None = None
    begins: EntrySeq = NOTHING_SEEN
    also: tuple[EntrySeq, ...] = ()
    floor: Floor | None = None
    model: str | None = None
    mode: str | None = None
    instructions: str | None = None
    tools: str | None = None
    credential: str | None = None
    seen: EntrySeq = NOTHING_SEEN


@dataclass(frozen=True, slots=True)
class Prompted:
    """A prompt that is about to go out: by what its agent's store is asked for it, and for which wakes it is.

    `session` is what would be pinned if the store turns out to have taken it; None while the agent has not named its
    session. `hears` is false where the provider is declared unable to tell. `remade` is what it tells of a directory
    that was made again.
    """

    sent: Sent
    session: NewSession | None
    wakes: tuple[WakeId, ...]
    hears: bool = True
    remade: str | None = None


@dataclass(frozen=True, slots=True)
class RunEventRecord:
    """One line of a run's log. `seq` is the daemon's own count, so that a line that comes twice is kept once."""

    seq: int
    kind: str
    body: str


@dataclass(frozen=True, slots=True)
class Landed:
    """What the agent said it opened, as JSON, and what may be claimed of it; `refused` when it was not as planned."""

    landing: str
    claim: str
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """An approval that the agent waits for."""

    id: ApprovalId
    question: str
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Steer:
    """Wakes that the agent is to be told of within the turn that is going. The run carries them already; `entries` are
    all of the journal after `after` and up to `through`, so that nothing is left out in between. `id` is the
    prompt's."""

    wakes: tuple[Wake, ...]
    entries: tuple[Entry, ...]
    after: EntrySeq
    through: EntrySeq
    id: PromptId


@dataclass(frozen=True, slots=True)
class Steered:
    """What became of it: the agent took it within its turn, or was not told a word of it. Where neither is certain,
    nothing is said, and the agent's store is asked later."""

    taken: bool
    through: EntrySeq


@dataclass(frozen=True, slots=True)
class Report:
    """What happened since the last one. `told` says that the prompt is about to go out, and how far into the journal
    it tells; `prompted` is that prompt: nothing may be sent before this report was answered. `settled` are the plans
    that probes led to. `steers` asks for what is to be told within the turn; `steered` says what became of what was
    asked for before."""

    run: RunId
    attempt: int
    opens: bool = False
    settled: tuple[Plan, ...] = ()
    landed: Landed | None = None
    told: EntrySeq | None = None
    prompted: Prompted | None = None
    pin: NewSession | None = None
    tool_ran: bool = False
    asks: tuple[Asked, ...] = ()
    answered: bool = False
    reopens: bool = False
    steers: bool = False
    steered: Steered | None = None
    events: tuple[RunEventRecord, ...] = ()
    patience: Patience = Patience()

    def __post_init__(self) -> None:
        if (self.told is None) is not (self.prompted is None):
            raise ValueError("a prompt that goes out is named, so that its agent's store can be asked for it later")


@dataclass(frozen=True, slots=True)
class AnswerGiven:
    """What a person answered; `words` is what they said with it, or the answer itself where a question was asked."""

    approval: ApprovalId
    state: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Reported:
    """The answer: whether the daemon still holds the run, whether it must stop it and why, and what was answered.

    The prompt goes out only when it was reported and `may_prompt` says so. `entries` answer plans that were settled
    otherwise: what the session of the last of them is to be told, instead of what the order said. `steer` is what the
    agent is to be told now; `news` tells that there may be something to ask for.
    """

    held: bool
    state: RunState
    may_prompt: bool = False
    words: str = ""
    stop: str | None = None
    lease_until: Instant | None = None
    pinned: PinReason | None = None
    answers: tuple[AnswerGiven, ...] = ()
    entries: tuple[Entry, ...] = ()
    steer: Steer | None = None
    news: bool = False
