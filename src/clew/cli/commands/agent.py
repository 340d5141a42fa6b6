"""`clew agent`: add, list, show, edit, pause and resume agents."""

import os
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from clew.cli.answers import print_table, print_view
from clew.cli.client import Server, part
from clew.cli.input import OPTIONS, BadText, Options, Text, checked, given, pairs, piped
from clew.cli.output import facts, tell
from clew.cli.times import every as spelled
from clew.cli.times import moment, seconds_of
from clew.protocol.views import AgentView, Mode, Rhythm

app = App(name="agent", help="Add, list, edit and pause agents.", help_format="markdown")

Program = Annotated[str, Parameter(help="The program and its arguments, after --.")]
YesNo = Literal["yes", "no"]
Setting = Annotated[tuple[str, ...], Parameter(metavar="NAME=VALUE", negative=())]


@app.command
def add(
    name: str,
    /,
    *program: Program,
    provider: str,
    model: str | None = None,
    mode: Mode = "edit",
    instructions: Text | None = None,
    option: Setting = (),
    home: Setting = (),
    env: Annotated[tuple[str, ...], Parameter(metavar="NAME[=VALUE]", negative=())] = (),
    max_parallel: int = 1,
    every: str | None = None,
    cron: str | None = None,
    zone: str | None = None,
    shared: bool = False,
    thread: str | None = None,
    across_accounts: YesNo = "no",
    options: Options = OPTIONS,
) -> None:
    """Add an agent.

    A provider runs it: claude, codex, opencode, guide, or any program with acp or command. `clew doctor` shows which
    are installed.

    For example:

        clew agent add ada --provider claude --mode ask

        clew agent add night --provider codex --every 30m --instructions "Triage the open issues."

        clew agent add tests --provider command --mode full -- make test

    Parameters
    ----------
    name
        The agent's name.
    provider
        The provider that runs it.
    model
        The model, by the provider's name for it.
    mode
        What it may do without asking: read, ask, edit or full.
    instructions
        Instructions for the start of every conversation; - reads them from stdin.
    option
        A provider option; may be repeated.
    home
        An environment variable that sets the program's home, such as CODEX_HOME=/srv/codex.
    env
        An environment variable for the agent; may be repeated. NAME alone takes its value from this shell.
    max_parallel
        How many of its runs may be live at once.
    every
        Heartbeat interval, such as 30m; from 15s to 366d.
    cron
        Heartbeat schedule as a cron expression.
    zone
        Time zone of --cron. Default: UTC.
    shared
        Let all heartbeats share one conversation. Default: each starts its own.
    thread
        The thread that heartbeats wake it in. Default: the agent's own.
    across_accounts
        Whether a conversation's history may be sent to another account of the provider: yes or no. Another API key of
        the same account does not count.
    """
    body: dict[str, Any] = {
        "name": given(name, "name"),
        "provider": given(provider, "provider"),
        "model": model,
        "mode": mode,
        "instructions": _instructions(instructions),
        "program": program,
        "options": pairs(option, "--option"),
        "home": pairs(home, "--home"),
        "environment": environment(env),
        "most": max_parallel,
        "heartbeat": _new_heartbeat(every, cron, zone, shared, thread),
        "across_accounts": across_accounts == "yes",
    }
    print_view(
        options,
        Server(options.data).post("/agents", body),
        AgentView,
        lambda made: tell(
            f"Added {made.name}: {made.provider}, mode {made.mode}. Talk to it with `clew chat {made.name}`."
        ),
    )


@app.command(name="list")
def list_(*, options: Options = OPTIONS) -> None:
    """List the agents.

    For example:

        clew agent list
    """
    said = Server(options.data).get("/agents")
    print_table(options, said, AgentView, _row, "No agents. Add one with `clew agent add`.")


def _row(agent: AgentView) -> dict[str, str]:
    beat = agent.heartbeat
    return {
        "name": agent.name,
        "state": agent.state,
        "provider": agent.provider,
        "model": agent.model or "",
        "mode": agent.mode,
        "running": str(agent.live),
        "waiting": str(agent.waiting),
        "heartbeat": "" if beat is None else beat.cron or spelled(beat.every or 0),
    }


@app.command
def show(name: str, /, *, options: Options = OPTIONS) -> None:
    """Show an agent's settings. Values of its environment variables are never shown.

    For example:

        clew agent show ada
    """
    print_view(options, Server(options.data).get(f"/agents/{part(name)}"), AgentView, show_agent)


