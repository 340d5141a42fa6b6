"""The rules that a candidate session is weighed by, in the order in which they are asked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from clew.kernel.directory import Directory
from clew.kernel.permission import PermissionMode
from clew.kernel.rule_reason import RuleReason
from clew.kernel.session import UNLIMITED, ArchiveState, Cursor, Session, SessionState
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


# Reading a member off its class is slow on Python 3.11, and this one is read for every candidate.
_HEALTHY = SessionState.HEALTHY


def answers(session: Session, wanted: Wanted) -> Iterator[RuleReason]:
    """What each rule has to say of a session, in order; a rule that says nothing finds it fit.

    Whoever reads this stops at the first answer that rules the session out.
    """
    situation, here, can = wanted.situation, wanted.here, wanted.here.capabilities
    if wanted.reset:
        yield RuleReason.RESET
    if session.lane != situation.lane:
        yield RuleReason.LANE_OTHER
    if session.scope is not situation.scope and session.scope != situation.scope:
        yield RuleReason.SCOPE_OTHER
    if session.state is not _HEALTHY:
        yield _UNHEALTHY[session.state]
    if session.provider != here.provider:
        yield RuleReason.PROVIDER_OTHER
    if session.account != here.account:
        yield RuleReason.ACCOUNT_OTHER
    cursor = session.cursor
    if cursor is None:
        yield RuleReason.NEVER_CAPTURED
    elif not isinstance(cursor, Cursor) or cursor.version not in can.cursor_versions:
        yield RuleReason.CURSOR_UNREADABLE
    elif wanted.id_shape is not None and wanted.id_shape.fullmatch(cursor.native_id) is None:
        yield RuleReason.ID_SHAPE
    if not can.resume:
        yield RuleReason.CANNOT_RESUME
    if session.seen > situation.head:
        yield RuleReason.BEYOND_JOURNAL
    if session.runtime != here.runtime:
        yield RuleReason.RUNTIME_UNKNOWN if session.runtime is None else RuleReason.RUNTIME_OTHER
    if session.runtime != here.runtime or session.state is not _HEALTHY:
        yield from _archive(session, wanted)
    if wanted.directory is not None and session.directory.place != wanted.directory.place:
        yield _directory(session, wanted)
    if wanted.policy.limits is not UNLIMITED:
        yield from _limits(session, wanted)
    if session.model != here.model:
        yield from _model(session, wanted)
    if session.mode is not wanted.mode:
        yield from _mode(session, wanted)
    if session.busy_with is not None and session.busy_with != situation.run:
        yield _busy(session, wanted)
    if session.instructions != here.instructions:
        yield RuleReason.INSTRUCTIONS_DRIFT
    if session.tools != here.tools:
        yield RuleReason.TOOLS_DRIFT


_UNHEALTHY: dict[SessionState, RuleReason] = {
    SessionState.POISONED: RuleReason.POISONED,
    SessionState.LOST: RuleReason.LOST,
    SessionState.RETIRED: RuleReason.RETIRED,
    SessionState.SEALED: RuleReason.SEALED,
    SessionState.MOVED: RuleReason.MOVED,
}


def _carried(session: Session, wanted: Wanted) -> bool:
    """Whether the session can only be had here from its archive."""
    return session.runtime != wanted.here.runtime or session.state is SessionState.LOST


def _archive(session: Session, wanted: Wanted) -> Iterator[RuleReason]:
    can, archive = wanted.here.capabilities, session.archive
    if not _carried(session, wanted):
        return
    if archive is None:
        yield RuleReason.ARCHIVE_MISSING
    elif not wanted.policy.transfer:
        yield RuleReason.TRANSFER_OFF
    elif not can.archive:
        yield RuleReason.CANNOT_RESTORE
    elif archive.state is not ArchiveState.READY:
        yield _SPOILED[archive.state]
    elif archive.format not in can.archive_formats:
        yield RuleReason.ARCHIVE_VERSION
    elif archive.seen > wanted.situation.head:
        yield RuleReason.ARCHIVE_BEYOND_JOURNAL


_SPOILED: dict[ArchiveState, RuleReason] = {
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


def _limits(session: Session, wanted: Wanted) -> Iterator[RuleReason]:
    limits = wanted.policy.limits
    age = wanted.situation.now - session.born_at
    for limit, used, reason in (
        (limits.turns, session.turns, RuleReason.OVER_TURNS),
        (limits.tokens, session.tokens, RuleReason.OVER_TOKENS),
        (limits.size, session.size, RuleReason.OVER_SIZE),
        (limits.age, age, RuleReason.OVER_AGE),
    ):
        if limit is not None and used >= limit:
            asked = wanted.situation.demand.resume_run is not None
            yield RuleReason.LIMIT_WAIVED if asked else reason
            return


def _can_fork(session: Session, wanted: Wanted) -> bool:
    """A fork must land in the wanted directory, so a session elsewhere needs more than a plain fork."""
    if _carried(session, wanted):
        return False
    can = wanted.here.capabilities
    is_there = wanted.directory is None or session.directory.place == wanted.directory.place
    return can.fork if is_there else can.fork_into


def _model(session: Session, wanted: Wanted) -> Iterator[RuleReason]:
    if session.model is None or wanted.here.model is None:
        return
    if wanted.policy.on_model_change is ModelChange.RESEED:
        yield RuleReason.MODEL_POLICY
    elif wanted.here.capabilities.change_model:
        yield RuleReason.MODEL_CHANGES
    else:
        yield RuleReason.MODEL_FORK if _can_fork(session, wanted) else RuleReason.MODEL_FIXED


def _mode(session: Session, wanted: Wanted) -> Iterator[RuleReason]:
    if wanted.mode is None:
        return
    if wanted.here.capabilities.reapply_mode:
        yield RuleReason.MODE_REAPPLIED
    elif session.mode is not None and session.mode < wanted.mode:
        yield RuleReason.MODE_KEPT
    else:
        yield RuleReason.MODE_FIXED


def _busy(session: Session, wanted: Wanted) -> RuleReason:
    may_fork = wanted.policy.parallel and _can_fork(session, wanted)
    return RuleReason.BUSY_FORK if may_fork else RuleReason.BUSY
