"""The names of things, as types that cannot be swapped, and the two keys that must never be one."""

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
"""A journal entry's place in its thread; the first is 1, and 0 means that nothing was seen."""

Instant = float
"""Seconds since the epoch, always handed in: the kernel has no clock."""

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
    """Context is kept for the lane: every wake sees what earlier ones left."""

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
    """One run's own scope. A scope that is already isolated stays what it is."""
    match scope:
        case RunScope():
            return scope
        case LaneScope(lane):
            return RunScope(lane, run)


def runtime_id(machine: MachineId, provider: ProviderName, home: str) -> RuntimeId:
    """The same three always give the same runtime, so registering again finds all its sessions."""
    return RuntimeId("rt_" + _digest("runtime", machine, provider, home))


def lane_id(agent: AgentId, thread: ThreadId) -> LaneId:
    return LaneId("ln_" + _digest("lane", agent, thread))


def subject_thread(source: str, subject: str) -> ThreadId:
    """The thread of an outside subject (a pull request, a chat), by its name alone: no table, no race."""
    return ThreadId("th_" + _digest("subject", source, subject))


def own_thread(agent: AgentId) -> ThreadId:
    """The thread of an agent's wakes that belong to no other: pokes and heartbeats."""
    return ThreadId("th_" + _digest("own", agent))


def _digest(*parts: str) -> str:
    # Lengths go in so that ("ab", "c") and ("a", "bc") cannot meet.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
