"""How a run ended, and what became of it."""

from dataclasses import dataclass

from clew.kernel import Attestation, EntrySeq, FailureKind, Instant, RetryChoice, RetryPolicy, RunId, RunState, WaitsFor
from clew.wire.reports import NewSession


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
