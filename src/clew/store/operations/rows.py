"""Rows as the kernel's values. A row that cannot be read raises an error that names it; no value is guessed."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import orjson

from clew.kernel import (
    AccountId,
    AgentId,
    Archive,
    ArchiveState,
    Capabilities,
    Directory,
    EntrySeq,
    Floor,
    Freshness,
    LaneId,
    LaneScope,
    MachineId,
    Origin,
    OriginKind,
    PermissionMode,
    ProjectId,
    ProviderName,
    RouteKey,
    RouteKind,
    Run,
    RunId,
    RunScope,
    RunState,
    RuntimeId,
    ScopeKey,
    Session,
    SessionId,
    SessionState,
    Wake,
    WakeId,
    WakeReason,
    Workspace,
    WorkspaceId,
    WorkspaceKind,
    capabilities_from_record,
    read_cursor,
)
from clew.protocol.machine import AgentProgram
from clew.store.engine.statement import Row
from clew.store.faults import Unreadable
from clew.store.schema.tables import UNKNOWN_RUNTIME


def unreadable(table: str, row_id: str, column: str, fault: Exception) -> Unreadable:
    return Unreadable(
        f"The row {row_id} of {table} cannot be read ({column}): {fault}.",
        "Run `clew db check`, then fix that row or restore a backup; all other rows work.",
    )


# The same few texts come with every claim, and parsing one takes longer than the look-up.
@lru_cache(maxsize=512)
def _capabilities(text: str) -> Capabilities:
    return capabilities_from_record(json.loads(text))


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a text, for views: None if it is anything else, so that its row can still be shown."""
    try:
        found = orjson.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def write_program(program: AgentProgram) -> str:
    """An agent's program as its settings store it."""
    return json.dumps(asdict(program))


def read_program(text: str, provider: str) -> AgentProgram:
    """An agent's program. Settings that cannot be read are left out: the agent can still be shown and changed."""
    kept = read_object(text) or {}
    words = kept.get("program")
    return AgentProgram(
        provider=provider,
        program=tuple(map(str, words)) if isinstance(words, list) else (),
        options=_texts(kept.get("options")),
        home=_texts(kept.get("home")),
        environment=_texts(kept.get("environment")),
    )


def _texts(value: object) -> Mapping[str, str]:
    return {str(name): str(text) for name, text in value.items()} if isinstance(value, dict) else {}


def read_capabilities(runtime: str, text: str) -> Capabilities:
    try:
        return _capabilities(text)
    except (ValueError, RecursionError) as fault:
        raise unreadable("runtimes", runtime, "capabilities", fault) from fault


def _read_mode(text: str | None) -> PermissionMode | None:
    """The mode of a session; None for an unknown name."""
    return None if text is None else _MODES.get(text)


_MODES = {mode.value: mode for mode in PermissionMode}


def _read_numbers(text: str) -> tuple[EntrySeq, ...]:
    if text == "[]":
        return ()
    stored = json.loads(text)
    if not (isinstance(stored, list) and all(type(each) is int for each in stored)):
        raise ValueError(f"{text!r} is not a list of numbers")
    return tuple(map(EntrySeq, stored))


def read_floor(row: Row) -> Floor:
    try:
        return Floor(row["floor_generation"], EntrySeq(row["floor_entry"]), _read_numbers(row["floor_kept"]))
    except (ValueError, RecursionError) as fault:
        raise unreadable("lanes", row["lane_id"], "floor_kept", fault) from fault


def read_scope(lane: LaneId, scope_run: str) -> ScopeKey:
    return RunScope(lane, RunId(scope_run)) if scope_run else LaneScope(lane)


