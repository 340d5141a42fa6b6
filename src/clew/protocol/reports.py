"""What a daemon reports of a run: while it goes, how it ended, and what the server answers."""

import json
import secrets
import time
import uuid
from dataclasses import dataclass

from clew.kernel import (
    NOTHING_SEEN,
    AccountId,
    ApprovalId,
    Attestation,
    Cursor,
    Directory,
    EntrySeq,
    FailureKind,
    Floor,
    Instant,
    Patience,
    PinReason,
    Plan,
    PromptId,
    RetryChoice,
    RetryPolicy,
    RunId,
    RunState,
    Sent,
    WaitsFor,
    Wake,
    WakeId,
    value_from_record,
    value_to_record,
)
from clew.protocol.orders import Entry


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


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run added to its session: completed turns, tokens, and what its agent says of itself since."""

    turns: int = 0
    tokens: int = 0
    size: int | None = None
    model: str | None = None
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """The agent ended its turn. `reply` is what it said in the end, if it said anything; `read_back` when that was read
    from its own store, because the turn was lost on the way."""

    reply: str | None = None
    size: int = 0
    usage: Usage = Usage(turns=1)
    read_back: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """It did not. `reset_at` is when a usage limit ends; a poisoned session is not to be used again. `heard` is what
    the agent's store says of the prompt; None where nobody has asked it."""

    kind: FailureKind
    why: str
    reset_at: Instant | None = None
    poisons: bool = False
    usage: Usage = Usage()
    heard: Attestation | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """The claim is given back before any prompt went out, to be looked at again after a while or by a person."""

    why: str
    code: str
    waits_for: WaitsFor = WaitsFor.ANOTHER_TRY


@dataclass(frozen=True, slots=True)
class Stopped:
    """It was stopped: by a person at the agent itself, or because the server said so."""

    why: str = ""
    usage: Usage = Usage()
    heard: Attestation | None = None


@dataclass(frozen=True, slots=True)
class StoreAnswer:
    """What an agent's store says of an earlier run: of its prompt, and of what it was told within its turn. None where
    that was not asked."""

    run: RunId
    prompt: Attestation | None = None
    steered: Attestation | None = None


@dataclass(frozen=True, slots=True)
class StoreAsked:
    """The run was to ask what became of earlier prompts of its lane, and has. Nothing was sent."""

    answers: tuple[StoreAnswer, ...]


End = Completed | Failed | Returned | Stopped | StoreAsked


@dataclass(frozen=True, slots=True)
class Finish:
    """How a run ended. A session that was not pinned before is pinned with it; one that another lane holds is refused
    with the whole report, which then comes again without it."""

    run: RunId
    attempt: int
    end: End
    pin: NewSession | None = None
    policy: RetryPolicy = RetryPolicy()


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of the run. `taken` is false when this end came too late or from an attempt that holds it no more;
    the same end told twice is taken."""

    taken: bool
    state: RunState
    words: str
    reply: EntrySeq | None = None
    retry: RetryChoice | None = None


@dataclass(frozen=True, slots=True)
class SteerSent:
    """What an agent is being told within its turn: how it is recognised, for which wakes, and how far it tells."""

    id: PromptId
    wakes: tuple[WakeId, ...]
    through: EntrySeq

    @property
    def sent(self) -> Sent:
        """Only by its id: the text is the daemon's."""
        return Sent(self.id, "")


def new_prompt_id() -> PromptId:
    """A UUID of version 7: the time in milliseconds, then chance, so that later prompts sort behind earlier ones."""
    bits = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    bits = bits & ~(0xF << 76) | 0x7 << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    return PromptId(str(uuid.UUID(int=bits)))


TELLS_REMADE = '"remade": "'
"""Stands in what is kept of a prompt that tells of a directory that was made again."""


def write_prompted(prompted: Prompted) -> str:
    return json.dumps(value_to_record(Prompted, prompted))


def read_prompted(text: str) -> Prompted:
    """Raises ValueError where it cannot be read."""
    return value_from_record(Prompted, json.loads(text))


def write_steer(steer: SteerSent) -> str:
    return json.dumps(value_to_record(SteerSent, steer))


def read_steer(text: str) -> SteerSent:
    """Raises ValueError where it cannot be read."""
    return value_from_record(SteerSent, json.loads(text))
