"""Ids as distinct types that cannot be mixed up, and the two keys that must stay apart: scope and route."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NewType

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
