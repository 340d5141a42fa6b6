"""Permission modes: Claude Code's word for each, how one is put into force, and the hooks that keep it."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any

from clew.kernel import PermissionMode
from clew.programs.faults import Refused
from clew.providers.claude.connection import Connection

WORDS: Mapping[PermissionMode, str] = {
    # `dontAsk` refuses what it would have to ask for; `plan` only tells the model not to.
    PermissionMode.READ: "dontAsk",
    PermissionMode.ASK: "default",
    PermissionMode.EDIT: "acceptEdits",
    PermissionMode.FULL: "bypassPermissions",
}

_MEANS: Mapping[str, PermissionMode] = {
    **{word: mode for mode, word in WORDS.items()},
    # A model decides there what is asked, so it may allow everything.
    "auto": PermissionMode.FULL,
    # `plan` is left out: what it allows depends on how the program was started.
}

NEVER = frozenset({"EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree"})
"""Tools by which the agent would leave the mode or the directory that its session was opened with."""

GATE_HOOK = "clew"
"""The program asks by this name before it takes a prompt."""
TOOL_HOOK = "clew-tools"
"""The program asks by this name before it uses a tool."""
WORKTREE_HOOK = "clew-worktrees"
"""The program asks by this name before it makes a worktree for a subagent; in no mode does it ask a person for that."""

# Rules for these tools allow no change.
_READERS = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read", "Skill", "ToolSearch", "WebFetch", "WebSearch"})
_WRITERS = ("Edit", "NotebookEdit", "Write")


def meant(word: object) -> PermissionMode | None:
    """Clew's mode for a word of Claude Code; None for an unknown word, which must be treated as the widest mode."""
    return _MEANS.get(str(word))


def full_is_allowed(environment: Mapping[str, str]) -> bool:
    """As root the program refuses the full mode, unless the user says that it is in a sandbox."""
    # The same test as the program's own: it takes no other word for yes, and would end at every start.
    return os.geteuid() != 0 or environment.get("IS_SANDBOX") == "1"


def expressible(environment: Mapping[str, str]) -> frozenset[PermissionMode]:
    everything = frozenset(PermissionMode)
    return everything if full_is_allowed(environment) else everything - {PermissionMode.FULL}


def before_a_tool(tool: object, word: object, mode: PermissionMode) -> Mapping[str, Any]:
    """The answer to the tool hook: a subagent that the project defines may have a wider mode than the session."""
    own = meant(word)
    if tool in NEVER:
        return _decided("deny", f"{tool} is not for this session: its mode and its directory stay what they are.")
    if mode is PermissionMode.FULL or (own is not None and own <= mode):
        return {}
    return _decided("ask", f"The agent has the mode {word}, the session no more than {mode}.")


def _decided(decision: str, why: str) -> Mapping[str, Any]:
    output = {"permissionDecision": decision, "permissionDecisionReason": why}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **output}}


async def apply(connection: Connection, mode: PermissionMode, seconds: float, new: bool = False) -> PermissionMode:
    """Put a mode into force and return the one that the program confirms; raises when it confirms none.

    The user's or the company's settings may rule out full, whatever the program was started with: then it is edit. In a
    `new` program no rule is suspended that would have to be restored.
    """
    try:
        await _apply(connection, mode, seconds, new)
    except Refused:
        if mode is not PermissionMode.FULL:
            raise
        mode = PermissionMode.EDIT
        await _apply(connection, mode, seconds, new)
    return mode


async def _apply(connection: Connection, mode: PermissionMode, seconds: float, new: bool) -> None:
    if not new:
        await _suspend(connection, mode, seconds)
        await _set(connection, mode, seconds)
    elif mode is PermissionMode.READ:
        # If one fails the program is ended, so neither has to wait for the other.
        await asyncio.gather(_suspend(connection, mode, seconds), _set(connection, mode, seconds))
    else:
        await _set(connection, mode, seconds)


async def _set(connection: Connection, mode: PermissionMode, seconds: float) -> None:
    answer = await connection.request("set_permission_mode", seconds, mode=WORDS[mode])
    if meant(answer.get("mode")) is not mode:
        raise _not_applied(mode, f"it says {answer.get('mode')!r}")


async def _suspend(connection: Connection, mode: PermissionMode, seconds: float) -> None:
    """In read, suspend every rule that allows a change without asking; in other modes, restore them."""
    reads = mode is PermissionMode.READ
    suspended = _to_suspend(await _allowed(connection, seconds)) if reads else []
    # By default the program runs commands in its own sandbox without asking; null restores the user's setting.
    settings = {"permissions": {"ask": suspended}, "sandbox": {"autoAllowBashIfSandboxed": False} if reads else None}
    # The program answers in the order of the requests.
    applied = connection.request("apply_flag_settings", seconds, settings=settings)
    _, known = await asyncio.gather(applied, connection.request("get_settings", seconds))
    if missing := set(suspended) - set(_rules(known, "ask")):
        raise _not_applied(mode, f"it keeps the grants {', '.join(sorted(missing))}")
    if reads and _runs_unasked(known):
        raise _not_applied(mode, "it runs commands unasked in its sandbox")


async def _allowed(connection: Connection, seconds: float) -> Sequence[str]:
    return _rules(await connection.request("get_settings", seconds), "allow")


def _to_suspend(allowed: Sequence[str]) -> list[str]:
    """An `allow` rule overrides every mode of the program, and the same rule under `ask` overrides that one."""
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
