"""Weighing: which of a lane's sessions can serve the run, and how."""

from typing import NamedTuple

from clew.kernel.rule import Wanted, answers
from clew.kernel.rule_reason import Effect, RuleReason
from clew.kernel.session import Cursor, Session
from clew.kernel.trace import Considered, Route, route_of


class Weighing(NamedTuple):
    """The candidates that were weighed, newest first, the one that serves, and those that need not be weighed."""

    considered: tuple[Considered, ...]
    chosen: Considered | None
    not_needed: tuple[Session, ...]


# Reading a member off its class is slow on Python 3.11, and these are read for every candidate.
_OUT = Effect.OUT
_TRANSFER, _WAIT = Route.TRANSFER, Route.WAIT
_SUPERSEDED = (RuleReason.SUPERSEDED,)


def weigh_all(sessions: list[Session], wanted: Wanted) -> Weighing:
    """Weigh the candidates, newest first, until one that lives here can serve; else the newest that can be carried.

    A busy session stops the search unless a newer one can be carried: going on in an older one would split
    the conversation.
    """
    considered: list[Considered] = []
    carriable: Considered | None = None
    recorded: set[tuple[object, str]] = set()
    for at, session in enumerate(sessions, 1):
        cursor = session.cursor
        if isinstance(cursor, Cursor):
            record = (session.runtime, cursor.native_id)
            if record in recorded:
                considered.append(Considered(session, _SUPERSEDED))
                continue
            recorded.add(record)
        findings = weigh(session, wanted)
        weighed = Considered(session, findings)
        considered.append(weighed)
        if findings and findings[-1].effect is _OUT:
            continue
        route = route_of(findings)
        if route is _TRANSFER:
            carriable = carriable or weighed
        elif route is not _WAIT or carriable is None:
            return Weighing(tuple(considered), weighed, tuple(sessions[at:]))
    return Weighing(tuple(considered), carriable, ())


def weigh(session: Session, wanted: Wanted) -> tuple[RuleReason, ...]:
    """What the rules say of one session, up to the first that rules it out."""
    found: list[RuleReason] = []
    for reason in answers(session, wanted):
        found.append(reason)
        if reason.effect is _OUT:
            break
    return tuple(found)
