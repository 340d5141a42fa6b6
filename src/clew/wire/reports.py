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
    RunId,
    RunState,
)
from clew.wire.orders import Entry


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that its agent can find again from another process: only then is it pinned.

    It was told the journal after `begins`, and of what came before only `also`. `floor` is the plan's, when it cut
    the lane's history off.
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
class Report:
    """What happened since the last one. `told` says that the prompt is about to go out, and how far into the journal
    it tells: nothing may be sent before this report was answered. `settled` are the plans that probes led to."""

    run: RunId
    attempt: int
    opens: bool = False
    settled: tuple[Plan, ...] = ()
    landed: Landed | None = None
    told: EntrySeq | None = None
    pin: NewSession | None = None
    tool_ran: bool = False
    asks: tuple[Asked, ...] = ()
    answered: bool = False
    reopens: bool = False
    events: tuple[RunEventRecord, ...] = ()
    patience: Patience = Patience()


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
    otherwise: what the session of the last of them is to be told, instead of what the order said.
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
