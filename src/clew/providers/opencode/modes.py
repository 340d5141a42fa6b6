"""Permission modes as OpenCode's rules: of all that match a tool and what it is called with, the last one counts.

A session's rules come after those of its agent. Three things shape the lists below. A subagent inherits of its
parent's list what is denied, and nothing of what must be asked: what asks is denied first, and only the subagent that
explores may be called unless everything may be done. A list is replaced only by way of a rule that allows or denies one
tool altogether: each list begins with one. And a user's own configuration holds tools back for a reason: what it denies
stays denied in every mode.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from clew.kernel import PermissionMode
from clew.programs.faults import Refused, TooSlow
from clew.programs.tasks import gather_or_cancel
from clew.providers.opencode.api import Api
from clew.providers.opencode.http import Json


class Action(StrEnum):
    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


class Rule(NamedTuple):
    permission: str
    pattern: str
    action: Action


Rules = tuple[Rule, ...]

_ANY = "*"
_OUTSIDE = "external_directory"
_LOOKING = ("read", "glob", "grep", "list", "lsp", "skill", "todoread", "todowrite", "question")
_DOING = ("bash", "edit", "webfetch", "websearch", "codesearch")


def _each(names: Iterable[str], action: Action) -> Rules:
    return tuple(Rule(name, _ANY, action) for name in names)


_FIRST: Mapping[PermissionMode, Rules] = {
    PermissionMode.READ: (*_each([_ANY], Action.DENY), *_each(_LOOKING, Action.ALLOW)),
    PermissionMode.ASK: (
        *_each(_DOING, Action.DENY),
        *_each([_ANY], Action.ASK),
        *_each(_LOOKING, Action.ALLOW),
    ),
    PermissionMode.EDIT: (
        *_each(_DOING, Action.DENY),
        *_each([_ANY], Action.ASK),
        *_each([*_LOOKING, "edit"], Action.ALLOW),
    ),
    PermissionMode.FULL: _each([_ANY], Action.ALLOW),
}
_EXPLORING: Rules = (Rule("task", _ANY, Action.DENY), Rule("task", "explore", Action.ALLOW))
_LAST: Mapping[PermissionMode, Rules] = {
    PermissionMode.READ: (Rule("task", _ANY, Action.DENY),),
    PermissionMode.ASK: _EXPLORING,
    PermissionMode.EDIT: _EXPLORING,
    PermissionMode.FULL: (),
}
# What OpenCode and git are told by: who writes there has programs run, and widens what comes next. As in paths.js.
_TOLD = ("opencode.json*", "tui.json*", ".opencode*", ".git", ".git/*")


def rules_for(mode: PermissionMode, agent: Rules) -> Rules:
    """The whole list of a session in that mode, under an agent that has these rules."""
    told = _told(agent) if mode is PermissionMode.EDIT else ()
    return (*_FIRST[mode], *(kept for rule in agent for kept in _held_back(rule, mode)), *told, *_LAST[mode])


def _told(agent: Rules) -> Rules:
    """What edits without asking asks before these. What an agent's own rules deny of them stays denied."""
    denied = [rule.pattern for rule in agent if rule.action is Action.DENY and _matches("edit", rule.permission)]
    every = [pattern for name in _TOLD for pattern in (name, f"*/{name}")]
    asked = [Rule("edit", pattern, Action.ASK) for pattern in every]
    for pattern in denied:
        meant = [each for each in every if _matches(each.rstrip("*"), pattern)]
        if not meant:
            meant = [f"{pattern}{each}" for each in _TOLD] if pattern.endswith(_ANY) else [pattern]
        asked += [Rule("edit", each, Action.DENY) for each in meant]
    return tuple(asked)


def _held_back(rule: Rule, mode: PermissionMode) -> Rules:
    """What of an agent's own rules goes on to count. None of it makes the mode wider."""
    match rule.action:
        case Action.DENY:
            return (rule,)
        case Action.ASK if mode is PermissionMode.READ:
            return (rule._replace(action=Action.DENY),)
        case Action.ASK:
            return () if mode is PermissionMode.FULL else (rule,)
        case Action.ALLOW:
            return (rule,) if _reopens(rule, mode) else ()


