"""Policies of agents and of projects: shown, checked and set (docs/policy.md has the fields)."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import cast

from clew.control.actor import Actor
from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.kernel import Policy, RecordError, policy_from_record, policy_to_record
from clew.ports.workspaces import SourceKind
from clew.protocol.policies import PolicyView
from clew.protocol.requests import PolicyChange
from clew.store.engine.database import Transaction
from clew.store.operations import agents as agent_store
from clew.store.operations import projects as project_store
from clew.store.operations.policies import policy_in
from clew.store.operations.rows import read_object
from clew.store.operations.updates import AgentUpdate, ProjectUpdate
from clew.store.queries.names import agent_named, project_named
from clew.store.queries.projects import project_settings, read_settings

_AGENTS_ALONE = "history_across_accounts"
"""Whether history may go to another account is decided for each agent, never for all agents of a project."""


async def show_agent_policy(services: Services, actor: Actor, name: str) -> PolicyView:
    kept = await services.read(lambda tx: agent_named(tx, name).policy)
    return _view("agent", name, read_object(kept) or {})


async def show_project_policy(services: Services, actor: Actor, name: str) -> PolicyView:
    kept = await services.read(lambda tx: policy_in(read_settings(tx, project_named(tx, name).id)))
    return _view("project", name, kept)


async def set_agent_policy(services: Services, actor: Actor, name: str, change: PolicyChange) -> PolicyView:
    """Replaces the agent's policy, also one that cannot be read. Held runs are decided again."""
    given = dict(change.policy)
    read_given(given)

    def write(tx: Transaction) -> None:
        agent_store.change_agent(tx, agent_named(tx, name).id, AgentUpdate(policy=json.dumps(given)))

    await services.write(write)
    services.record(actor, f"set the policy of agent {name}: {', '.join(given) or 'defaults'}")
    return _view("agent", name, given)


async def set_project_policy(services: Services, actor: Actor, name: str, change: PolicyChange) -> PolicyView:
    """Replaces the project's policy. Held runs of the project are decided again."""
    given = dict(change.policy)
    read_given(given)
    if _AGENTS_ALONE in given:
        raise BadRequest(
            f"{_AGENTS_ALONE} cannot be set for a project.",
            "Set it for each agent: `clew agent edit AGENT --across-accounts yes`.",
        )

    def write(tx: Transaction) -> None:
        project = project_named(tx, name)
        settings = project_settings(SourceKind(project.kind), project.base, project.setup, given)
        project_store.change_project(tx, project.id, ProjectUpdate(settings=settings))

    await services.write(write)
    services.record(actor, f"set the policy of project {name}: {', '.join(given) or 'defaults'}")
    return _view("project", name, given)


def read_given(policy: Mapping[str, object]) -> Policy:
    """A policy as it was typed; refused with the field that is wrong."""
    try:
        read = policy_from_record(dict(policy))
    except (RecordError, ValueError, TypeError, RecursionError) as fault:
        raise BadRequest(f"The policy cannot be read: {fault}.", "docs/policy.md has its fields.") from fault
    for field in fields(read.limits):
        limit = getattr(read.limits, field.name)
        if limit is not None and limit < 1:
            raise BadRequest(
                f"The policy cannot be used: policy.limits.{field.name} must be 1 or more (got {limit:g}).",
                "Leave it out for no limit.",
            )
    return read


def _view(kind: str, name: str, given: Mapping[str, object]) -> PolicyView:
    try:
        applies = cast(Mapping[str, object], policy_to_record(policy_from_record(dict(given))))
    except (RecordError, ValueError, TypeError, RecursionError):
        applies = {}
    return PolicyView(kind, name, given, applies)
