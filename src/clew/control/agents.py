"""Agents: listed, shown, added with a program that is there, changed, paused."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from sqlalchemy import Connection

from clew.control.faults import BadRequest
from clew.control.programs import changed, check_program, find_program, read_settings, write_settings
from clew.control.schedules import changed_rhythm, check_rhythm, set_rhythm, show_rhythm
from clew.control.services import Services
from clew.control.validation import check_name, not_too_long
from clew.kernel import AgentId, Capabilities, PermissionMode, RuntimeId, choose_mode
from clew.protocol.machine import AgentProgram
from clew.protocol.requests import AgentChange, NewAgent
from clew.protocol.runtimes import Registration
from clew.protocol.views import AgentView, Mode
from clew.store.engine.statement import Row
from clew.store.operations import agents as store
from clew.store.operations.rows import across_accounts, read_capabilities, with_policy
from clew.store.operations.runtimes import as_started, register_runtime
from clew.store.operations.schedules import remove_heartbeat
from clew.store.operations.texts import keepable
from clew.store.queries.agents import count_going, read_agent
from clew.store.queries.agents import list_agents as read_agents
from clew.store.queries.names import agent_named

MOST_AT_ONCE = 100


async def list_agents(services: Services) -> tuple[AgentView, ...]:
    def look(connection: Connection) -> tuple[AgentView, ...]:
        going = count_going(connection, "agent_id")
        return tuple(_show(connection, row, going) for row in read_agents(connection))

    return await services.read(look)


async def show_agent(services: Services, name: str) -> AgentView:
    return await services.read(lambda connection: show_row(connection, agent_named(connection, name)))


async def add_agent(services: Services, asked: NewAgent) -> AgentView:
    """Its program is looked for first: an agent that could not work is not added."""
    name = check_name(asked.name, "an agent")
    program = check_program(AgentProgram(asked.provider, asked.program, asked.options, asked.home, asked.environment))
    rhythm = None if asked.heartbeat is None else check_rhythm(asked.heartbeat)
    mode, most = check_mode(asked.mode), _most(asked.most)
    found = await find_program(services, program)
    must_express(mode, found.provider, read_capabilities(found.provider, found.capabilities))
    agent = store.new_agent()

    def do(connection: Connection) -> AgentView:
        facts = store.AgentFacts(
            name=name,
            provider=found.provider,
            runtime=register_runtime(connection, found),
            home=str(services.data / "homes" / name),
            mode=mode,
            model=keepable(asked.model or "") or None,
            instructions=_instructions(asked.instructions),
            settings=write_settings(program),
            max_live=most,
            program=found.program,
            policy=with_policy("{}", agent, history_across_accounts=True) if asked.across_accounts else "{}",
        )
        store.add_agent(connection, agent, facts)
        if rhythm is not None:
            set_rhythm(connection, agent, rhythm)
        return _show_again(connection, agent)

    added = await services.write(do)
    await _offer(services, added, program)
    return added


async def change_agent(services: Services, name: str, change: AgentChange) -> AgentView:
    """What is not named stays. Another program or home is another runtime: what waits goes there, and the next
    decision says what becomes of its sessions."""
    kept = await services.read(lambda connection: agent_named(connection, name))
    program, found = await _changed_program(services, kept, change)
    if change.heartbeat is not None and change.no_heartbeat:
        raise BadRequest("A heartbeat cannot be set and taken away at once.", "Ask for one of them.")
    values = _values(change)

    def do(connection: Connection) -> AgentView:
        row, to = agent_named(connection, name), dict(values)
        if found is not None and program is not None:
            runtime = register_runtime(connection, found)
            to |= {"provider": found.provider, "runtime_id": runtime, "settings": write_settings(program)}
            to["program"] = found.program
        if change.across_accounts is not None:
            to["policy"] = with_policy(row["policy"], row["id"], history_across_accounts=change.across_accounts)
        store.change_agent(connection, row, to)
        agent = AgentId(row["id"])
        if found is not None or change.mode is not None:
            _must_express(connection, agent)
        if change.no_heartbeat:
            remove_heartbeat(connection, agent)
        if change.heartbeat is not None:
            set_rhythm(connection, agent, changed_rhythm(show_rhythm(connection, agent), change.heartbeat))
        return _show_again(connection, agent)

    view = await services.write(do)
    if program is not None:
        await _offer(services, view, program)
    return view


def _must_express(connection: Connection, agent: AgentId) -> None:
    """As it is after the change, which is undone with the transaction where it cannot be."""
    row = read_agent(connection, agent)
    if row is None or row["runtime_id"] is None:
        return
    started = as_started(connection, agent, row["runtime_id"])
    if started is not None:
        must_express(row["mode"], row["provider"], read_capabilities(started["id"], started["capabilities"]))


async def _changed_program(
    services: Services, kept: Row, change: AgentChange
) -> tuple[AgentProgram | None, Registration | None]:
    """The program after the change, if it is one of the program, and what the machine says of it."""
    if all(each is None for each in (change.provider, change.program, change.options, change.home, change.environment)):
        return None, None
    earlier = read_settings(kept["settings"], kept["provider"])
    if change.provider is not None and change.provider != earlier.provider:
        # Another's options, command line and home mean nothing to it; what its owner put into its environment may.
        earlier = AgentProgram(change.provider, environment=earlier.environment)
    program = check_program(
        replace(
            earlier,
            program=earlier.program if change.program is None else change.program,
            options=changed(earlier.options, change.options),
            home=changed(earlier.home, change.home),
            environment=changed(earlier.environment, change.environment),
        )
    )
    return program, await find_program(services, program)


def _values(change: AgentChange) -> Mapping[str, object]:
    values: dict[str, object] = {}
    if change.model is not None:
        values["model"] = keepable(change.model) or None
    if change.mode is not None:
        values["mode"] = check_mode(change.mode)
    if change.instructions is not None:
        values["instructions"] = _instructions(change.instructions)
    if change.most is not None:
        values["max_live"] = _most(change.most)
    if change.paused is not None:
        values["state"] = "paused" if change.paused else "active"
    return values


def _most(most: int) -> int:
    if not 1 <= most <= MOST_AT_ONCE:
        raise BadRequest(f"{most} runs at once cannot be had.", f"Give 1 to {MOST_AT_ONCE}; to stop it, pause it.")
    return most


def _instructions(text: str | None) -> str | None:
    return None if text is None else keepable(not_too_long(text, "The instruction")) or None


async def _offer(services: Services, agent: AgentView, program: AgentProgram) -> None:
    if agent.runtime is not None:
        await services.here().offer(RuntimeId(agent.runtime), program)


def show_row(connection: Connection, row: Row) -> AgentView:
    return _show(connection, row, count_going(connection, "agent_id"))


def _show_again(connection: Connection, agent: AgentId) -> AgentView:
    row = read_agent(connection, agent)
    assert row is not None
    return show_row(connection, row)


def _show(connection: Connection, row: Row, going: Mapping[str, tuple[int, int]]) -> AgentView:
    program = read_settings(row["settings"], row["provider"])
    live, waiting = going.get(row["id"], (0, 0))
    return AgentView(
        id=row["id"],
        name=row["name"],
        state=row["state"],
        provider=row["provider"],
        model=row["model"],
        mode=cast(Mode, row["mode"]),
        instructions=row["instructions"],
        program=program.program,
        options=program.options,
        home_variables=program.home,
        environment_names=tuple(sorted(program.environment)),
        most=row["max_live"],
        home=row["home"],
        runtime=row["runtime_id"],
        live=live,
        waiting=waiting,
        heartbeat=show_rhythm(connection, AgentId(row["id"])),
        across_accounts=across_accounts(row["policy"]),
    )


def check_mode(mode: str) -> str:
    try:
        known: str = PermissionMode(mode).value
    except ValueError as fault:
        raise BadRequest(
            f"There is no mode {mode!r}.", f"Name one of {', '.join(each.value for each in PermissionMode)}."
        ) from fault
    return known


def must_express(mode: str, provider: str, capabilities: Capabilities) -> None:
    """An agent whose mode its program cannot be given would be held with every wake; a wider one is for its owner."""
    if choose_mode(PermissionMode(mode), (), capabilities.modes).mode is None:
        known = ", ".join(each.value for each in PermissionMode if each in capabilities.modes) or "none"
        raise BadRequest(
            f"{provider} cannot keep a program to the mode {mode}, nor to a stricter one; it knows {known}.",
            f"Choose a mode that it knows, such as --mode {known.rpartition(' ')[2]}, if that is what you want.",
        )