@app.command
def edit(
    name: str,
    /,
    *program: Program,
    provider: str | None = None,
    model: str | None = None,
    mode: Mode | None = None,
    instructions: Text | None = None,
    option: Setting | None = None,
    home: Setting | None = None,
    env: Annotated[tuple[str, ...] | None, Parameter(metavar="NAME[=VALUE]", negative=())] = None,
    max_parallel: int | None = None,
    every: str | None = None,
    cron: str | None = None,
    zone: str | None = None,
    shared: bool = False,
    isolated: bool = False,
    thread: str | None = None,
    no_heartbeat: bool = False,
    across_accounts: YesNo | None = None,
    options: Options = OPTIONS,
) -> None:
    """Change an agent. Only the given options change; an empty value clears one. Live runs keep their settings.

    For example:

        clew agent edit ada --mode read

        clew agent edit ada --model "" --every 2h

        clew agent edit ada --instructions - < ada.md

        clew agent edit ada --across-accounts yes

    Parameters
    ----------
    provider
        The provider that runs it. Conversations continue in a new session of the new provider.
    option
        Provider options; they replace the current ones.
    home
        Environment variables that set the program's home; they replace the current ones.
    env
        Environment variables; they replace the current ones. NAME alone takes its value from this shell.
    max_parallel
        How many of its runs may be live at once.
    zone
        Time zone of --cron.
    every
        Heartbeat interval, such as 30m; from 15s to 366d. Other heartbeat settings stay.
    cron
        Heartbeat schedule as a cron expression. Other heartbeat settings stay.
    shared
        Let all heartbeats share one conversation.
    isolated
        Start a new conversation for each heartbeat.
    thread
        The thread that heartbeats wake it in; an empty value means the agent's own.
    no_heartbeat
        Remove the heartbeat.
    across_accounts
        Whether a conversation's history may be sent to another account of the provider: yes or no. Another API key of
        the same account does not count. Applies from the next change of account.
    """
    if shared and isolated:
        raise BadText("--shared and --isolated cannot be combined.", "Leave one of them out.")
    named = False if shared else True if isolated else None
    heartbeat = _heartbeat_change(every, cron, zone, named, thread)
    change: dict[str, Any] = {
        "provider": provider,
        "model": model,
        "mode": mode,
        "instructions": _instructions(instructions),
        "program": program or None,
        "options": None if option is None else pairs(option, "--option"),
        "home": None if home is None else pairs(home, "--home"),
        "environment": None if env is None else environment(env),
        "most": max_parallel,
        "heartbeat": heartbeat,
        "no_heartbeat": no_heartbeat or None,
        "across_accounts": None if across_accounts is None else across_accounts == "yes",
    }
    _change(options, name, {field: value for field, value in change.items() if value is not None})


@app.command
def pause(name: str, /, *, options: Options = OPTIONS) -> None:
    """Pause an agent: it is not woken until it is resumed. A live run finishes.

    For example:

        clew agent pause ada
    """
    _change(options, name, {"paused": True})


@app.command
def resume(name: str, /, *, options: Options = OPTIONS) -> None:
    """Resume a paused agent.

    For example:

        clew agent resume ada
    """
    _change(options, name, {"paused": False})


def _instructions(text: str | None) -> str | None:
    return None if text is None else checked(piped() if text == "-" else text, "text of --instructions")


def _change(options: Options, name: str, change: dict[str, Any]) -> None:
    print_view(options, Server(options.data).patch(f"/agents/{part(name)}", change), AgentView, show_agent)


def environment(words: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE, or NAME alone, so that a secret need not appear on the command line."""
    full: list[str] = []
    for each in words:
        if "=" in each:
            full.append(each)
        elif each in os.environ:
            full.append(f"{each}={os.environ[each]}")
        else:
            raise BadText(f"{each} is not set in this shell.", f"Set it first, or write --env {each}=VALUE.")
    return pairs(tuple(full), "--env")


def _new_heartbeat(
    every: str | None, cron: str | None, zone: str | None, shared: bool, thread: str | None
) -> dict[str, Any] | None:
    if every is None and cron is None:
        if zone is not None or shared or thread is not None:
            raise BadText("--zone, --shared and --thread need a heartbeat.", "Add --every or --cron.")
        return None
    unset: dict[str, Any] = {"every": None, "cron": None, "thread": None}
    return unset | (_heartbeat_change(every, cron, zone or "UTC", not shared, thread) or {})


def _heartbeat_change(
    every: str | None, cron: str | None, zone: str | None, isolated: bool | None, thread: str | None
) -> dict[str, Any] | None:
    """The settings that were given; None if none were."""
    if every is not None and cron is not None:
        raise BadText("--every and --cron cannot be combined.", "Leave one of them out.")
    seconds = None if every is None else seconds_of(every)
    change = {"every": seconds, "cron": cron, "zone": zone, "isolated": isolated, "thread": thread}
    return {name: value for name, value in change.items() if value is not None} or None


def show_agent(agent: AgentView) -> None:
    facts(
        [
            ("name", agent.name),
            ("state", agent.state),
            ("provider", agent.provider),
            ("model", agent.model or ""),
            ("mode", agent.mode),
            ("program", " ".join(agent.program)),
            ("options", _listed(agent.options)),
            ("home", agent.home),
            ("variables", _listed(agent.home_variables)),
            ("environment", ", ".join(agent.environment_names)),
            ("max parallel", str(agent.most)),
            ("running", str(agent.live)),
            ("waiting", str(agent.waiting)),
            ("runtime", agent.runtime or ""),
            ("across accounts", "yes" if agent.across_accounts else "no"),
            ("heartbeat", "" if agent.heartbeat is None else _heartbeat(agent.heartbeat)),
            ("instructions", agent.instructions or ""),
        ]
    )


def _heartbeat(beat: Rhythm) -> str:
    when = f"{beat.cron} ({beat.zone})" if beat.cron else f"every {spelled(beat.every or 0)}"
    whose = "a new conversation each time" if beat.isolated else "all in one conversation"
    there = f", in {beat.thread}" if beat.thread else ""
    due = f", next {moment(beat.next_at)}" if beat.next_at else ""
    wrong = f"; {beat.fault}" if beat.fault else ""
    return f"{when}, {whose}{there}{due}{wrong}"


def _listed(values: object) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items()) if isinstance(values, dict) else ""
