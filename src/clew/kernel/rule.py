"""The rules that a candidate session is weighed by, in the order in which they are asked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from clew.kernel.directory import Directory
from clew.kernel.permission import PermissionMode
from clew.kernel.rule_reason import Effect, RuleReason
from clew.kernel.session import UNLIMITED, Archive, ArchiveState, Cursor, Session, SessionState
from clew.kernel.situation import Here, ModelChange, Policy, Situation


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a candidate is compared with: the situation, and what follows from it for all candidates alike."""

    situation: Situation
    here: Here
    policy: Policy
    reset: bool
    directory: Directory | None
    mode: PermissionMode | None
    id_shape: re.Pattern[str] | None


# Reading a member off its class is slow on Python 3.11, and these are read for every candidate.
_HEALTHY, _LOST, _READY = SessionState.HEALTHY, SessionState.LOST, ArchiveState.READY
_OUT = Effect.OUT

Findings = tuple[RuleReason, ...]


def weigh(session: Session, wanted: Wanted) -> Findings:  # noqa: C901 - one flat list of rules, read in order
    """What the rules say of a session, in their order, up to the first that rules it out.

    A rule that says nothing finds the session fit.
    """
    situation, here = wanted.situation, wanted.here
    if wanted.reset:
        return (RuleReason.RESET,)
    if session.lane != situation.lane:
        return (RuleReason.LANE_OTHER,)
    if session.scope is not situation.scope and session.scope != situation.scope:
        return (RuleReason.SCOPE_OTHER,)
    found: Findings = ()
    if session.state is not _HEALTHY:
        found = (_UNHEALTHY[session.state],)
        if found[0].effect is _OUT:
            return found
    if session.provider != here.provider:
        return (*found, RuleReason.PROVIDER_OTHER)
    if session.account != here.account:
        return (*found, RuleReason.ACCOUNT_OTHER)
    cursor = session.cursor
    if cursor is None:
        return (*found, RuleReason.NEVER_CAPTURED)
    if not isinstance(cursor, Cursor) or cursor.version not in here.capabilities.cursor_versions:
        return (*found, RuleReason.CURSOR_UNREADABLE)
    if wanted.id_shape is not None and wanted.id_shape.fullmatch(cursor.native_id) is None:
        return (*found, RuleReason.ID_SHAPE)
    if not here.capabilities.resume:
        return (*found, RuleReason.CANNOT_RESUME)
    if session.seen > situation.head:
        return (*found, RuleReason.BEYOND_JOURNAL)
    if session.runtime != here.runtime:
        if session.runtime is None:
            return (*found, RuleReason.RUNTIME_UNKNOWN)
        found = (*found, RuleReason.RUNTIME_OTHER)
    if session.runtime != here.runtime or session.state is _LOST:
        spoiled = _archive(session.archive, wanted)
        if spoiled is not None:
            return (*found, spoiled)
    for rule in (
        _directory(session, wanted)
        if wanted.directory is not None and session.directory.place != wanted.directory.place
        else None,
        _limits(session, wanted) if wanted.policy.limits is not UNLIMITED else None,
        _model(session, wanted) if session.model != here.model else None,
        _mode(session, wanted) if session.mode is not wanted.mode else None,
        _busy(session, wanted) if session.busy_with is not None else None,
    ):
        if rule is not None:
            found = (*found, rule)
            if rule.effect is _OUT:
                return found
    if session.instructions != here.instructions:
        found = (*found, RuleReason.INSTRUCTIONS_DRIFT)
    if session.tools != here.tools:
        found = (*found, RuleReason.TOOLS_DRIFT)
    return found


_UNHEALTHY: Mapping[SessionState, RuleReason] = {
    SessionState.POISONED: RuleReason.POISONED,
    SessionState.LOST: RuleReason.LOST,
    SessionState.RETIRED: RuleReason.RETIRED,
    SessionState.SEALED: RuleReason.SEALED,
    SessionState.MOVED: RuleReason.MOVED,
}


def _carried(session: Session, wanted: Wanted) -> bool:
    """Whether the session can only be had here from its archive."""
    return session.runtime != wanted.here.runtime or session.state is _LOST


def _archive(archive: Archive | None, wanted: Wanted) -> RuleReason | None:
    if archive is None:
        return RuleReason.ARCHIVE_MISSING
    can = wanted.here.capabilities
    if not wanted.policy.transfer:
        return RuleReason.TRANSFER_OFF
    if not can.archive:
        return RuleReason.CANNOT_RESTORE
    if archive.state is not _READY:
        return _SPOILED[archive.state]
    if archive.format not in can.archive_formats:
        return RuleReason.ARCHIVE_VERSION
    return RuleReason.ARCHIVE_BEYOND_JOURNAL if archive.seen > wanted.situation.head else None


_SPOILED: Mapping[ArchiveState, RuleReason] = {
    ArchiveState.CORRUPT: RuleReason.ARCHIVE_CORRUPT,
    ArchiveState.OPTED_OUT: RuleReason.ARCHIVE_OPTED_OUT,
}


def _directory(session: Session, wanted: Wanted) -> RuleReason:
    can = wanted.here.capabilities
    if _carried(session, wanted):
        return RuleReason.RESTORED_INTO
    if can.fork_into:
        return RuleReason.DIRECTORY_FORK
    return RuleReason.DIRECTORY_MOVES if can.resume_elsewhere else RuleReason.DIRECTORY_FIXED


def _limits(session: Session, wanted: Wanted) -> RuleReason | None:
    limits, over = wanted.policy.limits, None
    if limits.turns is not None and session.turns >= limits.turns:
        over = RuleReason.OVER_TURNS
    elif limits.tokens is not None and session.tokens >= limits.tokens:
        over = RuleReason.OVER_TOKENS
    elif limits.size is not None and session.size >= limits.size:
        over = RuleReason.OVER_SIZE
    elif limits.age is not None and wanted.situation.now - session.born_at >= limits.age:
        over = RuleReason.OVER_AGE
    asked = wanted.situation.demand.resume_run is not None
    return RuleReason.LIMIT_WAIVED if over is not None and asked else over


def _can_fork(session: Session, wanted: Wanted) -> bool:
    """A fork must land in the wanted directory, so a session elsewhere needs more than a plain fork."""
    if _carried(session, wanted):
        return False
    can = wanted.here.capabilities
    is_there = wanted.directory is None or session.directory.place == wanted.directory.place
    return can.fork if is_there else can.fork_into


def _model(session: Session, wanted: Wanted) -> RuleReason | None:
    if session.model is None or wanted.here.model is None:
        return None
    if wanted.policy.on_model_change is ModelChange.RESEED:
        return RuleReason.MODEL_POLICY
    if wanted.here.capabilities.change_model:
        return RuleReason.MODEL_CHANGES
    return RuleReason.MODEL_FORK if _can_fork(session, wanted) else RuleReason.MODEL_FIXED


def _mode(session: Session, wanted: Wanted) -> RuleReason | None:
    if wanted.mode is None:
        return None
    if wanted.here.capabilities.reapply_mode:
        return RuleReason.MODE_REAPPLIED
    is_stricter = session.mode is not None and session.mode < wanted.mode
    return RuleReason.MODE_KEPT if is_stricter else RuleReason.MODE_FIXED


def _busy(session: Session, wanted: Wanted) -> RuleReason | None:
    if session.busy_with == wanted.situation.run:
        return None
    may_fork = wanted.policy.parallel and _can_fork(session, wanted)
    return RuleReason.BUSY_FORK if may_fork else RuleReason.BUSY
