"""Bodies of API requests. Each belongs to one call of the API and one use case of control."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from clew.protocol.views import Mode, Rhythm

Overlapping = Literal["queue", "steer", "interrupt", "reject"]


@dataclass(frozen=True, slots=True)
class NewAgent:
    """`provider` runs it; `program` and `options` are for providers that run any program."""

    name: str
    provider: str
    model: str | None = None
    mode: Mode = "edit"
    instructions: str | None = None
    program: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    home: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    create_home: bool = False
    """Whether to create the directories that `home` names. One that does not exist is refused otherwise."""
    most: int = 1
    """How many of its runs may be live at once."""
    heartbeat: Rhythm | None = None
    across_accounts: bool = False
    """Whether history made under one account of the provider may be sent to another account."""
    machine: str | None = None
    """The id of the machine that has its program; required if several are connected."""


@dataclass(frozen=True, slots=True)
class RhythmChange:
    """Fields that are None stay as they are; a new heartbeat gets their defaults. `every` replaces `cron` and the
    other way round; an empty `thread` means the agent's own."""

    every: float | None = None
    cron: str | None = None
    zone: str | None = None
    isolated: bool | None = None
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class AgentChange:
    """Fields that are None stay as they are; an empty text clears one. `options`, `home` and `environment` replace all
    that there were; `add_environment` and `remove_environment` change single variables."""

    provider: str | None = None
    model: str | None = None
    mode: Mode | None = None
    instructions: str | None = None
    program: tuple[str, ...] | None = None
    options: Mapping[str, str] | None = None
    home: Mapping[str, str] | None = None
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    add_environment: Mapping[str, str] | None = field(default=None, repr=False)
    remove_environment: tuple[str, ...] | None = None
    create_home: bool = False
    most: int | None = None
    paused: bool | None = None
    heartbeat: RhythmChange | None = None
    no_heartbeat: bool = False
    across_accounts: bool | None = None


@dataclass(frozen=True, slots=True)
class NewProject:
    """`source` is a directory on the machine, or a URL that git can clone."""

    name: str
    source: str
    base: str | None = None
    setup: tuple[str, ...] = ()
    mode_limit: Mode | None = None
    plain: bool = False
    """Allow a directory without git; it is used in place, by one lane at a time."""
    machine: str | None = None
    """The id of the machine that inspects the source; required if several are connected."""


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
class ThreadChange:
    """Fields that are None stay. The journal is never rewritten: a new `body` is a new entry of it, and wakes no
    agent."""

    title: str | None = None
    body: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class NewChat:
    agent: str
    project: str | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Begin:
    """Talk to the program of this provider. An agent is added for it if there is none."""

    provider: str


@dataclass(frozen=True, slots=True)
class Words:
    """A message to a thread. It wakes `agent`, by default the thread's. `key` makes it idempotent: requests with the
    same key are one. `overlap` is how it is handled while the agent is busy; the default is the lane's policy."""

    text: str
    agent: str | None = None
    key: str | None = None
    fresh: bool = False
    resume_run: str | None = None
    wakes: bool = True
    overlap: Overlapping | None = None
    begin_from: str | None = None
    """Where the branch of an agent that is new in the thread begins: a branch, an agent of the thread, or `base`.
    Default: the thread's newest branch."""
    preview: str | None = None
    """The `token` of the preview that the sender was shown. If it comes out differently, `why` says so."""
    files: tuple[str, ...] = ()
    """The ids of up to 10 files that were uploaded (`POST /files`). Their names stand for a `text` that is empty."""


@dataclass(frozen=True, slots=True)
class MessageEdit:
    """Another text for a message that waits. `entry` is the entry that was read: if the message was changed since, it
    is refused."""

    text: str
    entry: int | None = None


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """The wakes of an agent's queue, in the order that is wanted. Those that are left out follow, as they are."""

    wakes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Poke:
    """A manual wake, in a thread or in the agent's own. With `subject` it is an event of something outside: every
    event of a subject goes to one thread, which the first event opens, in `project` if that is given."""

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
    begin_from: str | None = None
    """Where the branch of an agent that is new in the thread begins: a branch, an agent of the thread, or `base`.
    Default: the thread's newest branch."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit what an agent left uncommitted; `agent` is the thread's agent by default."""

    message: str
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge an agent's branch into branch `into`; by default into the base that it started from."""

    into: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Propose:
    """Open a pull request. Title and text are by default those of the thread."""

    title: str = ""
    body: str = ""
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class CheckOut:
    """Work in an agent's worktree; its wakes wait until the same is sent with `done`."""

    done: bool = False
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class AcceptBranch:
    """`name` is a thread, or the directory of a workspace; `agent` is the thread's agent by default."""

    name: str
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerTo:
    """`allow` answers an approval; `text` answers a question, or is the reason for a denial. `always` allows the same
    command to the same agent in the same thread from now on."""

    allow: bool = True
    text: str = ""
    always: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """`taken`: a person says whether the agent took the prompt, where its store cannot tell."""

    taken: bool | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """Continue a session that a person already has with an agent, in a thread."""

    agent: str
    runtime: str
    native_id: str


@dataclass(frozen=True, slots=True)
class AdoptFound:
    """Continue a session that was found, in `thread`; without one, in a new chat with its title."""

    agent: str
    runtime: str
    native_id: str
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """List the decisions after `since`, in seconds since the epoch, that another policy would change. With `agent` or
    `project`, only its decisions, as if the policy were set for it."""

    since: float
    policy: Mapping[str, object] = field(default_factory=dict)
    agent: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """The whole policy: it replaces the one that was set, and fields that are left out get their defaults."""

    policy: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ReadUpTo:
    """`entry` is the last one that was shown. Default: the last of the thread."""

    entry: int | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionKeys:
    """As the browser gives them, base64url."""

    p256dh: str = field(repr=False)
    auth: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """What a browser's `pushManager.subscribe` gave. `title`: with the titles of threads. `replaces` is the endpoint of
    an earlier one of the same browser, whose choice and what it was told of are taken over."""

    endpoint: str = field(repr=False)
    keys: SubscriptionKeys
    title: bool | None = None
    replaces: str | None = field(default=None, repr=False)
