"""How Claude Code is started: its command line and its environment. Nothing persists, so all is said every time."""

import os
import shutil
from collections.abc import Mapping

from clew.kernel import PermissionMode
from clew.ports.provider import OpenSpec, Settings
from clew.programs.environment import environment_for
from clew.programs.faults import CannotStart
from clew.providers.claude.home import HOMES
from clew.providers.claude.modes import NEVER, WORDS
from clew.providers.claude.way import Way

_SPEAKING = (
    "-p",
    "--verbose",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--include-partial-messages",
    "--replay-user-messages",
    "--permission-prompt-tool=stdio",
)

_DEFAULTS = {
    "DISABLE_AUTOUPDATER": "1",
    # Whoever waits for the turn tries again; ten tries of its own would hide that from him.
    "CLAUDE_CODE_MAX_RETRIES": "3",
    # Its timers live in a process that is ended between turns; waking is ours.
    "CLAUDE_CODE_DISABLE_CRON": "1",
}

_ALWAYS = {
    # A prompt is in its transcript before it asks its model, and what it has told before the turn's end; it would write
    # up to a tenth of a second later. What a session took is read from there, so nobody sets this to anything else.
    "CLAUDE_CODE_EAGER_FLUSH": "1",
}


def environment_of(settings: Settings, spec: OpenSpec | None = None) -> dict[str, str]:
    """What the user's own environment says of a sandbox is the user's word; the rest of it is not handed on."""
    sandbox = {name: os.environ[name] for name in ("IS_SANDBOX",) if name in os.environ}
    # A run may have its own variables, but no other home.
    own = {name: value for name, value in (spec.environment if spec else {}).items() if name not in HOMES}
    return environment_for(_DEFAULTS, sandbox, settings.home, settings.environment, own, _ALWAYS)


def program_of(settings: Settings, environment: Mapping[str, str]) -> tuple[str, ...]:
    if settings.program:
        return settings.program
    found = shutil.which("claude", path=environment.get("PATH"))
    if found is None:
        raise CannotStart("There is no program `claude` on the path.", "Install Claude Code, or say where it is.")
    return (found,)


def command_for(program: tuple[str, ...], model: str | None, mode: PermissionMode, way: Way) -> list[str]:
    """By its path a transcript is found wherever it lies; an id is looked for in the directory's own project alone."""
    command = [*program, *_SPEAKING, f"--permission-mode={WORDS[mode]}"]
    # One word for all of them: a list would go on with whatever comes after it.
    command.append(f"--disallowedTools={','.join(sorted(NEVER))}")
    if mode is PermissionMode.FULL:
        # Whoever has it may do all in `plan` as well, so no process of another mode gets it.
        command.append("--allow-dangerously-skip-permissions")
    if model is not None:
        command.append(f"--model={model}")
    if way.source is not None:
        command.append(f"--resume={way.source}")
    if way.hold is None:
        command.append(f"--session-id={way.native_id}")
        if way.source is not None:
            command.append("--fork-session")
    return command
