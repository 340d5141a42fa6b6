"""The program `clew`: its commands by name, each loaded when it is asked for."""

import os
import sys
from collections.abc import Mapping

from cyclopts import App, Group, Parameter

from clew import __version__
from clew.cli.ending import asks_for_json, ending_of

_ABOUT = """\
Wake coding agents, each in its right conversation.

The exit status is 0 when a command did what it says, 1 when it could not, 2
when it was not understood, and 70 for a bug. What went wrong stands on stderr:
a sentence, what to do, and a code; with --json, the same as one JSON object.
"""

# By what they are for; each is loaded when it is asked for, so its first line stands here.
COMMANDS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "Begin": (
        ("up", "clew.cli.up:up", "Start Clew on this machine."),
        ("doctor", "clew.cli.doctor:doctor", "Say what is installed, what works, and what to do about the rest."),
        ("agent", "clew.cli.agent:app", "Add, list, change and pause agents."),
        ("project", "clew.cli.project:app", "Add, list and change projects."),
    ),
    "Work": (
        ("issue", "clew.cli.issue:app", "Open, assign, discuss and close issues."),
        ("chat", "clew.cli.chat:chat", "Talk with an agent."),
        ("say", "clew.cli.say:say", "Say something in a thread."),
        ("wake", "clew.cli.wake:wake", "Wake an agent by hand."),
        ("approvals", "clew.cli.approvals:app", "What agents ask of you; allow, deny, answer."),
        ("cancel", "clew.cli.stopping:cancel", "End a run, or take back a wake."),
        ("interrupt", "clew.cli.stopping:interrupt", "Stop what an agent is doing now."),
        ("retry", "clew.cli.stopping:retry", "Try again what did not end well."),
        ("rerun", "clew.cli.stopping:rerun", "Do once more what a run was asked to do."),
    ),
    "Look": (
        ("threads", "clew.cli.threads:threads", "List issues, chats and the agents' own threads."),
        ("thread", "clew.cli.thread:app", "Show a thread, and say what becomes of words in it."),
        ("runs", "clew.cli.runs:app", "List runs, or show one."),
        ("logs", "clew.cli.logs:logs", "Show everything that happened in a run."),
        ("why", "clew.cli.why:why", "Say how a run was decided, or why a wake did not run."),
        ("replay", "clew.cli.replay:replay", "Say what another policy would have decided."),
    ),
    "Keep": (
        ("sessions", "clew.cli.sessions:sessions", "List the agents' sessions."),
        ("adopt", "clew.cli.sessions:adopt", "Put a session of an agent under a thread."),
        ("runtimes", "clew.cli.runtimes:runtimes", "List where agents can run."),
        ("workspaces", "clew.cli.workspaces:app", "List the directories agents work in, and clean up."),
        ("db", "clew.cli.db:app", "Upgrade, back up, restore and check the database."),
    ),
}


def program(asked: str | None = None) -> App:
    """`asked` is the command that is going to run: it is loaded, and its help is its own."""
    app = App(
        name="clew",
        help=_ABOUT,
        version=__version__,
        # A switch is given or left out; none needs a second one that says no.
        default_parameter=Parameter(negative=(), show_default=False),
        # Markdown is what docstrings are written in; to load it takes longer than to print the list of commands.
        help_format="plaintext",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for order, (title, commands) in enumerate(COMMANDS.items()):
        group = Group(title, sort_key=order)
        for place, (name, where, words) in enumerate(commands):
            # A group of commands has its own format; a single one is given it here.
            format_of = {} if where.endswith(":app") else {"help_format": "markdown"}
            listed = None if name == asked else words
            app.command(where, name=name, help=listed, group=group, sort_key=place, **format_of)
    flags = Group("Flags", sort_key=len(COMMANDS))
    for flag in ("--help", "--version"):
        app[flag].group = flags
    return app


def main() -> None:
    """Run the command that was typed, and end with its status."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character shows another; that is no reason to stop.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - as long as the program
    typed = sys.argv[1:]
    raise SystemExit(ending_of(program(next(iter(typed), None)), as_json=asks_for_json(typed)))
