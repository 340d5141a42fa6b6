"""Ids as distinct types that cannot be mixed up; the two keys that must stay apart, scope and route; and subjects.

A subject is something outside: a pull request, a chat, an alarm. Its thread's id is derived from its name.
"""

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NewType

from clew.kernel.contract import must_be

AgentId = NewType("AgentId", str)
ThreadId = NewType("ThreadId", str)
LaneId = NewType("LaneId", str)
WakeId = NewType("WakeId", str)
RunId = NewType("RunId", str)
SessionId = NewType("SessionId", str)
RuntimeId = NewType("RuntimeId", str)
MachineId = NewType("MachineId", str)
ProjectId = NewType("ProjectId", str)
WorkspaceId = NewType("WorkspaceId", str)
ApprovalId = NewType("ApprovalId", str)
AccountId = NewType("AccountId", str)
ProviderName = NewType("ProviderName", str)
NativeId = NewType("NativeId", str)

EntrySeq = NewType("EntrySeq", int)
"""A journal entry's position in its thread. The first is 1; 0 means that nothing was seen."""

Instant = float
"""Seconds since the epoch. Always an argument: the kernel has no clock."""

NOTHING_SEEN = EntrySeq(0)


class RouteKind(StrEnum):
    THREAD = "thread"
    WEBHOOK = "webhook"
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True)
class RouteKey:
    """Where replies go."""

    kind: RouteKind
    address: str


@dataclass(frozen=True, slots=True)
class LaneScope:
    """Context is kept for the lane: every wake sees what earlier wakes left."""

    lane: LaneId
    run: ClassVar[None] = None


@dataclass(frozen=True, slots=True)
class RunScope:
    """Context is kept for one run alone: nothing earlier is reachable, nothing later sees it."""

    lane: LaneId
    run: RunId


ScopeKey = LaneScope | RunScope
"""The identity under which context state is kept. A value, never parsed from a string."""


def isolated(scope: ScopeKey, run: RunId) -> RunScope:
    """One run's own scope. A scope that is already isolated is returned unchanged."""
    match scope:
        case RunScope():
            return scope
        case LaneScope(lane):
            return RunScope(lane, run)


def runtime_id(machine: MachineId, provider: ProviderName, home: str) -> RuntimeId:
    """The same three always give the same id, so a runtime that registers again finds its sessions."""
    return RuntimeId("rt_" + _digest("runtime", machine, provider, home))


def lane_id(agent: AgentId, thread: ThreadId) -> LaneId:
    return LaneId("ln_" + _digest("lane", agent, thread))


def subject_thread(source: str, subject: str) -> ThreadId:
    """The thread of an outside subject (a pull request, a chat), derived from its name: no table, no race."""
    return ThreadId("th_" + _digest("subject", source, subject))


def own_thread(agent: AgentId) -> ThreadId:
    """The thread for an agent's wakes that belong to no other thread: pokes and heartbeats."""
    return ThreadId("th_" + _digest("own", agent))


def _digest(*parts: str) -> str:
    # With lengths, so that ("ab", "c") and ("a", "bc") cannot collide.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


_SOURCE = re.compile(r"[a-z][a-z0-9.+-]{0,31}")
_NAME = re.compile(r"[^\s\x00-\x1f\x7f-\x9f](?:[^\x00-\x1f\x7f-\x9f]{0,198}[^\s\x00-\x1f\x7f-\x9f])?")
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Subject:
    """The source and the name there: `github` and `acme/app#12`."""

    source: str
    name: str

    @property
    def thread(self) -> ThreadId:
        return subject_thread(self.source, self.name)

    def __str__(self) -> str:
        return f"{self.source}:{self.name}"


def read_subject(text: str) -> Subject:
    """Read `source:name`. Raises ValueError with a sentence that says what is wrong."""
    must_be(text, str, "a subject")
    source, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"{_shown(text)} is not a subject: it has no colon.")
    if not _SOURCE.fullmatch(source):
        raise ValueError(
            f"{_shown(source)} cannot be the source of a subject: use up to 32 small letters, digits, dots, pluses and "
            "dashes."
        )
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{_shown(name)} cannot be the name of a subject: it has 1 to 200 characters, on one line, without "
            "space around it."
        )
    return Subject(source, name)


def _shown(text: str) -> str:
    """The text, cut to a length that is enough to recognise it."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
