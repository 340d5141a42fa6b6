"""Candidates: which of a lane's sessions can serve the run, and how."""

from typing import NamedTuple

from clew.kernel.ids import RuntimeId
from clew.kernel.rule import Findings, Wanted, weigh
from clew.kernel.rule_reason import Effect, RuleName, RuleReason
from clew.kernel.session import Cursor, Session
from clew.kernel.trace import Route, Weighed, route_of


class Weighing(NamedTuple):
    """The candidates that were weighed, newest first; the chosen one; and those that did not have to be weighed."""

    weighed: tuple[Weighed, ...]
    chosen: Weighed | None
    not_needed: tuple[Session, ...]


# Reading a member off its class is slow on Python 3.11, and these are read for every candidate.
_OUT, _LIMITS = Effect.OUT, RuleName.LIMITS
_TRANSFER, _WAIT = Route.TRANSFER, Route.WAIT
_RETIRED, _SUPERSEDED = RuleReason.RETIRED, (RuleReason.SUPERSEDED,)


def weigh_all(sessions: list[Session], wanted: Wanted) -> Weighing:
    """Weigh the candidates, newest first, until one of this runtime can serve; else take the newest transferable one.

    The search stops at a busy session, and at a session of this runtime that was rotated or is about to be. Continuing
    an older one would split the conversation, or undo the rotation.
    """
    weighed: list[Weighed] = []
    carriable: Weighed | None = None
    here, superseded = wanted.here.runtime, _superseded(sessions, wanted)
    for at, session in enumerate(sessions, 1):
        findings: Findings = _SUPERSEDED if superseded and at in superseded else weigh(session, wanted)
        weighed.append((session, findings))
        if findings and findings[-1].effect is _OUT:
            ends_line = findings[-1].rule is _LIMITS or findings[-1] is _RETIRED
            if ends_line and session.runtime == here:
                return Weighing(tuple(weighed), carriable, tuple(sessions[at:]))
            continue
        route = route_of(findings)
        if route is _TRANSFER and session.runtime != here:
            carriable = carriable or weighed[-1]
            continue
        waits = route is _WAIT and carriable is not None
        return Weighing(tuple(weighed), carriable if waits else weighed[-1], tuple(sessions[at:]))
    return Weighing(tuple(weighed), carriable, ())


def _superseded(sessions: list[Session], wanted: Wanted) -> frozenset[int]:
    """The positions, counted from 1, of sessions that a newer generation of the lane records again.

    A newer record with an unknown runtime may be the same session, so it counts.
    """
    ids = [cursor.native_id for session in sessions if isinstance(cursor := session.cursor, Cursor)]
    if len(set(ids)) == len(ids):
        return frozenset()
    recorded: dict[str, set[RuntimeId | None]] = {}
    places: set[int] = set()
    for at, session in enumerate(sessions, 1):
        is_own = session.lane == wanted.situation.lane and session.scope == wanted.situation.scope
        if is_own and isinstance(session.cursor, Cursor):
            runtimes = recorded.setdefault(session.cursor.native_id, set())
            if session.runtime in runtimes or None in runtimes:
                places.add(at)
            runtimes.add(session.runtime)
    return frozenset(places)
