"""`clew policy`: show and set when a conversation goes on and when a new one is started."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from cyclopts import App

from clew.cli.answers import print_view, read
from clew.cli.client import Server, part
from clew.cli.commands.why import DEADLINE
from clew.cli.input import OPTIONS, Options, Text, piped
from clew.cli.misuse import Misused
from clew.cli.output import ExitStatus, counted, note, tell
from clew.cli.policy_file import read_policy
from clew.cli.times import seconds_of
from clew.protocol.policies import PolicyView
from clew.protocol.replay import ReplayView

app = App(
    name="policy",
    help="Show and set when a conversation goes on and when a new one is started.",
    help_format="markdown",
)

_LOOKED_BACK = "7d"


@app.command
def show(*, agent: str | None = None, project: str | None = None, options: Options = OPTIONS) -> None:
    """Show the policy of an agent or of a project, with the defaults of what is not set.

    For example:

        clew policy show --agent ada

    Parameters
    ----------
    agent
        The agent.
    project
        The project. In its runs, the fields that the agent's policy sets count instead.
    """
    print_view(options, Server(options.data).get(_path(agent, project)), PolicyView, _show)


@app.command(name="set")
def set_(
    policy: Text,
    /,
    *,
    agent: str | None = None,
    project: str | None = None,
    dry_run: bool = False,
    yes: bool = False,
    options: Options = OPTIONS,
) -> ExitStatus:
    """Set the policy of an agent or of a project. It replaces the one that was set.

    First it shows how many decisions of the last 7 days would have come out differently; `clew replay` lists them. On a
    terminal it then asks before it saves.

    For example:

        clew policy set stricter.json --agent ada

        echo '{"limits": {"turns": 50}}' | clew policy set - --project web

        clew policy set stricter.json --agent ada --dry-run

    Parameters
    ----------
    policy
        A JSON file with the policy; - reads it from stdin. `{}` sets the defaults. docs/policy.md has the fields.
    agent
        The agent.
    project
        The project. In its runs, the fields that the agent's policy sets count instead.
    dry_run
        Save nothing.
    yes
        Do not ask before saving.
    """
    path, given = _path(agent, project, f"set {policy}"), read_policy(piped() if policy == "-" else Path(policy))
    server = Server(options.data)
    since = time.time() - seconds_of(_LOOKED_BACK)
    asked = {"since": since, "policy": given, "agent": agent, "project": project}
    found = read(ReplayView, server.post("/replay", asked, DEADLINE))
    whose = f"--agent {agent}" if agent else f"--project {project}"
    note(
        f"{len(found.changed)} of {counted(found.looked_at, 'decision')} of the last 7 days would change."
        + (f" See them with `clew replay --policy FILE {whose}`." if found.changed else "")
    )
    if dry_run:
        return ExitStatus.DONE
    if policy != "-" and not yes and sys.stdin.isatty() and sys.stdout.isatty() and not _agreed():
        note("Not saved.")
        return ExitStatus.FAILED
    print_view(options, server.post(path, {"policy": given}), PolicyView, _show)
    return ExitStatus.DONE


def _agreed() -> bool:
    try:
        return input("Save it? y/n: ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _path(agent: str | None, project: str | None, command: str = "show") -> str:
    if (agent is None) is (project is None):
        raise Misused("Name either an agent or a project.", f"For example: `clew policy {command} --agent ada`.")
    return f"/agents/{part(agent)}/policy" if agent is not None else f"/projects/{part(project or '')}/policy"


def _show(view: PolicyView) -> None:
    if not view.applies:
        tell(f"The policy of {view.kind} {view.name} cannot be read: {json.dumps(view.set)}")
        return
    for field, value in view.applies.items():
        default = "" if field in view.set else "  (default)"
        tell(f"{field:<25}{_text(value)}{default}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