def _reopens(rule: Rule, mode: PermissionMode) -> bool:
    """An exception from what is held back: of what the mode allows anyway, or a directory of OpenCode's own."""
    allowed = Rule(rule.permission, _ANY, Action.ALLOW) in _FIRST[mode]
    return mode is PermissionMode.FULL or allowed or (rule.permission == _OUTSIDE and rule.pattern != _ANY)


def as_json(rules: Rules) -> list[dict[str, str]]:
    return [{"permission": each.permission, "pattern": each.pattern, "action": each.action.value} for each in rules]


def parse_rules(stored: Any) -> Rules:
    """The rules as the server tells them; none where it tells none."""
    return tuple(Rule(each["permission"], each["pattern"], Action(each["action"])) for each in stored or ())


def mode_of(agent: Rules, session: Rules) -> PermissionMode:
    """The mode that the rules amount to, told by what they say of a command, a file and a tool nobody knows."""
    all_ = (*agent, *session)
    command, file, tool = (_action(all_, name) for name in ("bash", "edit", "clew-probe"))
    if command is file is tool is Action.ALLOW:
        return PermissionMode.FULL
    if file is Action.ALLOW and command is not Action.ALLOW:
        return PermissionMode.EDIT
    if Action.ALLOW in (command, tool):
        # No mode of ours: what it may do without asking is more than all but the widest allow.
        return PermissionMode.FULL
    return PermissionMode.ASK if Action.ASK in (command, file) else PermissionMode.READ


def _action(rules: Sequence[Rule], permission: str, of: str = "clew-probe") -> Action:
    matching = (
        rule for rule in reversed(rules) if _matches(permission, rule.permission) and _matches(of, rule.pattern)
    )
    found = next(matching, None)
    return Action.ASK if found is None else found.action


def _matches(text: str, pattern: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), text, re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class Agent:
    """OpenCode's own agent that answers the prompts, and the rules that its configuration gives it."""

    name: str
    rules: Rules

    def rules_for(self, mode: PermissionMode) -> Rules:
        return rules_for(mode, self.rules)

    def mode_of(self, rules: Rules) -> PermissionMode:
        return mode_of(self.rules, rules)


async def agent_in(api: Api, directory: str, wanted: str | None) -> Agent:
    """The agent that is asked for, or the one that is the default there."""
    try:
        config, agents = await gather_or_cancel(api.config(directory), api.agents(directory))
    except TooSlow as fault:
        # These are the first calls that it reads its configuration for.
        words = f"OpenCode did not read its configuration for {directory} in time."
        todo = "It may be fetching packages for it: see that the network is there, or give it more time."
        raise TooSlow(words, todo) from fault
    name = wanted or str(config.get("default_agent") or "build")
    for each in agents:
        if each.get("name") == name and each.get("mode") != "subagent":
            return Agent(name, parse_rules(each.get("permission")))
    raise Refused(f"OpenCode has no agent {name} for sessions in {directory}.", "Name another in the option `agent`.")


async def apply(api: Api, session: Json, mode: PermissionMode, agent: Agent) -> PermissionMode:
    """The mode that the session has then, by the rules that the server tells. Never a wider one than asked."""
    wanted, rules = agent.rules_for(mode), parse_rules(session.get("permission"))
    if rules != wanted:
        id_ = str(session["id"])
        if rules:
            await asyncio.shield(asyncio.ensure_future(_reset(api, id_, wanted, agent)))
        rules = parse_rules((await api.add_rules(id_, as_json(wanted[1:] if rules else wanted))).get("permission"))
    landed = agent.mode_of(rules)
    if rules != wanted or landed > mode:
        raise Refused(
            f"The mode is {mode}, and OpenCode keeps other rules for session {session['id']}.",
            "Look at its permissions in OpenCode; no prompt was sent.",
        )
    return landed


async def _reset(api: Api, id_: str, wanted: Rules, agent: Agent) -> None:
    """The session's rules become the first of the wanted ones, and the note that brought it about is removed."""
    first = wanted[0]
    note = await api.note(id_, agent.name, {first.permission: first.action is Action.ALLOW})
    await api.delete_message(id_, note)
