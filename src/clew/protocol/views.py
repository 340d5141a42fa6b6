"""Views: what the server shows, as plain values, the same for the API, the command line and the pages.

Times are seconds since the epoch. Where something waits, ended or was refused, `code` gives the reason for programs
and `words` for people.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from clew.protocol.files import SentFile
from clew.protocol.marks import MarksView
from clew.protocol.usage import UsedView
from clew.protocol.work_views import WorkView

Mode = Literal["read", "ask", "edit", "full"]


@dataclass(frozen=True, slots=True)
class Rhythm:
    """An agent's heartbeat: `every` so many seconds, or by a `cron` line in a time `zone`."""

    every: float | None = None
    cron: str | None = None
    zone: str = "UTC"
    isolated: bool = True
    thread: str | None = None
    """The thread it wakes the agent in, such as issue-3. Default: the agent's own."""
    next_at: float | None = None
    last_at: float | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class AgentView:
    id: str
    name: str
    state: str
    provider: str
    model: str | None
    mode: Mode
    instructions: str | None
    program: tuple[str, ...]
    options: Mapping[str, str]
    home_variables: Mapping[str, str]
    environment_names: tuple[str, ...]
    """Names only: values may be secrets."""
    most: int
    home: str
    runtime: str | None
    live: int
    """How many of its runs are live."""
    waiting: int
    heartbeat: Rhythm | None = None
    across_accounts: bool = False
    """Whether history made under one account of the provider may be sent to another account."""
    missing: str = ""
    """Why its program cannot be started; empty if its machine found it."""
    place: str = ""
    """Its runtime for people: home, provider and machine."""


@dataclass(frozen=True, slots=True)
class ProjectView:
    id: str
    name: str
    source: str
    kind: str
    base: str | None
    setup: tuple[str, ...]
    mode_limit: Mode | None
    machine: str | None


@dataclass(frozen=True, slots=True)
class ThreadView:
    """`state` is open or closed; `status`, with its `words`: idle, queued, running, waiting (for an answer) or held."""

    id: str
    ref: str
    """Its name for people: issue-3, chat-1, own-ada."""
    kind: str
    title: str
    state: str
    status: str
    words: str
    project: str | None
    assignee: str | None
    entries: int
    created_at: float
    updated_at: float
    until: float | None = None
    """When a held thread goes on by itself, where that is known."""
    stage: str = ""
    """For an issue: open, working, needs you, ready for review, merged or closed, as it follows from what happened."""
    archived: bool = False
    """Not listed, until somebody speaks in it or something in it needs a person."""
    marks: MarksView | None = None
    """None in live events, which are the same for everyone, and for those who are no person."""


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry of a journal. Entries never change: a message that is edited or moved while it waits is replaced by a
    later entry, and one that is taken back is followed by an entry without a text. Agents are told neither of them."""

    seq: int
    author_kind: str
    author: str
    text: str
    at: float
    run: str | None = None
    replaces: int | None = None
    """The earlier entry that this one takes the place of; without a text, that it takes back."""
    replaced_by: int | None = None
    taken_back: bool = False
    """Whether entry `replaced_by` took this one back."""
    length: int | None = None
    """The characters of the whole text, where `text` is only its beginning."""
    files: tuple[SentFile, ...] = ()
    """The files that were sent with it: `GET /files/{file}`."""


@dataclass(frozen=True, slots=True)
class LaneView:
    id: str
    agent: str
    directory: str | None
    branch: str | None
    runtime: str | None
    overlap: str = "queue"
    """How messages are handled while the agent is busy there."""
    allowed: tuple[str, ...] = ()
    """Commands that a person allowed it there for good."""
    work: WorkView | None = None
    """What its worktree has that the base does not; None before it was first counted."""
    checked_out: str | None = None
    """The person who works in its worktree; its wakes wait meanwhile."""


@dataclass(frozen=True, slots=True)
class ThreadPage:
    thread: ThreadView
    lanes: tuple[LaneView, ...]
    entries: tuple[EntryView, ...]
    runs: tuple["RunView", ...]
    """The newest ones and those of the entries, newest first."""
    approvals: tuple["ApprovalView", ...]
    earlier: bool
    """Whether there are entries before the first."""
    used: UsedView | None = None
    """What all its runs have used."""


@dataclass(frozen=True, slots=True)
class WakeView:
    """A wake: its state, and why."""

    id: str
    thread: str
    agent: str
    reason: str
    origin: str
    state: str
    code: str
    words: str
    accepted_at: float
    not_before: float | None = None
    ended_at: float | None = None
    run: str | None = None
    entry: int | None = None
    repeated: bool = False
    preview: str | None = None
    """The token of the preview that its sender was shown."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message that was sent: its number in the journal, and the wake it made, if any."""

    entry: int
    wake: WakeView | None


@dataclass(frozen=True, slots=True)
class RunView:
    id: str
    ref: str
    """Its name for people: run-17."""
    thread: str
    agent: str
    state: str
    attempt: int
    queued_at: float
    started_at: float | None
    ended_at: float | None
    runtime: str | None
    session: str | None
    decision: str | None
    """The outcome of its latest decision; `decision_words` says why in one sentence."""
    decision_words: str | None
    claim: str | None
    """What the agent's answer proves: resumed, forked, transferred or started."""
    code: str | None
    words: str | None
    """How it ended, or what it waits for."""
    not_before: float | None = None
    stopping: bool = False
    held: str | None = None
    """For a held run, what ends the hold: another-try, session-free, person or time. Its state is queued."""
    on_its_word: bool = False
    """Whether only the agent itself says that this is the session that was asked for."""
    used: UsedView | None = None
    """None where the agent reported nothing."""
    place: str = ""
    """Its runtime for people: home, provider and machine."""
    tries: int = 1
    """Which try of the same work it is: a failed run with the code run:retrying was followed by another try."""


@dataclass(frozen=True, slots=True)
class EventView:
    seq: int
    kind: str
    at: float
    body: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogView:
    """A line of a run's log as a live event, with its run."""

    run: str
    seq: int
    kind: str
    at: float
    body: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionView:
    id: str
    thread: str
    agent: str
    generation: int
    provider: str
    runtime: str
    native_id: str
    directory: str
    state: str
    turns: int
    seen: int
    born_at: float
    proven_at: float | None
    resumability: str
    scope: str
    superseded: bool


@dataclass(frozen=True, slots=True)
class RuntimeView:
    id: str
    machine: str
    provider: str
    home: str
    accounts: tuple[str, ...]
    """The logins of its agents. Agents in one home may differ; an API key names no account."""
    online: bool
    seen_at: float | None
    live: int
    most: int
    waiting: int


@dataclass(frozen=True, slots=True)
class ApprovalView:
    id: str
    run: str
    thread: str
    agent: str
    kind: str
    """approval or question."""
    words: str
    tool: str | None
    command: str | None
    file: str | None
    choices: tuple[str, ...]
    state: str
    asked_at: float
    answered_by: str | None = None
    answer: str | None = None
    expires_at: float | None = None
    """When it is denied if there is no answer."""
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class FoundSessionView:
    """A session that an agent program on this machine has, recorded in Clew or not."""

    provider: str
    runtime: str
    native_id: str
    directory: str | None
    title: str
    updated_at: float | None
    turns: int | None
    thread: str | None


@dataclass(frozen=True, slots=True)
class CheckView:
    """One check of `clew doctor`."""

    name: str
    state: Literal["ok", "warning", "missing", "failed"]
    words: str
    remedy: str = ""
    until: float | None = None
    """When a hold that it tells of ends, where that is known."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    taken: bool
    state: str
    words: str
