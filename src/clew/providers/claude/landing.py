"""Landing: what Claude Code itself says it opened, before any prompt goes out.

It prints nothing of its session until it has a prompt. But every running `claude` keeps a note in its home that names
its session and directory, confirms a mode that is set, and tells the model it will use.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clew.kernel import Directory, Landing, NativeId, PermissionMode
from clew.ports.provider import Deadlines, OpenSpec
from clew.programs.faults import NotUnderstood
from clew.providers.claude import modes
from clew.providers.claude.holding import note_in
from clew.providers.claude.home import Home, account_said
from clew.providers.claude.wire import Message, Wire

GATE = "clew"
"""The name under which it is told to ask us before it takes a prompt."""

TOOLS = "clew-tools"
"""And before it uses a tool."""

WORKTREES = "clew-worktrees"
"""And before it makes a worktree for an agent of its own, which it would do unasked in every mode."""

_LONG = 14 * 24 * 3600
"""Seconds. It would not wait for us at the gate for long otherwise; from 25 days on it would not wait at all."""


async def land(
    wire: Wire,
    home: Home,
    spec: OpenSpec,
    mode: PermissionMode,
    turns: int,
    deadlines: Deadlines,
) -> Landing:
    """Greet it, apply the mode, and hear where it is."""
    asks = {"UserPromptSubmit": GATE, "PreToolUse": TOOLS}
    if mode is not PermissionMode.FULL:
        asks["WorktreeCreate"] = WORKTREES
    hooks = {event: [{"hookCallbackIds": [name], "timeout": _LONG}] for event, name in asks.items()}
    greeting: dict[str, Any] = {"hooks": hooks}
    if spec.instructions:
        # Not on the command line, which is short and which everybody can read.
        greeting["appendSystemPrompt"] = spec.instructions
    # All is asked at once, and answered once it has started.
    seconds = deadlines.start + deadlines.answer
    hello, applied, known = await asyncio.gather(
        wire.request("initialize", deadlines.start, **greeting),
        modes.apply(wire, mode, seconds, new=True),
        wire.request("get_settings", seconds),
    )
    note = await _note(home.root / "sessions" / f"{hello.get('pid')}.json", deadlines.answer)
    place = str(note["cwd"])
    return Landing(
        native_id=NativeId(str(note["sessionId"])),
        directory=Directory(place, place),
        mode=applied,
        model=_model(spec.model, known, hello),
        account=account_said(hello.get("account")),
        turns=turns,
    )


async def _note(path: Path, seconds: float) -> Mapping[str, object]:
    deadline = asyncio.get_running_loop().time() + seconds
    while not {"sessionId", "cwd"} <= (note := note_in(path)).keys():
        if asyncio.get_running_loop().time() > deadline:
            raise NotUnderstood(
                f"Claude Code does not say which session it opened: {path} is not there.",
                "Use version 2.1.197 or another that keeps this note.",
            )
        await asyncio.sleep(0.005)
    return note


def _model(wanted: str | None, known: Message, hello: Message) -> str | None:
    """The model it will use; by the name it was asked for where its own list says that this is the same."""
    used = (known.get("applied") or {}).get("model")
    for entry in hello.get("models") or ():
        if wanted is not None and entry.get("value") == wanted and entry.get("resolvedModel") == used:
            return wanted
    return str(used) if used else None
