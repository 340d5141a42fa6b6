"""The events of a turn: one small vocabulary for all providers. Each keeps the program's own event as `raw`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from clew.kernel import ApprovalId, Instant, NativeId

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """`raw` is what the program itself sent, without secrets; empty where Clew made the event."""

    raw: Raw = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Text(AgentEvent):
    """Text of the agent. `final` is a whole message; the parts of a message come before it, and are not final."""

    text: str
    final: bool = True


@dataclass(frozen=True, slots=True)
class Thought(AgentEvent):
    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted(AgentEvent):
    """`command` is what the tool will run, `file` what it will touch, where the program says so."""

    id: str
    name: str
    command: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class ToolFinished(AgentEvent):
    id: str
    ok: bool
    output: str = ""


@dataclass(frozen=True, slots=True)
class PlanChanged(AgentEvent):
    """The agent's own list of steps, each with its state as the program words it."""

    steps: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Used(AgentEvent):
    """What this turn has used so far; never a sum over turns, even if the program reports sums."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class ApprovalAsked(AgentEvent):
    id: ApprovalId
    tool: str
    words: str
    command: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionAsked(AgentEvent):
    id: ApprovalId
    words: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionNamed(AgentEvent):
    """The session's native id. `durable` once another process could find it: only then may it be pinned."""

    native_id: NativeId
    durable: bool


@dataclass(frozen=True, slots=True)
class Retrying(AgentEvent):
    """The model failed, and the program itself tries again. It is no progress: a turn of these alone is silent."""

    words: str


class ErrorCode(StrEnum):
    """Why a turn failed, as far as a retry depends on it."""

    MODEL_UNREACHABLE = "model-unreachable"
    MODEL_FAILED = "model-failed"
    NOT_ALLOWED = "not-allowed"
    USAGE_LIMIT = "usage-limit"
    BAD_REQUEST = "bad-request"
    PROGRAM_ENDED = "program-ended"
    TOO_SLOW = "too-slow"
    UNKNOWN = "unknown"

    @classmethod
    def of_status(cls, status: int) -> "ErrorCode":
        """By the HTTP status with which the model answered."""
        match status:
            case 401 | 403:
                return cls.NOT_ALLOWED
            case 429:
                return cls.USAGE_LIMIT
            case _ if status >= 500:
                return cls.MODEL_FAILED
            case _:
                return cls.BAD_REQUEST

    @property
    def is_passing(self) -> bool:
        """Whether the same prompt may succeed later."""
        return self not in (ErrorCode.NOT_ALLOWED, ErrorCode.BAD_REQUEST, ErrorCode.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Failed(AgentEvent):
    """The turn failed. `reset_at` is when a usage limit ends, where the program says so. `handed` is false where it is
    certain that the program got nothing of the prompt."""

    code: ErrorCode
    words: str
    retryable: bool
    reset_at: Instant | None = None
    handed: bool = True


class Ending(StrEnum):
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Done(AgentEvent):
    """The last event of every turn. `reply` is the agent's last message."""

    ending: Ending
    reply: str = ""


Event = (
    Text
    | Thought
    | ToolStarted
    | ToolFinished
    | PlanChanged
    | Used
    | ApprovalAsked
    | QuestionAsked
    | SessionNamed
    | Retrying
    | Failed
    | Done
)
