"""Sessions: a provider's own conversations, recorded as generations of a lane.

A run reports the session it is in with a pin, and the lane's pointer follows.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.ids import (
    NOTHING_SEEN,
    AccountId,
    EntrySeq,
    Instant,
    LaneId,
    NativeId,
    ProviderName,
    RunId,
    RuntimeId,
    ScopeKey,
    SessionId,
)
from clew.kernel.permission import PermissionMode
from clew.kernel.place import Directory
from clew.kernel.reason import Reason


@dataclass(frozen=True, slots=True)
class Cursor:
    """The versioned value that a provider needs to find its session again; `extra` is the provider's own data."""

    version: int
    native_id: NativeId
    extra: str = ""


@dataclass(frozen=True, slots=True)
class UnreadableCursor:
    """A stored cursor that cannot be read. It is never passed to a provider."""

    why: str


def write_cursor(cursor: Cursor) -> str:
    return json.dumps({"v": cursor.version, "id": cursor.native_id, "extra": cursor.extra}, ensure_ascii=False)


def read_cursor(text: str | None) -> Cursor | UnreadableCursor | None:
    """None when nothing was stored; `UnreadableCursor` when the text is not a cursor. Nothing is guessed."""
    if text is None:
        return None
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError):
        return UnreadableCursor("it is not JSON")
    if not isinstance(stored, dict):
        return UnreadableCursor("it is not an object")
    version, native_id, extra = stored.get("v"), stored.get("id"), stored.get("extra", "")
    if not isinstance(version, int) or isinstance(version, bool):
        return UnreadableCursor("it has no version number")
    if not isinstance(native_id, str) or not native_id:
        return UnreadableCursor("it has no session id")
    if not isinstance(extra, str):
        return UnreadableCursor("its extra part is not text")
    return Cursor(version, NativeId(native_id), extra)


class ArchiveState(StrEnum):
    READY = "ready"
    CORRUPT = "corrupt"
    OPTED_OUT = "opted-out"


@dataclass(frozen=True, slots=True)
class Archive:
    """A copy of the session that another home can restore. `seen` and `turns` are those of the copy."""

    format: str
    seen: EntrySeq
    turns: int | None = None
    state: ArchiveState = ArchiveState.READY


class SessionState(StrEnum):
    HEALTHY = "healthy"
    POISONED = "poisoned"
    LOST = "lost"
    RETIRED = "retired"
    SEALED = "sealed"
    MOVED = "moved"


class SessionEvent(StrEnum):
    TURN_COMPLETED = "turn-completed"
    POISONED = "poisoned"
    CONFIRMED_MISSING = "confirmed-missing"
    RESTORED = "restored"
    ROTATED = "rotated"
    SEALED = "sealed"
    UNSEALED = "unsealed"
    MOVED = "moved"


SESSION_TABLE: Mapping[tuple[SessionState, SessionEvent], SessionState] = {
    (SessionState.HEALTHY, SessionEvent.TURN_COMPLETED): SessionState.HEALTHY,
    (SessionState.HEALTHY, SessionEvent.POISONED): SessionState.POISONED,
    (SessionState.HEALTHY, SessionEvent.CONFIRMED_MISSING): SessionState.LOST,
    (SessionState.HEALTHY, SessionEvent.ROTATED): SessionState.RETIRED,
    (SessionState.HEALTHY, SessionEvent.SEALED): SessionState.SEALED,
    (SessionState.POISONED, SessionEvent.TURN_COMPLETED): SessionState.HEALTHY,
    (SessionState.POISONED, SessionEvent.POISONED): SessionState.POISONED,
    (SessionState.POISONED, SessionEvent.CONFIRMED_MISSING): SessionState.LOST,
    (SessionState.POISONED, SessionEvent.ROTATED): SessionState.RETIRED,
    (SessionState.LOST, SessionEvent.TURN_COMPLETED): SessionState.HEALTHY,
    (SessionState.LOST, SessionEvent.CONFIRMED_MISSING): SessionState.LOST,
    (SessionState.LOST, SessionEvent.RESTORED): SessionState.HEALTHY,
    (SessionState.LOST, SessionEvent.ROTATED): SessionState.RETIRED,
    (SessionState.SEALED, SessionEvent.UNSEALED): SessionState.HEALTHY,
    (SessionState.SEALED, SessionEvent.MOVED): SessionState.MOVED,
}
"""A pair that is not listed changes nothing: retired and moved are final."""


def advance_session(state: SessionState, event: SessionEvent) -> SessionState | None:
    """The next state, or None when the event cannot happen in this one."""
    return SESSION_TABLE.get((state, event))


