"""The program `clew`: the list of its commands, each imported when it is typed."""

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile

from cyclopts import App, CycloptsError, Group, Parameter

from clew import __version__
from clew.cli.missing_packages import REMEDY, missing_packages, missing_words
from clew.cli.misuse import Misused
from clew.cli.output import ExitStatus, tell_fault, tell_problem
from clew.ports.fault import Fault

_ABOUT = """\
Run coding agents, and always continue the right conversation.

Start with `clew up -d`, then `clew chat guide`. `clew` alone shows what needs
you, what runs, and the next step.

The exit status is 0 on success, 1 if the command failed, 2 for a usage error
and 70 for a bug in Clew. Errors go to stderr: what happened, what to do next,
and a code; with --json, one JSON object with the same fields.
"""

# Each command is imported only when it runs, so its one-line help is here.
COMMANDS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "Start": (
        ("up", "clew.cli.commands.up:up", "Start the server on this machine; -d in the background."),
        ("open", "clew.cli.commands.open:open_page", "Show the page, or a thread, in your browser."),
        ("status", "clew.cli.commands.status:status", "Show whether Clew runs, what needs you, and the next step."),
        ("stop", "clew.cli.commands.status:stop", "Stop the server."),
        (
            "doctor",
            "clew.cli.commands.doctor:doctor",
            "Check which agents are installed and work, and how to fix the rest.",
        ),
        ("agent", "clew.cli.commands.agent:app", "Add, list, edit and pause agents."),
        ("project", "clew.cli.commands.project:app", "Add, list and edit projects."),
    ),
    "Work": (
        ("issue", "clew.cli.commands.issue:app", "Open, assign, comment on and close issues."),
        ("chat", "clew.cli.commands.chat:chat", "Chat with an agent."),
        ("say", "clew.cli.commands.say:say", "Send a message to a thread."),
        ("queue", "clew.cli.commands.queue:app", "Show, edit, move and take back messages that wait."),
        ("wake", "clew.cli.commands.say:wake", "Wake an agent manually, or with an event from outside."),
        ("diff", "clew.cli.commands.diff:diff", "Show what an agent changed."),
        ("commit", "clew.cli.commands.merge:commit", "Commit what an agent left uncommitted."),
        ("merge", "clew.cli.commands.merge:merge", "Merge an agent's branch."),
        ("pr", "clew.cli.commands.merge:pr", "Open a pull request of an agent's branch."),
        ("checkout", "clew.cli.commands.checkout:checkout", "Work in an agent's worktree yourself."),
        ("approvals", "clew.cli.commands.approvals:app", "List what agents ask you; allow, deny or answer."),
        ("cancel", "clew.cli.commands.runs:cancel", "Cancel a run or a pending wake."),
        ("interrupt", "clew.cli.commands.runs:interrupt", "Interrupt an agent's current turn."),
        ("retry", "clew.cli.commands.runs:retry", "Retry a run that failed or is held."),
        ("rerun", "clew.cli.commands.runs:rerun", "Repeat a run from the session it started with."),
    ),
    "Inspect": (
        ("threads", "clew.cli.commands.thread:threads", "List issues, chats and agents' own threads."),
        (
            "thread",
            "clew.cli.commands.thread:app",
            "Show a thread, pin or archive it, or set how messages are handled while its agent is busy.",
        ),
        ("runs", "clew.cli.commands.runs:app", "List runs, or show one."),
        ("logs", "clew.cli.commands.logs:logs", "Show the log of a run."),
        ("search", "clew.cli.commands.search:search", "Find messages, titles and logs by their words."),
        ("usage", "clew.cli.commands.usage:usage", "Show tokens and cost by agent, project or day."),
        ("why", "clew.cli.commands.why:why", "Explain how a run was decided, or why a wake did not run."),
        ("replay", "clew.cli.commands.why:replay", "Show which past decisions another policy would change."),
    ),
    "Maintain": (
        ("sessions", "clew.cli.commands.sessions:sessions", "List agents' sessions."),
        ("adopt", "clew.cli.commands.sessions:adopt", "Continue an agent's existing session in a thread."),
        ("release", "clew.cli.commands.sessions:release", "Let go of a thread's sessions, so that you can open them."),
        ("runtimes", "clew.cli.commands.doctor:runtimes", "List the runtimes: provider, home and machine."),
        ("workspaces", "clew.cli.commands.workspaces:app", "List the directories agents work in, or clean them up."),
        ("completion", "clew.cli.commands.completion:completion", "Print a script for completion in your shell."),
        ("service", "clew.cli.commands.service:app", "Have systemd start Clew when you log in."),
        (
            "policy",
            "clew.cli.commands.policy:app",
            "Show and set when a conversation goes on and when a new one is started.",
        ),
        ("db", "clew.cli.commands.db:app", "Upgrade, back up, restore and check the database."),
    ),
}


