"""A daemon's reports of a run: its progress, its end, the server's answers, and the record of each prompt sent."""

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
from clew.ports.work import Work
from clew.protocol.orders import Entry


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to pin: the agent can find it again from another process.

    It is told the journal after entry `begins`, and of earlier entries only those in `also`. `seen` is the last entry
    it has seen before this run's prompt: a fork has seen what its origin has. `floor` is the plan's, if the plan cut
    off the lane's history. `credential` is a digest of the agent's API key.
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
    """A prompt that is about to be sent: how to find it in the agent's store, and the wakes it serves.

    `session` is pinned if the store turns out to have the prompt; None while the agent has not named its session.
    `hears` is false if the provider cannot answer such a question. `remade` is the prompt's note about a directory
    that was made again. `late` are the entries that it tells although they are older than the session.
    """

    sent: Sent
    session: NewSession | None
    wakes: tuple[WakeId, ...]
    hears: bool = True
    remade: str | None = None
    late: tuple[EntrySeq, ...] | None = None


@dataclass(frozen=True, slots=True)
class RunEventRecord:
    """One line of a run's log. The daemon numbers the lines, so that a line reported twice is stored once."""

    seq: int
    kind: str
    body: str


@dataclass(frozen=True, slots=True)
class Landed:
    """What the agent said it opened, as JSON, and what may be claimed of it; `refused` says how it differs from the
    plan."""

    landing: str
    claim: str
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """An approval that the agent is waiting for."""

    id: ApprovalId
    question: str
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Steer:
    """Wakes to send to the agent during its current turn. The run carries them already. `entries` are all journal
    entries after `after` up to `through`, without gaps. `id` identifies the message in the agent's store."""

    wakes: tuple[Wake, ...]
    entries: tuple[Entry, ...]
    after: EntrySeq
    through: EntrySeq
    id: PromptId


@dataclass(frozen=True, slots=True)
class Steered:
    """The result of a `Steer`: the agent received it during its turn, or none of it was sent. If neither is certain,
    this is not reported, and the agent's store is asked later."""

    taken: bool
    through: EntrySeq


@dataclass(frozen=True, slots=True)
class Report:
    """What happened since the last report. `told` announces the prompt, and is the last journal entry in it;
    `prompted` is that prompt. It may be sent only after this report was answered. `settled` are the plans that probes
    led to. `steers` asks for messages to send during the turn; `steered` is the result of the last ones."""

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
            raise ValueError("`told` and `prompted` go together: a prompt needs an id that its agent's store knows")


@dataclass(frozen=True, slots=True)
class AnswerGiven:
    """A person's answer; `words` is their comment, or the answer to a question."""

    approval: ApprovalId
    state: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Reported:
    """The answer to a report: whether the daemon still holds the run, why it must stop it, and answers to approvals.

    The prompt may be sent only after it was reported and `may_prompt` is true. `entries` replace those of the order if
    a settled plan differs from the order's: they are for the session of the last such plan. `steer` is to be sent to
    the agent now; `news` says that there may be something to ask for.
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
    """What a run added to its session: completed turns and tokens; and the model and mode that the agent now names."""

    turns: int = 0
    tokens: int = 0
    size: int | None = None
    model: str | None = None
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """The agent ended its turn. `reply` is its last message, if any; `read_back` if that was read from the agent's
    store, because the connection was lost during the turn."""

    reply: str | None = None
    size: int = 0
    usage: Usage = Usage(turns=1)
    read_back: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn failed. `reset_at` is when a usage limit ends; `poisons` means that the session must not be used again.
    `heard` is what the agent's store says of the prompt; None if it was not asked."""

    kind: FailureKind
    why: str
    reset_at: Instant | None = None
    poisons: bool = False
    usage: Usage = Usage()
    heard: Attestation | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """The claim is given back before any prompt was sent; the run is tried again later, or a person acts first.

    `program_gone`: the agent's program cannot be started. All its runs wait until its machine finds it again."""

    why: str
    code: str
    waits_for: WaitsFor = WaitsFor.ANOTHER_TRY
    program_gone: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """The turn was stopped: by a person in the agent's own program, or by the server's order."""

    why: str = ""
    usage: Usage = Usage()
    heard: Attestation | None = None


@dataclass(frozen=True, slots=True)
class StoreAnswer:
    """What an agent's store says of an earlier run: of its prompt, and of its steering message. None: not asked."""

    run: RunId
    prompt: Attestation | None = None
    steered: Attestation | None = None


@dataclass(frozen=True, slots=True)
class StoreAsked:
    """The run had to ask about earlier prompts of its lane, and has. No prompt was sent."""

    answers: tuple[StoreAnswer, ...]


End = Completed | Failed | Returned | Stopped | StoreAsked


@dataclass(frozen=True, slots=True)
class Finish:
    """How a run ended. It may pin the session, if that was not done before. If another lane holds that session, the
    whole call is refused, and the daemon repeats it without `pin`. `work` is what its worktree has now that the base
    does not."""

    run: RunId
    attempt: int
    end: End
    pin: NewSession | None = None
    policy: RetryPolicy = RetryPolicy()
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The run after its end. `taken` is false if the end came too late, or from an attempt that no longer holds the
    run; a repetition of the same end is taken."""

    taken: bool
    state: RunState
    words: str
    reply: EntrySeq | None = None
    retry: RetryChoice | None = None


@dataclass(frozen=True, slots=True)
class SteerSent:
    """A steering message in flight: its id in the agent's store, the wakes it serves, and its last journal entry."""

    id: PromptId
    wakes: tuple[WakeId, ...]
    through: EntrySeq

    @property
    def sent(self) -> Sent:
        """With the id only: the daemon has the text."""
        return Sent(self.id, "")


def new_prompt_id() -> PromptId:
    """A UUID of version 7: the time in milliseconds, then random bits, so that ids sort by time."""
    bits = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    bits = bits & ~(0xF << 76) | 0x7 << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    return PromptId(str(uuid.UUID(int=bits)))


TELLS_REMADE = '"remade": "'
TELLS_LATE = '"late": ['
"""Occurs in the JSON of every `Prompted` with a `remade` note, and of no other: found without parsing."""


def write_prompted(prompted: Prompted) -> str:
    return json.dumps(value_to_record(Prompted, prompted))


def read_prompted(text: str) -> Prompted:
    """Raises ValueError if it cannot be read."""
    return value_from_record(Prompted, json.loads(text))


def write_steer(steer: SteerSent) -> str:
    return json.dumps(value_to_record(SteerSent, steer))


def read_steer(text: str) -> SteerSent:
    """Raises ValueError if it cannot be read."""
    return value_from_record(SteerSent, json.loads(text))
