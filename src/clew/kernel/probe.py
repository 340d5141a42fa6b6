"""Probes: an agent's answer when it is asked for a session, and what follows for the session."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from clew.kernel.capability import Capabilities
from clew.kernel.ids import SessionId
from clew.kernel.place import Directory
from clew.kernel.reason import Reason
from clew.kernel.session import Archive, ArchiveState, Session, SessionState


class ProbeKind(StrEnum):
    FOUND_HERE = "found-here"
    FOUND_ELSEWHERE = "found-elsewhere"
    MISSING = "missing"
    REJECTED = "rejected"
    UNREACHABLE = "unreachable"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Probe:
    """An agent's answer. `signal` is the structured signal for missing or rejected. `tool_ran`: the rejected attempt
    had already done work."""

    kind: ProbeKind
    directory: Directory | None = None
    signal: str | None = None
    holder: str | None = None
    tool_ran: bool = False
    detail: str = ""

    def __post_init__(self) -> None:
        if self.kind is ProbeKind.FOUND_ELSEWHERE and self.directory is None:
            raise ValueError("a probe that found the session elsewhere must say in which directory")


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe of one session. `restored`: it was made after the session's archive had been restored here."""

    session: SessionId
    probe: Probe
    restored: bool = False


class ProbeReason(Reason):
    UNREACHABLE = "probe:unreachable", "The agent could not be asked about the session: {probe.detail}"
    UNSTRUCTURED = (
        "probe:unstructured",
        "The agent seems to report {probe.kind}, but not by a declared signal ({probe.signal}): {probe.detail}",
    )
    TOOL_RAN = "probe:tool-ran", "The agent refused the session after a tool had run; it is not retried automatically."
    REJECTED_AGAIN = "probe:rejected-again", "A second session was refused in the same run: {probe.detail}"
    RESTORED_ELSEWHERE = (
        "probe:restored-elsewhere",
        "The restored session is in {probe.directory}, not where it was restored to.",
    )


@dataclass(frozen=True, slots=True)
class Hold:
    """A probe that leaves the question open, and why."""

    probed: Probed
    reason: ProbeReason


@dataclass(frozen=True, slots=True)
class Learned:
    """The result of all probes: the sessions as they really are, which are proven, and why to hold, if so.

    `last` is the session of the latest conclusive answer.
    """

    sessions: dict[SessionId, Session]
    proven: frozenset[SessionId]
    lost: tuple[SessionId, ...]
    poisoned: tuple[SessionId, ...]
    hold: Hold | None
    last: SessionId | None


def learn(  # noqa: C901 - one case for each kind of answer
    sessions: Iterable[Session], probes: tuple[Probed, ...], wanted: Directory | None, can: Capabilities
) -> Learned:
    """Apply the answers to the sessions. Only a structured, declared answer changes a session's state."""
    recorded = {session.id: session for session in sessions}
    known = dict(recorded)
    proven: set[SessionId] = set()
    lost: list[SessionId] = []
    poisoned: list[SessionId] = []
    refused = False
    hold: Hold | None = None
    last: SessionId | None = None
    for probed in probes:
        session, probe = known.get(probed.session), probed.probe
        if session is None:
            continue
        if probe.kind in (ProbeKind.MISSING, ProbeKind.REJECTED):
            proven.discard(session.id)
        reason = _must_hold(probed, can, refused)
        hold = None if reason is None else Hold(probed, reason)
        if hold is not None:
            continue
        # A session that another live run has by our own record stays busy, whatever the agent answers.
        busy_with = recorded[session.id].busy_with
        match probe.kind:
            case ProbeKind.FOUND_HERE:
                session = replace(session, directory=wanted or session.directory, busy_with=busy_with)
                proven.add(session.id)
            case ProbeKind.FOUND_ELSEWHERE:
                session = replace(session, directory=probe.directory or session.directory, busy_with=busy_with)
                proven.add(session.id)
            case ProbeKind.BUSY:
                session = replace(session, busy_with=probe.holder or "another program")
                proven.add(session.id)
            case ProbeKind.MISSING if probed.restored:
                session = _archive_failed(session)
            case ProbeKind.MISSING:
                session = replace(session, state=SessionState.LOST)
                lost.append(session.id)
            case ProbeKind.REJECTED if probed.restored:
                refused = True
                session = _archive_failed(session)
            case ProbeKind.REJECTED:
                refused = True
                session = replace(session, state=SessionState.POISONED)
                poisoned.append(session.id)
            case ProbeKind.UNREACHABLE:
                pass
        known[session.id] = session
        last = session.id
    return Learned(known, frozenset(proven), tuple(lost), tuple(poisoned), hold, last)


def _must_hold(probed: Probed, can: Capabilities, refused_before: bool) -> ProbeReason | None:
    probe = probed.probe
    match probe.kind:
        case ProbeKind.UNREACHABLE:
            return ProbeReason.UNREACHABLE
        case ProbeKind.MISSING:
            return None if probe.signal in can.missing_signals else ProbeReason.UNSTRUCTURED
        case ProbeKind.REJECTED if probe.tool_ran:
            return ProbeReason.TOOL_RAN
        case ProbeKind.REJECTED if probe.signal not in can.rejection_signals:
            return ProbeReason.UNSTRUCTURED
        case ProbeKind.REJECTED:
            return ProbeReason.REJECTED_AGAIN if refused_before else None
        case ProbeKind.FOUND_ELSEWHERE if probed.restored:
            return ProbeReason.RESTORED_ELSEWHERE
        case ProbeKind.FOUND_HERE | ProbeKind.FOUND_ELSEWHERE | ProbeKind.BUSY:
            return None


def _archive_failed(session: Session) -> Session:
    return session if session.archive is None else replace(session, archive=_spoiled(session.archive))


def _spoiled(archive: Archive) -> Archive:
    return replace(archive, state=ArchiveState.CORRUPT)
