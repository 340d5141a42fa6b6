"""`clew agent`: who works, and how."""

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from clew.cli.agents import changed_rhythm, environment, rhythm, show_agent
from clew.cli.client import Server, part
from clew.cli.options import OPTIONS, Options, Text
from clew.cli.reading import read, read_all
from clew.cli.table import table
from clew.cli.telling import tell, tell_as_is
from clew.cli.texts import BadText, checked, given, pairs, piped
from clew.cli.times import every as spelled
from clew.protocol.views import AgentView, Mode

app = App(name="agent", help="Add, list, change and pause agents.", help_format="markdown")

Program = Annotated[str, Parameter(allow_leading_hyphen=True, help="The program and its arguments, after --.")]
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
    most: int = 1,
    every: str | None = None,
    cron: str | None = None,
    zone: str | None = None,
    shared: bool = False,
    thread: str | None = None,
    across_accounts: YesNo = "no",
    options: Options = OPTIONS,
) -> None:
    """Add an agent.

    Its provider runs it: claude, codex, opencode, guide, or any program with acp or command. `clew doctor` says which
    are there.

    For example:

        clew agent add ada --provider claude --mode ask

        clew agent add night --provider codex --every 30m --instructions "Look after the open issues."

        clew agent add tests --provider command --mode full -- make test

    Parameters
    ----------
    name
        What it is called.
    provider
        Who runs it.
    model
        The model, as the provider names it.
    mode
        What it may do by itself: read, ask, edit or full.
    instructions
        What it is told at the beginning of every conversation; - reads it from stdin.
    option
        A setting of the provider.
    home
        A variable that says where the provider's program keeps its own things.
    env
        A variable of the agent's environment. A name alone takes the value it has here.
    most
        How many of its runs may go at once.
    every
        Wake it by itself, every 30m for instance; from 15s to 366d.
    cron
        Wake it by itself, by a line of cron.
    zone
        The time zone of that line.
    shared
        Let those wakes share one conversation. Each has its own otherwise.
    thread
        The thread those wakes are for; the agent's own without one.
    across_accounts
        Whether a conversation's history may be told under another account of the provider: yes or no. A key that
        changes is no other account.
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
        "most": most,
        "heartbeat": rhythm(every, cron, zone, shared, thread),
        "across_accounts": across_accounts == "yes",
    }
    said = Server(options.data).post("/agents", body)
    if options.json:
        return tell_as_is(said)
    made = read(AgentView, said)
    return tell(f"{made.name} is ready: {made.provider}, mode {made.mode}. Talk to it with `clew chat {made.name}`.")


@app.command(name="list")
def list_(*, options: Options = OPTIONS) -> None:
    """List the agents.

    For example:

        clew agent list
    """
    said = Server(options.data).get("/agents")
    if options.json:
        return tell_as_is(said)
    return table(
        ("name", "state", "provider", "model", "mode", "going", "waiting", "heartbeat"),
        [
            (
                agent.name,
                agent.state,
                agent.provider,
                agent.model or "",
                agent.mode,
                str(agent.live),
                str(agent.waiting),
                "" if agent.heartbeat is None else agent.heartbeat.cron or spelled(agent.heartbeat.every or 0),
            )
            for agent in read_all(AgentView, said)
        ],
        "There are no agents. Add one with `clew agent add`.",
    )


@app.command
def show(name: str, /, *, options: Options = OPTIONS) -> None:
    """Show one agent with all its settings. Values of its environment are never shown.

    For example:

        clew agent show ada
    """
    _tell(options, Server(options.data).get(f"/agents/{part(name)}"))


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
    most: int | None = None,
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
    """Change an agent. What is not named stays; an empty text takes it away. Runs that are going keep what they have.

    For example:

        clew agent edit ada --mode read

        clew agent edit ada --model "" --every 2h

        clew agent edit ada --instructions - < ada.md

        clew agent edit ada --across-accounts yes

    Parameters
    ----------
    provider
        Who runs it. Conversations go on in a new session of the new provider.
    option
        Settings of the provider; they replace those it has.
    home
        Variables that say where the program keeps its own things; they replace those it has.
    env
        The agent's environment; it replaces the one it has. A name alone takes the value it has here.
    zone
        The time zone of the heartbeat's line of cron.
    every
        Wake it by itself, every 30m for instance; from 15s to 366d. The rest of its heartbeat stays.
    cron
        Wake it by itself, by a line of cron. The rest of its heartbeat stays.
    shared
        Let the wakes of the heartbeat share one conversation.
    isolated
        Give each of them a conversation of its own.
    thread
        The thread the heartbeat wakes it in; an empty one is the agent's own.
    no_heartbeat
        Do not wake it by itself any more.
    across_accounts
        Whether a conversation's history may be told under another account of the provider: yes or no. A key that
        changes is no other account. It counts from the next change of account on.
    """
    if shared and isolated:
        raise BadText("Wakes share one conversation, or have one each, and not both.", "Leave one of them out.")
    named = False if shared else True if isolated else None
    heartbeat = changed_rhythm(every, cron, zone, named, thread)
    change: dict[str, Any] = {
        "provider": provider,
        "model": model,
        "mode": mode,
        "instructions": _instructions(instructions),
        "program": program or None,
        "options": None if option is None else pairs(option, "--option"),
        "home": None if home is None else pairs(home, "--home"),
        "environment": None if env is None else environment(env),
        "most": most,
        "heartbeat": heartbeat,
        "no_heartbeat": no_heartbeat or None,
        "across_accounts": None if across_accounts is None else across_accounts == "yes",
    }
    _change(options, name, {field: value for field, value in change.items() if value is not None})


@app.command
def pause(name: str, /, *, options: Options = OPTIONS) -> None:
    """Let an agent rest: it is not woken until it is resumed. A run that is going ends as usual.

    For example:

        clew agent pause ada
    """
    _change(options, name, {"paused": True})


@app.command
def resume(name: str, /, *, options: Options = OPTIONS) -> None:
    """Let a paused agent be woken again.

    For example:

        clew agent resume ada
    """
    _change(options, name, {"paused": False})


def _instructions(text: str | None) -> str | None:
    return None if text is None else checked(piped() if text == "-" else text, "text of --instructions")


def _change(options: Options, name: str, change: dict[str, Any]) -> None:
    _tell(options, Server(options.data).patch(f"/agents/{part(name)}", change))


def _tell(options: Options, said: bytes) -> None:
    if options.json:
        return tell_as_is(said)
    return show_agent(read(AgentView, said))
