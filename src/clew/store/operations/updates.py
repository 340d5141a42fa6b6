"""Updates of a row: a dataclass that names what changes. A field that is left out keeps its column."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final

from clew.kernel import AgentState, RuntimeId


class Kept(Enum):
    """The value of a field that is left out; None is a value of its own."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT


@dataclass(frozen=True, slots=True)
class AgentUpdate:
    """`settings` is its program as JSON, and `program` the key that program is registered with; `missing` is why it
    cannot be started."""

    provider: str | Kept = KEPT
    runtime: RuntimeId | Kept = KEPT
    model: str | Kept | None = KEPT
    mode: str | Kept = KEPT
    instructions: str | Kept | None = KEPT
    max_parallel: int | Kept = KEPT
    settings: str | Kept = KEPT
    program: str | Kept = KEPT
    policy: str | Kept = KEPT
    state: AgentState | Kept = KEPT
    missing: str | Kept | None = KEPT


@dataclass(frozen=True, slots=True)
class ProjectUpdate:
    """`machine` has the source; None for an address, which every machine can clone. `settings` is JSON."""

    source: str | Kept = KEPT
    machine: str | Kept | None = KEPT
    mode_limit: str | Kept | None = KEPT
    settings: str | Kept = KEPT


AGENT_COLUMNS = {"runtime": "runtime_id", "max_parallel": "max_live"}
PROJECT_COLUMNS = {"machine": "machine_id"}
"""The columns of fields that have another name."""


def column_values(update: AgentUpdate | ProjectUpdate, columns: Mapping[str, str]) -> dict[str, Any]:
    given = {each.name: getattr(update, each.name) for each in fields(update)}
    return {
        columns.get(name, name): value.value if isinstance(value, Enum) else value
        for name, value in given.items()
        if value is not KEPT
    }
