"""What people ask of the server. Each is one call of the API, and one use case of control."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from clew.protocol.views import Mode, Rhythm

Overlapping = Literal["queue", "steer", "interrupt", "reject"]


@dataclass(frozen=True, slots=True)
class NewAgent:
    """`provider` names who runs it; `program` and `options` are for providers that take any program."""

    name: str
    provider: str
    model: str | None = None
    mode: Mode = "edit"
    instructions: str | None = None
    program: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    home: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    most: int = 1
    """How many of its runs may go at once."""
    heartbeat: Rhythm | None = None
    across_accounts: bool = False
    """Whether history made under one account of its provider may be told under another."""
    machine: str | None = None
    """The id of the machine that has its program; needed where several are connected."""


@dataclass(frozen=True, slots=True)
class RhythmChange:
    """What is None stays as it is, and is as usual where there is no heartbeat yet. One that goes `every` so often has
    no `cron`, and the other way round; an empty `thread` is the agent's own."""

    every: float | None = None
    cron: str | None = None
    zone: str | None = None
    isolated: bool | None = None
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class AgentChange:
    """What is None stays as it is; an empty text takes it away."""

    provider: str | None = None
    model: str | None = None
    mode: Mode | None = None
    instructions: str | None = None
    program: tuple[str, ...] | None = None
    options: Mapping[str, str] | None = None
    home: Mapping[str, str] | None = None
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    most: int | None = None
    paused: bool | None = None
    heartbeat: RhythmChange | None = None
    no_heartbeat: bool = False
    across_accounts: bool | None = None


@dataclass(frozen=True, slots=True)
class NewProject:
    """`source` is a directory of the server's machine or an address that git can clone."""

    name: str
    source: str
    base: str | None = None
    setup: tuple[str, ...] = ()
    mode_limit: Mode | None = None
    plain: bool = False
    """Allow a directory without git; it is then used in place, by one lane at a time."""
    machine: str | None = None
    """The id of the machine that inspects the source; needed where several are connected."""


@dataclass(frozen=True, slots=True)
class ProjectChange:
    source: str | None = None
    base: str | None = None
    setup: tuple[str, ...] | None = None
    mode_limit: Mode | None = None


@dataclass(frozen=True, slots=True)
class NewIssue:
    title: str
    body: str = ""
    project: str | None = None
    assignee: str | None = None


@dataclass(frozen=True, slots=True)
class NewChat:
    agent: str
    project: str | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """Something said in a thread. `agent` is whom it wakes; without one, whose the thread is. `key` names the request:
    the same key is the same request, however often it comes. `overlap` is what becomes of it when the agent is at work
    there; without one, what the lane's own policy says."""

    text: str
    agent: str | None = None
    key: str | None = None
    fresh: bool = False
    resume_run: str | None = None
    wakes: bool = True
    overlap: Overlapping | None = None


@dataclass(frozen=True, slots=True)
class Poke:
    """A wake by hand, in a thread or in the agent's own. With `subject` it is an event of something outside, in that
    subject's own thread: the same subject is the same thread, which the first event makes, in `project` if that is
    named."""

    agent: str
    thread: str | None = None
    text: str = ""
    key: str | None = None
    fresh: bool = False
    resume_run: str | None = None
    priority: int = 0
    subject: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Assign:
    agent: str | None


@dataclass(frozen=True, slots=True)
class AnswerTo:
    """`allow` for an approval; `text` answers a question, or says why not."""

    allow: bool = True
    text: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """`taken` is a person's word on a prompt of which nobody else can tell whether the agent took it."""

    taken: bool | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """A session that a person has with an agent already, to be gone on with in a thread."""

    agent: str
    runtime: str
    native_id: str


@dataclass(frozen=True, slots=True)
class Replay:
    """Which decisions since then another policy would have made otherwise; `since` in seconds since the epoch."""

    since: float
    policy: Mapping[str, object] = field(default_factory=dict)
