"""The rules that a candidate session is checked against, in order."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from clew.kernel.capability import Capabilities, LandingField
from clew.kernel.ids import ScopeKey
from clew.kernel.permission import PermissionMode
from clew.kernel.place import Directory
from clew.kernel.rule_reason import Effect, RuleReason
from clew.kernel.session import UNLIMITED, Archive, ArchiveState, Cursor, Session, SessionState
from clew.kernel.situation import Here, ModelChange, Policy, Situation


@dataclass(frozen=True, slots=True)
class Wanted:
    """What candidates are compared with: the situation, and what follows from it for all of them."""

    situation: Situation
    scope: ScopeKey
    here: Here
    policy: Policy
    reset: bool
    floor: int
    directory: Directory | None
    mode: PermissionMode | None
    id_shape: re.Pattern[str] | None


# Reading a member off its class is slow on Python 3.11, and these are read for every candidate.
_HEALTHY, _LOST, _READY = SessionState.HEALTHY, SessionState.LOST, ArchiveState.READY
_WAIT, _OUT = Effect.WAIT, Effect.OUT
_RUNTIME_OTHER, _ARCHIVE_MISSING = RuleReason.RUNTIME_OTHER, RuleReason.ARCHIVE_MISSING
_MODE_FIXED = RuleReason.MODE_FIXED

Findings = tuple[RuleReason, ...]


def weigh(session: Session, wanted: Wanted) -> Findings:  # noqa: C901 - one flat list of rules, read in order
    """The findings of the rules about a session, in order, up to the first that rules it out or says to wait.

    A rule without a finding fits. A session that is in use is waited for, whatever else is against it: its state can
    change until it is free.
    """
    situation, here, limits = wanted.situation, wanted.here, wanted.policy.limits
    if wanted.reset:
        return (RuleReason.RESET,)
    if session.lane != situation.lane:
        return (RuleReason.LANE_OTHER,)
    # Field by field: the same as ==, at a third of the cost.
    if session.scope.run != wanted.scope.run or session.scope.lane != wanted.scope.lane:
        return (RuleReason.SCOPE_OTHER,)
    if session.generation <= wanted.floor:
        return (RuleReason.BEFORE_FRESH_START,)
    if session.provider != here.provider:
        return (RuleReason.PROVIDER_OTHER,)
    if session.account != here.account:
        return (RuleReason.ACCOUNT_OTHER,)
    if session.busy_with is not None and session.busy_with != situation.run:
        return _in_use(session, wanted)
    found: Findings = ()
    if session.state is not _HEALTHY:
        found = (_UNHEALTHY[session.state],)
        if found[0].effect >= _WAIT:
            return found
    cursor = session.cursor
    if cursor is None:
        return (*found, RuleReason.NEVER_CAPTURED)
    can = here.capabilities
    if not isinstance(cursor, Cursor) or cursor.version not in can.cursor_versions:
        return (*found, RuleReason.CURSOR_UNREADABLE)
    if wanted.id_shape is not None and wanted.id_shape.fullmatch(cursor.native_id) is None:
        return (*found, RuleReason.ID_SHAPE)
    if not can.resume:
        return (*found, RuleReason.CANNOT_RESUME)
    if not 0 <= session.seen <= situation.head:
        return (*found, RuleReason.BEYOND_JOURNAL)
    is_here = session.runtime == here.runtime
    if not is_here:
        if session.runtime is None:
            return (*found, RuleReason.RUNTIME_UNKNOWN)
        found = (*found, _RUNTIME_OTHER)
    if not is_here or session.state is _LOST:
        spoiled = _archive(session.archive, wanted)
        if spoiled is not None:
            return (*found, spoiled)
    if wanted.directory is not None and session.directory.place != wanted.directory.place:
        found = (*found, _directory(session, wanted))
        if found[-1].effect is _OUT:
            return found
    if limits is not UNLIMITED:
        over = _limits(session, wanted)
        if over is not None:
            found = (*found, over)
            if over.effect is _OUT:
                return found
    if session.model != here.model and session.model is not None and here.model is not None:
        found = (*found, _model(session, wanted))
        if found[-1].effect is _OUT:
            return found
    if session.mode is not wanted.mode and wanted.mode is not None:
        found = (*found, _mode(session.mode, wanted.mode, can))
        if found[-1].effect is _OUT:
            return found
    if session.instructions != here.instructions:
        found = (*found, RuleReason.INSTRUCTIONS_DRIFT)
    if session.tools != here.tools:
        found = (*found, RuleReason.TOOLS_DRIFT)
    # A key of None is unknown, or cannot be read at the moment: no change is known.
    if None not in (session.credential, here.credential) and session.credential != here.credential:
        found = (*found, RuleReason.KEY_DRIFT)
    return found


def _in_use(session: Session, wanted: Wanted) -> Findings:
    """Wait for it, unless the policy allows parallel work and it can be forked."""
    if wanted.policy.parallel and _can_fork(session, wanted):
        rest = weigh(replace(session, busy_with=None), wanted)
        if all(finding.effect < Effect.CARRY for finding in rest):
            return (RuleReason.BUSY_FORK, *rest)
    return (RuleReason.BUSY,)


_UNHEALTHY: Mapping[SessionState, RuleReason] = {
    SessionState.POISONED: RuleReason.POISONED,
    SessionState.LOST: RuleReason.LOST,
    SessionState.RETIRED: RuleReason.RETIRED,
    SessionState.SEALED: RuleReason.SEALED,
    SessionState.MOVED: RuleReason.MOVED,
}


def _carried(session: Session, wanted: Wanted) -> bool:
    """Whether the session can be used here only from its archive."""
    return session.runtime != wanted.here.runtime or session.state is _LOST


def _archive(archive: Archive | None, wanted: Wanted) -> RuleReason | None:
    if archive is None:
        return _ARCHIVE_MISSING
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
    """A fork must open in the wanted directory, so a session elsewhere needs `fork_into`."""
    if _carried(session, wanted):
        return False
    can = wanted.here.capabilities
    is_there = wanted.directory is None or session.directory.place == wanted.directory.place
    return can.fork if is_there else can.fork_into


def _model(session: Session, wanted: Wanted) -> RuleReason:
    if wanted.policy.on_model_change is ModelChange.RESEED:
        return RuleReason.MODEL_POLICY
    if wanted.here.capabilities.change_model:
        return RuleReason.MODEL_CHANGES
    return RuleReason.MODEL_FORK if _can_fork(session, wanted) else RuleReason.MODEL_FIXED


def _mode(had: PermissionMode | None, wanted: PermissionMode, can: Capabilities) -> RuleReason:
    if can.reapply_mode:
        narrows = had is None or had > wanted
        blind = LandingField.MODE not in can.reports
        return RuleReason.MODE_UNVERIFIABLE if narrows and blind else RuleReason.MODE_REAPPLIED
    return RuleReason.MODE_KEPT if had is not None and had < wanted else _MODE_FIXED
