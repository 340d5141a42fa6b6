"""Start Claude Code for a session: command line, environment, and what it says it opened.

Claude Code keeps no settings between starts, so each start passes all of them. It prints nothing about its session
until it has a prompt. But every running `claude` keeps a note in its home with its session and directory, confirms a
mode that is set, and names the model it will use: that is the landing.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clew.kernel import Directory, Landing, NativeId, PermissionMode
from clew.ports.provider import Deadlines, OpenSpec, Settings
from clew.programs.checks import check_directory, expressed
from clew.programs.faults import NotUnderstood, ProgramEnded, Refused, SessionMissing
from clew.programs.program import Launch, environment_for, find_program
from clew.programs.rpc import Message
from clew.programs.secrets import Redactor
from clew.programs.state import Ledger
from clew.providers.claude import modes
from clew.providers.claude.approvals import Approvals
from clew.providers.claude.connection import Connection, Listener
from clew.providers.claude.home import AGENT, CURSORS, HOMES, Home, account_said
from clew.providers.claude.locks import read_note
from clew.providers.claude.modes import GATE_HOOK, NEVER, TOOL_HOOK, WORDS, WORKTREE_HOOK
from clew.providers.claude.opened import Opened, OpenTarget, find_target
from clew.providers.claude.session import ClaudeSession
from clew.providers.claude.transcript import summary_of

_STREAM_JSON = (
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
    # Clew retries a failed turn itself; ten retries of the program's own would hide the failure.
    "CLAUDE_CODE_MAX_RETRIES": "3",
    # Its timers live in a process that is ended between turns; Clew does the waking.
    "CLAUDE_CODE_DISABLE_CRON": "1",
}

_ALWAYS = {
    # A prompt is in the transcript before the model is asked, and an event before the turn's end; without this the
    # program writes up to a tenth of a second later. Clew reads from there what a session took, so no setting
    # overrides it.
    "CLAUDE_CODE_EAGER_FLUSH": "1",
}

SWITCH = 5.0
"""Seconds in which a program that resumes has written the session that it resumed, on a busy machine too."""

_HOOK_TIMEOUT = 14 * 24 * 3600
"""Seconds. The default would not wait long for Clew at a hook; from 25 days on the program would not wait at all."""


def environment_of(settings: Settings, spec: OpenSpec | None = None) -> dict[str, str]:
    """The program's environment. IS_SANDBOX of Clew's own environment is passed on: only the user sets it."""
    sandbox = {name: os.environ[name] for name in ("IS_SANDBOX",) if name in os.environ}
    # A run may have its own variables, but no other home.
    own = {name: value for name, value in (spec.environment if spec else {}).items() if name not in HOMES}
    return environment_for(_DEFAULTS, sandbox, settings.home, settings.environment, own, _ALWAYS)


def launch_of(settings: Settings, ledger: Ledger | None, spec: OpenSpec | None = None) -> Launch:
    environment = environment_of(settings, spec)
    remedy = "Install Claude Code, or name the program: `clew agent edit NAME -- PROGRAM`."
    program = find_program(settings.program, "claude", environment.get("PATH"), remedy)
    return Launch(program, environment, settings.deadlines, ledger)


def arguments_for(model: str | None, mode: PermissionMode, target: OpenTarget) -> list[str]:
    """`--resume` gets the transcript's path, not its id: an id is looked for only in the directory's own project."""
    arguments = [*_STREAM_JSON, f"--permission-mode={WORDS[mode]}"]
    # One argument for all of them: a list would swallow the arguments after it.
    arguments.append(f"--disallowedTools={','.join(sorted(NEVER))}")
    if mode is PermissionMode.FULL:
        # With this flag the agent may do everything in `plan` as well, so no process of another mode gets it.
        arguments.append("--allow-dangerously-skip-permissions")
    if model is not None:
        arguments.append(f"--model={model}")
    if target.source is not None:
        arguments.append(f"--resume={target.source}")
    if target.lock is None:
        arguments.append(f"--session-id={target.native_id}")
        if target.source is not None:
            arguments.append("--fork-session")
    return arguments


async def open_session(launch: Launch, spec: OpenSpec) -> ClaudeSession:
    expressible = modes.expressible(launch.environment)
    mode = expressed(spec.mode, expressible, AGENT)
    opener = _Opener(launch, spec, Home.of(launch.environment))
    target = await find_target(opener.home, spec)
    try:
        session = ClaudeSession(expressible, opener.restart)
        session.set_opened(await opener.start(session, target, mode))
    except BaseException:
        target.release()
        raise
    return session


@dataclass(frozen=True)
class _Opener:
    launch: Launch
    spec: OpenSpec
    home: Home

    async def start(self, listener: Listener, target: OpenTarget, mode: PermissionMode) -> Opened:
        """Start the program, and end it if it does not open the wanted session."""
        deadlines, redactor = self.launch.deadlines, Redactor(self.launch.environment)
        arguments = arguments_for(self.spec.model, mode, target)
        program = await self.launch.start(Path(self.spec.directory.path), *arguments)
        connection = Connection(program, listener, redactor)
        try:
            landing = await self._landing(connection, target, mode)
        except BaseException:
            await program.end(deadlines.close)
            await connection.close()
            raise
        assert landing.mode is not None, "it lands with a mode or not at all"
        return Opened(
            program=program,
            connection=connection,
            home=self.home,
            redactor=redactor,
            deadlines=deadlines,
            landing=landing,
            native_id=target.native_id,
            mode=landing.mode,
            next_mode=landing.mode,
            started_full=mode is PermissionMode.FULL,
            model=self.spec.model,
            approvals=Approvals(redactor),
            target=target,
            cursor=None if target.lock is None else CURSORS.cursor(target.native_id),
            transcript=None if target.lock is None else target.source,
        )

    async def _landing(self, connection: Connection, target: OpenTarget, mode: PermissionMode) -> Landing:
        try:
            landing = await _land(connection, self.home, self.spec, mode, target, self.launch.deadlines)
        except ProgramEnded as fault:
            if connection.found_nothing:
                words = f"Claude Code finds no session in {target.source}."
                raise SessionMissing(words, "Start a new session.") from fault
            raise
        if landing.native_id != target.native_id:
            words = f"Session {target.native_id} was to be opened; Claude Code is in {landing.native_id}."
            raise Refused(words, "It was ended before any prompt went out.")
        return landing

    async def restart(self, listener: Listener, before: Opened, model: str | None) -> Opened:
        """The same session in another process, in its next mode. Its lock is kept throughout."""
        await asyncio.to_thread(check_directory, Path(self.spec.directory.path))
        opener = replace(self, spec=replace(self.spec, model=model))
        target = before.target
        if before.transcript is not None and before.cursor is not None:
            summary = await asyncio.to_thread(summary_of, before.transcript)
            target = OpenTarget(before.native_id, before.transcript, summary.turns, target.lock, claim=target.claim)
        return await opener.start(listener, target, before.next_mode)


# ---------------------------------------------------------------- the landing


async def _land(
    connection: Connection, home: Home, spec: OpenSpec, mode: PermissionMode, target: OpenTarget, deadlines: Deadlines
) -> Landing:
    """Initialize the program, apply the mode, and read what it opened."""
    callbacks = {"UserPromptSubmit": GATE_HOOK, "PreToolUse": TOOL_HOOK}
    if mode is not PermissionMode.FULL:
        callbacks["WorktreeCreate"] = WORKTREE_HOOK
    hooks = {event: [{"hookCallbackIds": [name], "timeout": _HOOK_TIMEOUT}] for event, name in callbacks.items()}
    greeting: dict[str, Any] = {"hooks": hooks}
    if spec.instructions:
        # Not on the command line: that is limited in length, and every user of the machine can read it.
        greeting["appendSystemPrompt"] = spec.instructions
    # Sent at once; the program answers all of them after it has started.
    seconds = deadlines.start + deadlines.answer
    hello, applied, known = await asyncio.gather(
        connection.request("initialize", deadlines.start, **greeting),
        modes.apply(connection, mode, seconds, new=True),
        connection.request("get_settings", seconds),
    )
    path = home.root / "sessions" / f"{hello.get('pid')}.json"
    note = await wait_for_note(path, target.native_id, deadlines.answer)
    place = str(note["cwd"])
    return Landing(
        native_id=NativeId(str(note["sessionId"])),
        directory=Directory(place, place),
        mode=applied,
        model=_model(spec.model, known, hello),
        account=account_said(hello.get("account")),
        turns=target.turns,
    )


async def wait_for_note(path: Path, wanted: NativeId, seconds: float) -> Mapping[str, object]:
    """What the program wrote of its session; of another one than the wanted only if it stays with that."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    while True:
        note = read_note(path)
        complete = {"sessionId", "cwd"} <= note.keys()
        # A program that resumes writes a note of a new session first, and the true one when it has read the transcript.
        if complete and (note["sessionId"] == wanted or clock() - begun > SWITCH):
            return note
        if not complete and clock() - begun > seconds:
            raise NotUnderstood(
                f"Claude Code does not say which session it opened: {path} is not there.",
                "Use version 2.1.197 or another that keeps this note.",
            )
        await asyncio.sleep(0.005)


def _model(wanted: str | None, known: Message, hello: Message) -> str | None:
    """The model it will use, by the name that was asked for if the program's own list says that both are the same."""
    used = (known.get("applied") or {}).get("model")
    for entry in hello.get("models") or ():
        if wanted is not None and entry.get("value") == wanted and entry.get("resolvedModel") == used:
            return wanted
    return str(used) if used else None
