"""Permission modes as lists of OpenCode's rules. Of the rules that match a tool and its argument, the last one counts.

A session's rules come after those of its agent. Three facts shape the lists below:

- A subagent inherits the denials of its parent's list, but not what must be asked. So a tool that asks is denied first,
  and only the subagent `explore` may be called, except in full.
- OpenCode replaces a list only through a rule that allows or denies one tool altogether. So each list begins with one.
- A user's own configuration holds tools back for a reason. What it denies stays denied in every mode.
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
from clew.providers.opencode.messages import Json


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
# Configuration of OpenCode and git. Writing there can run programs or widen later modes. The same list is in paths.js.
_CONFIGURATION = ("opencode.json*", "tui.json*", ".opencode*", ".git", ".git/*")


def rules_for(mode: PermissionMode, agent: Rules) -> Rules:
    """The complete list of a session in that mode, with an agent that has these rules."""
    guarded = _guarded(agent) if mode is PermissionMode.EDIT else ()
    return (*_FIRST[mode], *(kept for rule in agent for kept in _restricting(rule, mode)), *guarded, *_LAST[mode])


def _guarded(agent: Rules) -> Rules:
    """Edit asks before it changes configuration. What the agent's own rules deny of it stays denied."""
    denied = [rule.pattern for rule in agent if rule.action is Action.DENY and _matches("edit", rule.permission)]
    every = [pattern for name in _CONFIGURATION for pattern in (name, f"*/{name}")]
    asked = [Rule("edit", pattern, Action.ASK) for pattern in every]
    for pattern in denied:
        meant = [each for each in every if _matches(each.rstrip("*"), pattern)]
        if not meant:
            meant = [f"{pattern}{each}" for each in _CONFIGURATION] if pattern.endswith(_ANY) else [pattern]
        asked += [Rule("edit", each, Action.DENY) for each in meant]
    return tuple(asked)


def _restricting(rule: Rule, mode: PermissionMode) -> Rules:
    """The agent's own rule, as far as it still counts. It never widens the mode."""
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
    """Whether it only makes an exception from a denial: for what the mode allows anyway, or a directory of OpenCode."""
    allowed = Rule(rule.permission, _ANY, Action.ALLOW) in _FIRST[mode]
    return mode is PermissionMode.FULL or allowed or (rule.permission == _OUTSIDE and rule.pattern != _ANY)


def as_json(rules: Rules) -> list[dict[str, str]]:
    return [{"permission": each.permission, "pattern": each.pattern, "action": each.action.value} for each in rules]


def parse_rules(stored: Any) -> Rules:
    """The rules as the server returns them."""
    return tuple(Rule(each["permission"], each["pattern"], Action(each["action"])) for each in stored or ())


def mode_of(agent: Rules, session: Rules) -> PermissionMode:
    """The mode that the rules amount to, by what they say of a command, an edit and an unknown tool."""
    all_ = (*agent, *session)
    command, file, tool = (_action(all_, name) for name in ("bash", "edit", "clew-probe"))
    if command is file is tool is Action.ALLOW:
        return PermissionMode.FULL
    if file is Action.ALLOW and command is not Action.ALLOW:
        return PermissionMode.EDIT
    if Action.ALLOW in (command, tool):
        # No mode of ours: it may do more without asking than any mode but full.
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
    """The agent of OpenCode that answers prompts, with the rules of its configuration."""

    name: str
    rules: Rules

    def rules_for(self, mode: PermissionMode) -> Rules:
        return rules_for(mode, self.rules)

    def mode_of(self, rules: Rules) -> PermissionMode:
        return mode_of(self.rules, rules)


async def agent_in(api: Api, directory: str, wanted: str | None) -> Agent:
    """The wanted agent, or the default of that directory."""
    try:
        config, agents = await gather_or_cancel(api.config(directory), api.agents(directory))
    except TooSlow as fault:
        # OpenCode reads its configuration on these calls.
        words = f"OpenCode did not read its configuration for {directory} in time."
        todo = "It may be downloading packages for it: check the network, or give it more time."
        raise TooSlow(words, todo) from fault
    name = wanted or str(config.get("default_agent") or "build")
    for each in agents:
        if each.get("name") == name and each.get("mode") != "subagent":
            return Agent(name, parse_rules(each.get("permission")))
    raise Refused(f"OpenCode has no agent {name} for sessions in {directory}.", "Name another in the option `agent`.")


async def apply(api: Api, session: Json, mode: PermissionMode, agent: Agent) -> PermissionMode:
    """Give the session exactly the rules of the mode, and return the mode that it has by the server's answer.

    Raises `Refused` if that is wider than asked. Applying a mode twice changes nothing.
    """
    wanted, rules = agent.rules_for(mode), parse_rules(session.get("permission"))
    if rules != wanted:
        id_ = str(session["id"])
        if rules:
            await asyncio.shield(asyncio.ensure_future(_reset(api, id_, wanted, agent)))
        rules = parse_rules((await api.add_rules(id_, as_json(wanted[1:] if rules else wanted))).get("permission"))
    landed = agent.mode_of(rules)
    if rules != wanted or landed > mode:
        raise Refused(
            f"OpenCode did not accept the rules of mode {mode} for session {session['id']}.",
            "No prompt was sent. Look at the session's permissions in OpenCode.",
        )
    return landed


async def _reset(api: Api, id_: str, wanted: Rules, agent: Agent) -> None:
    """Replace all rules with the first wanted one, through a note that is deleted again."""
    first = wanted[0]
    note = await api.note(id_, agent.name, {first.permission: first.action is Action.ALLOW})
    await api.delete_message(id_, note)
