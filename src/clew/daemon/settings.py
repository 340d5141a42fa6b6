"""The settings in an order, read: the agent's program, and the source of the project."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from clew.kernel import Plan
from clew.ports.fault import Fault
from clew.ports.workspaces import PlaceWanted, ProjectSource, Setup, SourceKind
from clew.programs.program import environment_for
from clew.protocol.machine import AgentProgram
from clew.protocol.orders import Order


class SettingsUnreadable(Fault):
    code = "daemon:settings-unreadable"


def program_of(order: Order) -> AgentProgram | None:
    """None where the agent's settings name no provider: then its runtime's program is used."""
    try:
        return _program(order.agent.settings)
    except (TypeError, ValueError, AttributeError, RecursionError) as fault:
        raise _unreadable(f"agent {order.agent.name}", str(fault) or repr(fault)) from fault


@lru_cache(maxsize=256)
def _program(settings: str) -> AgentProgram | None:
    """Cached: the same settings come with every order of an agent."""
    said = _object(settings)
    if "provider" not in said:
        return None
    return AgentProgram(
        provider=str(said["provider"]),
        program=tuple(map(str, said.get("program") or ())),
        options=_texts(said.get("options")),
        home=_texts(said.get("home")),
        environment=_texts(said.get("environment")),
    )


def place_wanted(order: Order, plan: Plan) -> PlaceWanted | None:
    """The workspace of the plan, or None."""
    workspace = plan.workspace
    if workspace is None:
        return None
    thread = order.thread
    where = thread.id if thread.number is None else f"{thread.kind}-{thread.number}"
    who = f"{order.agent.name} in {where}"
    return PlaceWanted(order.lane, workspace, _source(order, plan), who)


def _source(order: Order, plan: Plan) -> ProjectSource | None:
    project = order.project
    if project is None or plan.workspace is None or plan.workspace.project != project.id:
        return None
    try:
        said = _object(project.settings)
        kind = SourceKind(said.get("kind", SourceKind.REPOSITORY))
        base = said.get("base")
        setup = Setup(
            tuple(map(str, said.get("setup") or ())),
            environment_for(_texts(said.get("environment"))),
            float(said.get("seconds", 600.0)),
        )
    except (TypeError, ValueError, AttributeError, RecursionError) as fault:
        raise _unreadable(f"project {project.name}", str(fault) or repr(fault)) from fault
    return ProjectSource(project.id, project.source, kind, None if base is None else str(base), setup)


def _object(settings: str) -> dict[str, Any]:
    said = json.loads(settings)
    if not isinstance(said, dict):
        raise ValueError("they are not a JSON object")
    return said


def _texts(said: Mapping[str, object] | None) -> dict[str, str]:
    return {str(name): str(value) for name, value in (said or {}).items()}


def _unreadable(whose: str, why: str) -> SettingsUnreadable:
    return SettingsUnreadable(f"The settings of {whose} cannot be read: {why}.", "Set them again, as a JSON object.")