def read_wake(row: Row, prefix: str = "") -> Wake:
    """The wake in the columns with that prefix."""
    try:
        return Wake(
            id=WakeId(row[f"{prefix}id"]),
            lane=LaneId(row[f"{prefix}lane_id"]),
            reason=WakeReason(row[f"{prefix}reason"]),
            origin=Origin(
                OriginKind(row[f"{prefix}origin_kind"]),
                _optional(AgentId, row[f"{prefix}origin_agent"]),
                row[f"{prefix}origin_depth"],
            ),
            accepted_at=row[f"{prefix}accepted_at"],
            entries=_entries(row[f"{prefix}entry"], row[f"{prefix}entries"]),
            freshness=Freshness(row[f"{prefix}freshness"]),
            resume_run=row[f"{prefix}resume_run"],
            priority=row[f"{prefix}priority"],
            not_before=row[f"{prefix}not_before"],
            route=read_route(row[f"{prefix}route"]),
            began=bool(row[f"{prefix}began"]),
        )
    except (ValueError, TypeError, RecursionError) as fault:
        raise unreadable("wakes", row[f"{prefix}id"], "its values", fault) from fault


def _entries(own: int, more: str | None) -> tuple[EntrySeq, ...]:
    said = (EntrySeq(own),) if own else ()
    return said if more is None else tuple(sorted({*said, *_read_numbers(more)}))


def read_session(row: Row) -> Session:
    try:
        lane = LaneId(row["lane_id"])
        runtime = row["runtime_id"]
        return Session(
            id=SessionId(row["id"]),
            generation=row["generation"],
            lane=lane,
            scope=read_scope(lane, row["scope_run"]),
            provider=ProviderName(row["provider"]),
            runtime=None if runtime == UNKNOWN_RUNTIME else RuntimeId(runtime),
            directory=_directory(row["directory"], row["real_directory"]),
            cursor=read_cursor(row["cursor"]),
            account=_optional(AccountId, row["account"]),
            state=SessionState(row["state"]),
            begins=EntrySeq(row["begins"]),
            also=_read_numbers(row["also"]),
            seen=EntrySeq(row["seen"]),
            model=row["model"],
            mode=_read_mode(row["mode"]),
            instructions=row["instructions"],
            tools=row["tools"],
            busy_with=row["busy_with"],
            turns=row["turns"],
            tokens=row["tokens"],
            size=row["size"],
            born_at=row["born_at"],
            archive=_archive(row),
            proven_at=row["proven_at"],
            cut_off=bool(row["cut_off"]),
            credential=row["credential"],
        )
    except (ValueError, TypeError, RecursionError) as fault:
        raise unreadable("sessions", row["id"], "its values", fault) from fault


def read_run(row: Row) -> Run:
    return Run(
        id=RunId(row["id"]),
        lane=LaneId(row["lane_id"]),
        state=RunState(row["state"]),
        attempt=row["attempt"],
        lease_until=row["lease_until"],
        session=row["session_id"],
        prompt_sent=bool(row["prompt_sent"]),
        tool_ran=bool(row["tool_ran"]),
        reopened=bool(row["reopened"]),
    )


def read_workspace(row: Row, prefix: str = "") -> Workspace | None:
    """The workspace in the columns with that prefix; None if the row has none."""
    if row[f"{prefix}id"] is None:
        return None
    try:
        return Workspace(
            WorkspaceId(row[f"{prefix}id"]),
            WorkspaceKind(row[f"{prefix}kind"]),
            _directory(row[f"{prefix}directory"], None),
            _optional(ProjectId, row[f"{prefix}project_id"]),
            _optional(MachineId, row[f"{prefix}machine_id"]),
            row[f"{prefix}branch"],
        )
    except ValueError as fault:
        raise unreadable("workspaces", row[f"{prefix}id"], "its values", fault) from fault


# Making a Directory normalises its path, and the same few are read again and again.
@lru_cache(maxsize=4096)
def _directory(path: str, real: str | None) -> Directory:
    return Directory(path, real)


def read_route(text: str | None) -> RouteKey | None:
    if text is None:
        return None
    kind, address = json.loads(text)
    return RouteKey(RouteKind(kind), address)


def _archive(row: Row) -> Archive | None:
    if row["archive_format"] is None:
        return None
    return Archive(
        row["archive_format"], EntrySeq(row["archive_seen"]), row["archive_turns"], ArchiveState(row["archive_state"])
    )


def _optional(kind: Any, text: str | None) -> Any:
    return None if text is None else kind(text)
