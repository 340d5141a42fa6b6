"""`clew agent`: add, list, show, edit, test, pause, resume and remove agents."""

from contextlib import suppress
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from clew.cli.answers import print_table, print_view, read
from clew.cli.client import Server, part
from clew.cli.heartbeats import heartbeat_change, heartbeat_words, new_heartbeat
from clew.cli.input import OPTIONS, Exact, Options, Text, name_given, optional
from clew.cli.logins import with_keys_here
from clew.cli.misuse import Misused, needs, not_together
from clew.cli.output import ExitStatus, facts, note, tell, tell_answer
from clew.cli.safe_text import one_line
from clew.cli.settings import environment, pairs, unless_empty
from clew.cli.times import every as spelled
from clew.ports.fault import Fault
from clew.protocol.checks import LoginView, TrialView
from clew.protocol.views import AgentView, Mode

app = App(name="agent", help="Add, list, edit, test, pause and remove agents.", help_format="markdown")

Program = Annotated[str, Parameter(help="The program and its arguments, after --.")]
YesNo = Literal["yes", "no"]
AgentName = Annotated[str, Parameter(help="The agent's name.")]
Setting = Annotated[tuple[str, ...], Parameter(metavar="NAME=VALUE", negative=())]

Variables = Annotated[tuple[str, ...], Parameter(metavar="NAME[=VALUE]", negative=())]


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
    env: Variables = (),
    create_home: bool = False,
    max_parallel: Annotated[int, Exact] = 1,
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
        An environment variable that sets the program's home, such as CODEX_HOME=/srv/codex. Its directory must exist.
    create_home
        Create the directories named by --home.
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
    needs({"--create-home": create_home}, "--home", bool(home), "Name the directory with --home NAME=DIRECTORY.")
    body: dict[str, Any] = {
        "name": name_given(name),
        "provider": name_given(provider, "provider"),
        "model": model,
        "mode": mode,
        "instructions": _instructions(instructions),
        "program": program,
        "options": pairs(option, "--option"),
        "home": pairs(home, "--home"),
        "environment": environment(env),
        "create_home": create_home,
        "most": max_parallel,
        "heartbeat": new_heartbeat(every, cron, zone, shared, thread),
        "across_accounts": across_accounts == "yes",
    }
    server = Server(options.data)
    said = server.post("/agents", body)

    def show_added(made: AgentView) -> None:
        tell(f"Added {made.name}: {made.provider}, mode {made.mode}. Talk to it with `clew chat {made.name}`.")
        _tell_login(server, made.name)

    print_view(options, said, AgentView, show_added)


def _tell_login(server: Server, name: str) -> None:
    """A note on stderr: which login the agent has, or how it gets one."""
    # The agent is added, whether its login can be looked up or not.
    with suppress(Fault):
        login = read(LoginView, server.get(f"/agents/{part(name)}/login"))
        if login.words:
            note(with_keys_here(login.words))


_DEADLINE = 180.0
"""The agent's program is started, and its model answers a prompt."""


@app.command(name="test")
def try_agent(name: AgentName, /, *, options: Options = OPTIONS) -> ExitStatus:
    """Try a first prompt, and show the reply or what is wrong.

    The prompt goes to a new session in a temporary directory, in the mode read where the agent's program has it. No
    thread is changed. The program's own store keeps that session.

    For example:

        clew agent test ada
    """
    said = Server(options.data).post(f"/agents/{part(name)}/test", deadline=_DEADLINE)
    tried = read(TrialView, said)
    if tried.ok:
        text = f"{tried.agent} answered after {tried.seconds:.1f} s (mode {tried.mode}): {one_line(tried.words, 500)}"
    else:
        text = f"{tried.agent} did not answer: {with_keys_here(one_line(tried.words))}"
    tell_answer(said, lambda: tell(text), as_json=options.json)
    return ExitStatus.DONE if tried.ok else ExitStatus.FAILED


@app.command(name="list")
def list_(*, removed: bool = False, options: Options = OPTIONS) -> None:
    """List the agents.

    For example:

        clew agent list

    Parameters
    ----------
    removed
        Also list removed agents; their state is archived.
    """
    said = Server(options.data).get("/agents", {"removed": "true"} if removed else None)
    print_table(options, said, AgentView, _row, "No agents. Add one with `clew agent add`.")


def _row(agent: AgentView) -> dict[str, str]:
    beat = agent.heartbeat
    return {
        "name": agent.name,
        "state": "missing" if agent.missing else agent.state,
        "provider": agent.provider,
        "model": agent.model or "",
        "mode": agent.mode,
        "running": str(agent.live),
        "waiting": str(agent.waiting),
        "heartbeat": "" if beat is None else beat.cron or spelled(beat.every or 0),
    }


@app.command
def show(name: AgentName, /, *, options: Options = OPTIONS) -> None:
    """Show an agent's settings. Values of its environment variables are never shown.

    For example:

        clew agent show ada
    """
    print_view(options, Server(options.data).get(f"/agents/{part(name)}"), AgentView, show_agent)


