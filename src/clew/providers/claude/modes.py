"""Permission modes: what each of ours is to Claude Code, and how one is applied so that it holds."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from clew.kernel import PermissionMode
from clew.programs.faults import Refused
from clew.providers.claude.wire import Wire

WORDS: Mapping[PermissionMode, str] = {
    # It refuses what it would have to ask for; `plan` only tells the model not to.
    PermissionMode.READ: "dontAsk",
    PermissionMode.ASK: "default",
    PermissionMode.EDIT: "acceptEdits",
    PermissionMode.FULL: "bypassPermissions",
}

_MEANS: Mapping[str, PermissionMode] = {
    **{word: mode for mode, word in WORDS.items()},
    "plan": PermissionMode.READ,
    # A model decides there what is asked; that is no less than everything.
    "auto": PermissionMode.FULL,
}

# Rules for these grant nothing that changes anything.
_READERS = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read", "Skill", "ToolSearch", "WebFetch", "WebSearch"})
_WRITERS = ("Edit", "NotebookEdit", "Write")
_YES = frozenset({"1", "true", "yes", "on"})


def meant(word: object) -> PermissionMode | None:
    """Ours for one of its own; None for one that is not known, which must then be taken for the widest."""
    return _MEANS.get(str(word))


def full_is_allowed(environment: Mapping[str, str]) -> bool:
    """As root it refuses to do all it likes, unless it is told that it is in a sandbox: that is the user's to say."""
    return os.geteuid() != 0 or environment.get("IS_SANDBOX", "").lower() in _YES


def expressible(environment: Mapping[str, str]) -> frozenset[PermissionMode]:
    everything = frozenset(PermissionMode)
    return everything if full_is_allowed(environment) else everything - {PermissionMode.FULL}


async def apply(wire: Wire, mode: PermissionMode, seconds: float) -> None:
    """Put a mode into force, and raise when the program does not confirm it."""
    held = _held_back(await _allowed(wire, seconds)) if mode is PermissionMode.READ else []
    await wire.request("apply_flag_settings", seconds, settings={"permissions": {"ask": held}})
    if missing := set(held) - set(_rules(await wire.request("get_settings", seconds), "ask")):
        raise _not_applied(mode, f"it keeps the grants {', '.join(sorted(missing))}")
    answer = await wire.request("set_permission_mode", seconds, mode=WORDS[mode])
    if meant(answer.get("mode")) is not mode:
        raise _not_applied(mode, f"it says {answer.get('mode')!r}")


async def _allowed(wire: Wire, seconds: float) -> Sequence[str]:
    return _rules(await wire.request("get_settings", seconds), "allow")


def _held_back(allowed: Sequence[str]) -> list[str]:
    """A rule that allows beats every mode of the program, and the same rule with `ask` beats that one."""
    granted = [rule for rule in allowed if rule.partition("(")[0] not in _READERS]
    return sorted({*granted, *_WRITERS})


def _rules(known: Mapping[str, Any], kind: str) -> Sequence[str]:
    permissions = known.get("effective", {}).get("permissions") or {}
    return [str(rule) for rule in permissions.get(kind) or ()]


def _not_applied(mode: PermissionMode, why: str) -> Refused:
    return Refused(f"Claude Code did not take on the mode {mode}: {why}.", "Nothing is sent to it in another mode.")
