"""Permission modes: what each of ours is to Claude Code, and how one is applied so that it holds."""

import asyncio
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
    # A model decides there what is asked; that is no less than everything.
    "auto": PermissionMode.FULL,
    # `plan` is not known: what it allows depends on how the program was started.
}

NEVER = frozenset({"EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree"})
"""Tools by which the agent would leave the mode or the directory that its session was opened with."""

# Rules for these grant nothing that changes anything.
_READERS = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read", "Skill", "ToolSearch", "WebFetch", "WebSearch"})
_WRITERS = ("Edit", "NotebookEdit", "Write")


def meant(word: object) -> PermissionMode | None:
    """Ours for one of its own; None for one that is not known, which must then be taken for the widest."""
    return _MEANS.get(str(word))


def full_is_allowed(environment: Mapping[str, str]) -> bool:
    """As root it refuses to do all it likes, unless it is told that it is in a sandbox: that is the user's to say."""
    # Its own test: no other word for yes counts, and one that did would end every start.
    return os.geteuid() != 0 or environment.get("IS_SANDBOX") == "1"


def expressible(environment: Mapping[str, str]) -> frozenset[PermissionMode]:
    everything = frozenset(PermissionMode)
    return everything if full_is_allowed(environment) else everything - {PermissionMode.FULL}


def before_a_tool(tool: object, word: object, mode: PermissionMode) -> Mapping[str, Any]:
    """What it is told when it is about to use a tool: a project's agent may bring along a mode wider than ours."""
    own = meant(word)
    if tool in NEVER:
        return _decided("deny", f"{tool} is not for this session: its mode and its directory stay what they are.")
    if mode is PermissionMode.FULL or (own is not None and own <= mode):
        return {}
    return _decided("ask", f"The agent has the mode {word}, the session no more than {mode}.")


def _decided(decision: str, why: str) -> Mapping[str, Any]:
    told = {"permissionDecision": decision, "permissionDecisionReason": why}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **told}}


async def apply(wire: Wire, mode: PermissionMode, seconds: float, new: bool = False) -> PermissionMode:
    """Put a mode into force, and raise when the program does not confirm it; what it confirms is returned.

    The user's or the company's settings may rule full out, whatever the program was started with. In a `new` program
    nothing is suspended yet that would have to be given back.
    """
    try:
        await _apply(wire, mode, seconds, new)
    except Refused:
        if mode is not PermissionMode.FULL:
            raise
        mode = PermissionMode.EDIT
        await _apply(wire, mode, seconds, new)
    return mode


async def _apply(wire: Wire, mode: PermissionMode, seconds: float, new: bool) -> None:
    if not new:
        await _suspend(wire, mode, seconds)
        await _set(wire, mode, seconds)
    elif mode is PermissionMode.READ:
        # Where one fails the program is ended, so neither waits for the other.
        await asyncio.gather(_suspend(wire, mode, seconds), _set(wire, mode, seconds))
    else:
        await _set(wire, mode, seconds)


async def _set(wire: Wire, mode: PermissionMode, seconds: float) -> None:
    answer = await wire.request("set_permission_mode", seconds, mode=WORDS[mode])
    if meant(answer.get("mode")) is not mode:
        raise _not_applied(mode, f"it says {answer.get('mode')!r}")


async def _suspend(wire: Wire, mode: PermissionMode, seconds: float) -> None:
    """What would be done unasked in read; in other modes, nothing any more."""
    reads = mode is PermissionMode.READ
    held = _held_back(await _allowed(wire, seconds)) if reads else []
    # What it may do in a sandbox of its own it does unasked unless told otherwise; null leaves that to the user.
    settings = {"permissions": {"ask": held}, "sandbox": {"autoAllowBashIfSandboxed": False} if reads else None}
    # It answers in the order in which it is asked.
    applied = wire.request("apply_flag_settings", seconds, settings=settings)
    _, known = await asyncio.gather(applied, wire.request("get_settings", seconds))
    if missing := set(held) - set(_rules(known, "ask")):
        raise _not_applied(mode, f"it keeps the grants {', '.join(sorted(missing))}")
    if reads and _runs_unasked(known):
        raise _not_applied(mode, "it runs commands unasked in its sandbox")


async def _allowed(wire: Wire, seconds: float) -> Sequence[str]:
    return _rules(await wire.request("get_settings", seconds), "allow")


def _held_back(allowed: Sequence[str]) -> list[str]:
    """A rule that allows beats every mode of the program, and the same rule with `ask` beats that one."""
    granted = [rule for rule in allowed if rule.partition("(")[0] not in _READERS]
    return sorted({*granted, *_WRITERS})


def _runs_unasked(known: Mapping[str, Any]) -> bool:
    sandbox = known.get("effective", {}).get("sandbox") or {}
    return bool(sandbox.get("enabled")) and sandbox.get("autoAllowBashIfSandboxed") is not False


def _rules(known: Mapping[str, Any], kind: str) -> Sequence[str]:
    permissions = known.get("effective", {}).get("permissions") or {}
    return [str(rule) for rule in permissions.get(kind) or ()]


def _not_applied(mode: PermissionMode, why: str) -> Refused:
    return Refused(f"Claude Code did not take on the mode {mode}: {why}.", "Nothing is sent to it in another mode.")