@app.command
def edit(
    name: AgentName,
    /,
    *program: Program,
    provider: str | None = None,
    model: str | None = None,
    mode: Annotated[Mode | None, Exact] = None,
    instructions: Text | None = None,
    option: Setting | None = None,
    home: Setting | None = None,
    env: Variables | None = None,
    add_env: Variables = (),
    remove_env: Annotated[tuple[str, ...], Parameter(metavar="NAME", negative=())] = (),
    create_home: bool = False,
    max_parallel: Annotated[int | None, Exact] = None,
    every: str | None = None,
    cron: str | None = None,
    zone: str | None = None,
    shared: bool = False,
    isolated: bool = False,
    thread: str | None = None,
    no_heartbeat: bool = False,
    across_accounts: Annotated[YesNo | None, Exact] = None,
    options: Options = OPTIONS,
) -> None:
    """Change an agent. Only the given options change; an empty value clears one. Live runs keep their settings.

    For example:

        clew agent edit ada --mode read

        clew agent edit ada --model "" --every 2h

        clew agent edit ada --instructions - < ada.md

        clew agent edit ada --add-env ANTHROPIC_API_KEY

        clew agent edit ada --remove-env ANTHROPIC_API_KEY

        clew agent edit ada --across-accounts yes

    Parameters
    ----------
    provider
        The provider that runs it. Conversations continue in a new session of the new provider.
    model
        The model; an empty value means the provider's default.
    mode
        What it may do without asking: read, ask, edit or full.
    instructions
        Instructions for the start of every conversation; - reads them from stdin.
    option
        Provider options; they replace the current ones, and an empty value removes all.
    home
        Environment variables that set the program's home; they replace the current ones, and an empty value removes
        all. The directories must exist.
    create_home
        Create the directories named by --home.
    env
        Environment variables; they replace all current ones, and an empty value removes all. NAME alone takes its value
        from this shell.
    add_env
        An environment variable to set; the others stay. May be repeated. NAME alone takes its value from this shell.
    remove_env
        An environment variable to remove; the others stay. May be repeated.
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
    not_together({"--shared": shared, "--isolated": isolated})
    beat = next((name for name, value in {"--every": every, "--cron": cron, "--zone": zone}.items() if value), "")
    not_together({"--no-heartbeat": no_heartbeat, beat: beat})
    not_together({"--env": env is not None, "--add-env": add_env}, "--env replaces all of them")
    not_together({"--env": env is not None, "--remove-env": remove_env}, "--env replaces all of them")
    for each in {word.partition("=")[0] for word in add_env} & set(remove_env):
        raise Misused(f"{each} cannot be added and removed at once.", "Leave one of them out.")
    needs({"--create-home": create_home}, "--home", bool(home), "Name the directory with --home NAME=DIRECTORY.")
    named = False if shared else True if isolated else None
    heartbeat = heartbeat_change(every, cron, zone, named, thread)
    change: dict[str, Any] = {
        "provider": provider,
        "model": model,
        "mode": mode,
        "instructions": _instructions(instructions),
        "program": program or None,
        "options": None if option is None else pairs(unless_empty(option), "--option"),
        "home": None if home is None else pairs(unless_empty(home), "--home"),
        "environment": None if env is None else environment(unless_empty(env)),
        "add_environment": environment(add_env, "--add-env") or None,
        "remove_environment": remove_env or None,
        "create_home": create_home or None,
        "most": max_parallel,
        "heartbeat": heartbeat,
        "no_heartbeat": no_heartbeat or None,
        "across_accounts": None if across_accounts is None else across_accounts == "yes",
    }
    changed = {field: value for field, value in change.items() if value is not None}
    if not changed:
        raise Misused("Nothing to change.", "Give an option, such as --mode; `clew agent show` shows what there is.")
    _change(options, name, changed)


@app.command
def remove(name: AgentName, /, *, options: Options = OPTIONS) -> None:
    """Remove an agent: it is not woken any more, and is not listed.

    Refused while it has runs or open issues. Its threads, runs and sessions stay, and its name stays taken;
    `clew agent resume` brings it back, without its heartbeat.

    For example:

        clew agent remove ada
    """
    said = Server(options.data).delete(f"/agents/{part(name)}")
    text = f"Removed {name}. Its threads and runs stay. Bring it back with `clew agent resume {name}`."
    print_view(options, said, AgentView, lambda _: tell(text))


@app.command
def pause(name: AgentName, /, *, options: Options = OPTIONS) -> None:
    """Pause an agent: it is not woken until it is resumed. A live run finishes.

    For example:

        clew agent pause ada
    """
    _change(options, name, {"paused": True})


@app.command
def resume(name: AgentName, /, *, options: Options = OPTIONS) -> None:
    """Resume a paused agent, or bring back a removed one.

    For example:

        clew agent resume ada
    """
    _change(options, name, {"paused": False})


def _instructions(text: str | None) -> str | None:
    return None if text is None else optional(text, "text of --instructions")


def _change(options: Options, name: str, change: dict[str, Any]) -> None:
    print_view(options, Server(options.data).patch(f"/agents/{part(name)}", change), AgentView, show_agent)


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
            ("runtime", agent.place),
            ("cannot start", agent.missing),
            ("across accounts", "yes" if agent.across_accounts else "no"),
            ("heartbeat", "" if agent.heartbeat is None else heartbeat_words(agent.heartbeat)),
            ("instructions", agent.instructions or ""),
        ]
    )


def _listed(values: object) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items()) if isinstance(values, dict) else ""
