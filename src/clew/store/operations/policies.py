"""Policies: what people set for an agent and for a project, as JSON. For a run they are one policy: the project's
fields, then the agent's, which count where both set one."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from clew.kernel import Policy, policy_from_record
from clew.store.operations.rows import read_object, unreadable

POLICY = "policy"
"""The key of a project's settings that has its policy."""


# The same few texts come with every claim, and parsing one takes longer than the look-up.
@lru_cache(maxsize=512)
def _policy(text: str) -> Policy:
    return policy_from_record(json.loads(text))


@lru_cache(maxsize=512)
def _combined(settings: str, agent: str) -> Policy:
    set_there = json.loads(settings).get(POLICY) or {}
    return policy_from_record({**set_there, **json.loads(agent)}) if set_there else _policy(agent)


def read_policy(agent: str, text: str, project: str | None = None, settings: str | None = None) -> Policy:
    """The policy of a run, from its agent's and from the settings of its project, if it has one."""
    try:
        own = _policy(text)
    except (ValueError, RecursionError) as fault:
        raise unreadable("agents", agent, "policy", fault) from fault
    if project is None or settings is None:
        return own
    try:
        return _combined(settings, text)
    except (ValueError, TypeError, AttributeError, RecursionError) as fault:
        raise unreadable("projects", project, "settings", fault) from fault


def with_policy(text: str, agent: str, **changes: bool) -> str:
    """The policy with these fields changed. One that cannot be read raises and is not replaced."""
    read_policy(agent, text)
    return json.dumps({**json.loads(text), **changes})


def policy_in(settings: str) -> Mapping[str, Any]:
    """The policy in a project's settings; empty where there is none."""
    kept = (read_object(settings) or {}).get(POLICY)
    return kept if isinstance(kept, dict) else {}


def across_accounts(text: str) -> bool:
    """For views of an agent. An unreadable policy gives False: the agent can still be shown, and a claim reports it."""
    try:
        return _policy(text).history_across_accounts
    except (ValueError, RecursionError):
        return False


def damaged_settings(settings: str, policy: str) -> str:
    """Which of an agent's stored settings cannot be read: "settings", "policy", or "" if both can."""
    kept = read_object(settings)
    if kept is None or not isinstance(kept.get("program", []), list):
        return "settings"
    if not all(isinstance(kept.get(name, {}), dict) for name in ("options", "home", "environment")):
        return "settings"
    try:
        _policy(policy)
    except (ValueError, RecursionError):
        return "policy"
    return ""