@dataclass(frozen=True, slots=True)
class Session:
    """One generation of a lane, as recorded. A runtime or mode of None is unknown and matches nothing. An account of
    None means that the provider has none.

    It has the journal entries after `begins` up to `seen`, and of the earlier ones only `also`. `busy_with` names the
    run or the outside program that has it open. `instructions`, `tools` and `credential` (the key it was last used
    with) are digests. `proven_at` is when a probe last found it. `cut_off`: its last turn was cut off, and it was not
    told so yet.
    """

    id: SessionId
    generation: int
    lane: LaneId
    scope: ScopeKey
    provider: ProviderName
    runtime: RuntimeId | None
    directory: Directory
    cursor: Cursor | UnreadableCursor | None
    account: AccountId | None = None
    state: SessionState = SessionState.HEALTHY
    begins: EntrySeq = NOTHING_SEEN
    also: tuple[EntrySeq, ...] = ()
    seen: EntrySeq = NOTHING_SEEN
    model: str | None = None
    mode: PermissionMode | None = None
    instructions: str | None = None
    tools: str | None = None
    busy_with: str | None = None
    turns: int = 0
    tokens: int = 0
    size: int = 0
    born_at: Instant = 0.0
    archive: Archive | None = None
    proven_at: Instant | None = None
    cut_off: bool = False
    credential: str | None = None

    @property
    def whose(self) -> str:
        """The account it was made with, for use in a sentence."""
        return account_words(self.account, self.credential)

    @property
    def cursor_words(self) -> str:
        """Why its cursor is not one that a provider can be given, for use in a sentence."""
        match self.cursor:
            case None:
                return "there is none"
            case UnreadableCursor(why):
                return why
            case Cursor(version):
                return f"its version is {version}"


def account_words(account: AccountId | None, credential: str | None) -> str:
    """An account, for use in a sentence. A key does not name an account."""
    if account is not None:
        return f"account {account}"
    return "an account that is not named" if credential is None else "a key that names no account"


def was_told(session: Session, entry: EntrySeq, seen: EntrySeq) -> bool:
    """Whether the session, having seen the journal up to `seen`, has that entry."""
    return entry <= seen and (entry > session.begins or entry in session.also)


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """When a session is rotated; None means no limit. `age` is in seconds, `size` in bytes of the agent's store."""

    turns: int | None = None
    tokens: int | None = None
    size: int | None = None
    age: float | None = None


UNLIMITED = SessionLimits()


class Resumability(StrEnum):
    """What a person may be told about a session. Only a proven session is called resumable."""

    PROVEN = "proven"
    UNPROVEN = "unproven"
    UNUSABLE = "unusable"


def resumability(session: Session) -> Resumability:
    if session.state is not SessionState.HEALTHY or not isinstance(session.cursor, Cursor):
        return Resumability.UNUSABLE
    return Resumability.UNPROVEN if session.proven_at is None else Resumability.PROVEN


def known_ids(sessions: Iterable[Session]) -> frozenset[NativeId]:
    """The native ids in use; a new session must have a different one."""
    return frozenset(session.cursor.native_id for session in sessions if isinstance(session.cursor, Cursor))


@dataclass(frozen=True, slots=True)
class Pin:
    """Session and runtime in one value, from one run: neither can be written without the other.

    `order` is the run's position among the lane's runs, by which a late pin is recognised. `durable`: the agent can
    find the session again from another process.
    """

    run: RunId
    order: int
    native_id: NativeId
    runtime: RuntimeId
    directory: Directory
    durable: bool = True


class PinReason(Reason):
    FIRST = "pin:first", "The lane had no session; {pin.native_id} is its first."
    SAME = "pin:same", "{pin.native_id} is the lane's session already."
    NEW_GENERATION = "pin:new-generation", "{pin.native_id} follows {held.native_id} as a new generation."
    LATE = "pin:late", "Run {pin.run} is older than the one that set {held.native_id}, which stays."
    NOT_DURABLE = "pin:not-durable", "{pin.native_id} could not be found again yet, so it is not recorded."


@dataclass(frozen=True, slots=True)
class Pinned:
    """The lane's pointer after a pin, and whether a generation is appended."""

    held: Pin | None
    appends: bool
    reason: PinReason
    words: str


def pin(held: Pin | None, new: Pin) -> Pinned:
    if not new.durable:
        reason, after = PinReason.NOT_DURABLE, held
    elif held is None:
        reason, after = PinReason.FIRST, new
    elif new.order < held.order:
        reason, after = PinReason.LATE, held
    elif (new.native_id, new.runtime) == (held.native_id, held.runtime):
        reason, after = PinReason.SAME, new
    else:
        reason, after = PinReason.NEW_GENERATION, new
    appends = reason in (PinReason.FIRST, PinReason.NEW_GENERATION)
    return Pinned(after, appends, reason, reason.fill(pin=new, held=held))