def program(asked: str | None = None) -> App:
    """`asked` is the command that will run; its help is its own docstring."""
    app = App(
        name="clew",
        help=_ABOUT,
        version=__version__,
        # No --no-… twins of switches.
        default_parameter=Parameter(negative=(), show_default=False),
        # Docstrings are Markdown, but loading Rich's Markdown takes longer than printing the list.
        help_format="plaintext",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for order, (title, commands) in enumerate(COMMANDS.items()):
        group = Group(title, sort_key=order)
        for place, (name, where, words) in enumerate(commands):
            # A command group sets its own format; a single command gets it here.
            format_of = {} if where.endswith(":app") else {"help_format": "markdown"}
            listed = None if name == asked else words
            app.command(where, name=name, help=listed, group=group, sort_key=place, **format_of)
    flags = Group("Flags", sort_key=len(COMMANDS))
    for flag in ("--help", "--version"):
        app[flag].group = flags
    return app


def asks_for_json(words: Iterable[str]) -> bool:
    """Scans the raw arguments: a command line that cannot be parsed may ask for JSON too."""
    return "--json" in takewhile(lambda word: word != "--", words)


def run_command(command: Callable[[], object], *, as_json: bool = False) -> ExitStatus:
    """Runs it and reports any exception. Whatever is not a `Fault` is reported as a bug in Clew."""
    try:
        result = command()
        sys.stdout.flush()
    except Fault as fault:
        tell_fault(fault, as_json=as_json)
        return ExitStatus.MISUSED if isinstance(fault, Misused) else ExitStatus.FAILED
    except CycloptsError as fault:
        # Imported late: most commands are typed right.
        from clew.cli.mistyped import mistyped  # noqa: PLC0415

        tell_fault(mistyped(fault), as_json=as_json)
        return ExitStatus.MISUSED
    except BrokenPipeError:
        # The reader closed the pipe. Python must not flush stdout again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.DONE
    except KeyboardInterrupt:
        tell_problem("stopped", "Stopped.", as_json=as_json)
        return ExitStatus.STOPPED
    except Exception as fault:  # noqa: BLE001 - last resort
        if isinstance(fault, ImportError) and (missing := missing_packages()):
            tell_problem("cli:missing-packages", missing_words(missing), REMEDY, as_json=as_json)
            return ExitStatus.FAILED
        traceback.print_exc()
        words = f"This is a bug in Clew: {type(fault).__name__}."
        tell_problem("bug", words, "Please report it with the lines above.", as_json=as_json)
        return ExitStatus.BUG
    return result if isinstance(result, ExitStatus) else ExitStatus.DONE


def main() -> None:
    """Runs the typed command and exits with its status."""
    for stream in (sys.stdout, sys.stderr):
        # Replace characters that the terminal's encoding lacks, instead of failing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - as long as the program
    typed = sys.argv[1:] or ["status"]
    app = program(typed[0])
    raise SystemExit(run_command(lambda: app(typed), as_json=asks_for_json(typed)))
