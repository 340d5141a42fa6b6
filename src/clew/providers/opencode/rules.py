"""Permission modes as OpenCode's rules: of all that match a tool and what it is called with, the last one counts.

A session's rules come after those of its agent. Three things shape the lists below. A subagent inherits of its
parent's list what is denied, and nothing of what must be asked: what asks is denied first, and only the subagent that
explores may be called unless everything may be done. A list is replaced only by way of a rule that allows or denies one
tool altogether: each list begins with one. And a user's own configuration holds tools back for a reason: what it denies
stays denied in every mode.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from clew.kernel import PermissionMode


class Action(StrEnum):
    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


class Rule(NamedTuple):
    permission: str
    pattern: str
    action: Action

    @property
    def json(self) -> dict[str, str]:
        return {"permission": self.permission, "pattern": self.pattern, "action": self.action.value}


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


def read(stored: Any) -> Rules:
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
