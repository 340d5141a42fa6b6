"""Agents: listed, shown, added with an installed program, changed, paused."""

from collections.abc import Mapping
from dataclasses import fields, replace

from clew.control.actor import Actor
from clew.control.faults import BadRequest, NotNow
from clew.control.programs import check_program, find_program, replaced
from clew.control.schedules import changed_rhythm, check_rhythm, set_rhythm
from clew.control.services import Services
from clew.control.validation import check_mode, check_name, check_size
from clew.kernel import AgentId, AgentState, Capabilities, PermissionMode, RuntimeId, choose_mode
from clew.protocol.control import Registration
from clew.protocol.machine import AgentProgram, Machine
from clew.protocol.requests import AgentChange, NewAgent
from clew.protocol.stage import Stage
from clew.protocol.views import AgentView
from clew.store.engine.database import Transaction
from clew.store.engine.dialect import storable
from clew.store.operations import agents as store
from clew.store.operations.moves import lock_agent
from clew.store.operations.policies import with_policy
from clew.store.operations.rows import read_capabilities, write_program
from clew.store.operations.runtimes import as_started, register_runtime
from clew.store.operations.schedules import remove_heartbeat
from clew.store.operations.updates import KEPT, AgentUpdate
from clew.store.queries import agents as queries
from clew.store.queries.agents import AgentRecord, read_agent, read_heartbeat
from clew.store.queries.names import agent_named
from clew.store.queries.runtimes import read_runtime
from clew.store.queries.threads import list_threads

MOST_PARALLEL = 100

_ISSUES_NAMED, _ISSUES_READ = 5, 500

_OF_PROGRAM = ("provider", "program", "options", "home", "environment", "add_environment", "remove_environment")
"""The fields of a change that make another program of it."""


async def list_agents(services: Services, actor: Actor, removed: bool = False) -> tuple[AgentView, ...]:
    """All of them; removed ones only if they are asked for."""
    found = await services.read(queries.list_agents)
    return tuple(agent for agent in found if removed or agent.state != AgentState.ARCHIVED)


async def show_agent(services: Services, actor: Actor, name: str) -> AgentView:
    return await services.read(lambda tx: queries.show_agent(tx, agent_named(tx, name).id))


async def expressible_modes(services: Services, actor: Actor, name: str) -> tuple[PermissionMode, ...]:
    """The modes that its program can be limited to, the strictest first; none while it is not known."""

    def read(tx: Transaction) -> tuple[PermissionMode, ...]:
        agent = agent_named(tx, name)
        started = None if agent.runtime is None else as_started(tx, agent.id, agent.runtime)
        return () if started is None else tuple(sorted(started.capabilities.modes))

    return await services.read(read)


async def add_agent(services: Services, actor: Actor, asked: NewAgent) -> AgentView:
    """The machine looks for the program first: an agent that could not work is not added."""
    name = check_name(asked.name, "an agent")
    program = check_program(AgentProgram(asked.provider, asked.program, asked.options, asked.home, asked.environment))
    rhythm = None if asked.heartbeat is None else check_rhythm(asked.heartbeat)
    mode, most = check_mode(asked.mode), _check_parallel(asked.most)
    machine = services.chosen_machine(asked.machine)
    await machine.check_homes(program.home, create=asked.create_home)
    found = await find_program(machine, program)
    _check_expressible(mode, found.provider, read_capabilities(found.provider, found.capabilities))
    agent = store.new_agent()

    def write(tx: Transaction) -> AgentView:
        facts = store.AgentFacts(
            name=name,
            provider=found.provider,
            runtime=register_runtime(tx, found),
            home=str(services.data / "homes" / name),
            mode=mode,
            model=storable(asked.model or "") or None,
            instructions=_instructions(asked.instructions),
            settings=write_program(program),
            max_live=most,
            program=found.program,
            policy=with_policy("{}", agent, history_across_accounts=True) if asked.across_accounts else "{}",
        )
        store.add_agent(tx, agent, facts)
        if rhythm is not None:
            set_rhythm(tx, agent, rhythm)
        return queries.show_agent(tx, agent)

    added = await services.write(write)
    services.record(actor, f"added agent {name}")
    await _offer(machine, added, program)
    return added


async def change_agent(services: Services, actor: Actor, name: str, change: AgentChange) -> AgentView:
    """Change what is given; the rest stays. Another program or home is another runtime: queued runs move there, and
    the next decision says what happens to the sessions."""
    kept = await services.read(lambda tx: agent_named(tx, name))
    if change == AgentChange():
        known = ", ".join(each.name for each in fields(change))
        words = "Nothing is to be changed: a field that is null or left out stays as it is."
        raise BadRequest(words, f'Give one of: {known}. An empty text ("") clears the model or the instructions.')
    if kept.state is AgentState.ARCHIVED and change.paused:
        raise NotNow(f"{name} was removed; it is woken by nothing.", f"Bring it back with `clew agent resume {name}`.")
    program, found, machine = await _changed_program(services, kept, change)
    if change.heartbeat is not None and change.no_heartbeat:
        raise BadRequest("A heartbeat cannot be set and removed at once.", "Ask for one of them.")
    update = _update(change)

    def write(tx: Transaction) -> AgentView:
        agent, to = agent_named(tx, name), update
        if found is not None and program is not None:
            to = replace(
                to,
                provider=found.provider,
                runtime=register_runtime(tx, found),
                settings=write_program(program),
                program=found.program,
                missing=None,
            )
        if change.across_accounts is not None:
            policy = with_policy(agent.policy, agent.id, history_across_accounts=change.across_accounts)
            to = replace(to, policy=policy)
        store.change_agent(tx, agent.id, to)
        if found is not None or change.mode is not None:
            _check_changed_mode(tx, agent.id)
        if change.no_heartbeat:
            remove_heartbeat(tx, agent.id)
        if change.heartbeat is not None:
            set_rhythm(tx, agent.id, changed_rhythm(read_heartbeat(tx, agent.id), change.heartbeat))
        return queries.show_agent(tx, agent.id)

    view = await services.write(write)
    services.record(actor, f"changed agent {name}: {', '.join(_given(change))}")
    if program is not None and machine is not None:
        await _offer(machine, view, program)
    return view


async def remove_agent(services: Services, actor: Actor, name: str) -> AgentView:
    """Remove it: it is not woken any more, and is not listed. Its threads, journals, runs and sessions stay, and it can
    be brought back. Refused while it has work."""

    def write(tx: Transaction) -> AgentView:
        agent = agent_named(tx, name)
        # FOR UPDATE: no run is queued for it before this transaction ends.
        lock_agent(tx, agent.id)
        live, waiting = queries.count_runs(tx, "agent_id").get(agent.id, (0, 0))
        if live or waiting:
            raise NotNow(
                f"{name} has {live} running and {waiting} waiting runs.",
                f"Let them end, or cancel them: `clew runs --agent {name}` lists them.",
            )
        found = [
            issue
            for only in (None, "archived")
            for issue in list_threads(tx, "issue", "open", agent.id, _ISSUES_READ, None, only=only)
        ]
        issues = [thread.ref for thread in found if thread.stage != Stage.MERGED]
        if issues:
            more = f" and {len(issues) - _ISSUES_NAMED} more" if len(issues) > _ISSUES_NAMED else ""
            raise NotNow(
                f"{name} has open issues: {', '.join(issues[:_ISSUES_NAMED])}{more}.",
                "Give each to another agent with `clew issue assign`, or close it with `clew issue close`.",
            )
        remove_heartbeat(tx, agent.id)
        store.change_agent(tx, agent.id, AgentUpdate(state=AgentState.ARCHIVED))
        return queries.show_agent(tx, agent.id)

    view = await services.write(write)
    services.record(actor, f"removed agent {name}")
    return view


def _check_expressible(mode: str, provider: str, capabilities: Capabilities) -> None:
    """Refuse a mode that the program cannot be limited to: every run of the agent would be held. Clew does not choose a
    wider mode; that is for the agent's owner."""
    if choose_mode(PermissionMode(mode), (), capabilities.modes).mode is None:
        known = ", ".join(each.value for each in PermissionMode if each in capabilities.modes) or "none"
        raise BadRequest(
            f"{provider} cannot limit its program to the mode {mode}, nor to a stricter one; it supports: {known}.",
            f"Choose a mode that it supports, such as --mode {known.rpartition(' ')[2]}, if that is what you want.",
        )


def _check_changed_mode(tx: Transaction, agent: AgentId) -> None:
    """Check the agent after the change; an error rolls the change back."""
    changed = read_agent(tx, agent)
    if changed is None or changed.runtime is None:
        return
    started = as_started(tx, agent, changed.runtime)
    if started is not None:
        _check_expressible(changed.mode, changed.provider, started.capabilities)


async def _changed_program(
    services: Services, kept: AgentRecord, change: AgentChange
) -> tuple[AgentProgram | None, Registration | None, Machine | None]:
    """The program after the change, what its machine found of it, and that machine; None where it does not change."""
    brought_back = kept.state is AgentState.ARCHIVED and change.paused is False
    if not brought_back and not any(getattr(change, each) is not None for each in _OF_PROGRAM):
        return None, None, None
    earlier = kept.program
    if change.provider is not None and change.provider != earlier.provider:
        # Another provider has other options, command lines and homes. The environment is the owner's, and stays.
        earlier = AgentProgram(change.provider, environment=earlier.environment)
    program = check_program(
        replace(
            earlier,
            program=earlier.program if change.program is None else change.program,
            options=replaced(earlier.options, change.options),
            home=replaced(earlier.home, change.home),
            environment=_environment(kept, earlier.environment, change),
        )
    )
    runtime = None if kept.runtime is None else await services.read(lambda tx: read_runtime(tx, kept.runtime or ""))
    machine = services.remaining_machine(None if runtime is None else runtime.machine)
    if change.home:
        await machine.check_homes(program.home, create=change.create_home)
    return program, await find_program(machine, program), machine


def _environment(agent: AgentRecord, kept: Mapping[str, str], change: AgentChange) -> Mapping[str, str]:
    added, removed = change.add_environment or {}, change.remove_environment or ()
    if change.environment is not None and (added or removed):
        raise BadRequest(
            "The environment cannot be replaced and changed at once.", "Give all variables, or name those that change."
        )
    unknown = [name for name in removed if name not in kept]
    if unknown:
        there = f"It has {', '.join(sorted(kept))}." if kept else "It has none."
        raise BadRequest(f"{agent.name} has no variable {unknown[0]!r}.", there)
    stays = {name: text for name, text in replaced(kept, change.environment).items() if name not in removed}
    return {**stays, **added}


def _given(change: AgentChange) -> list[str]:
    """The names of what is changed. Values may be secrets."""
    return [each.name for each in fields(change) if getattr(change, each.name) not in (None, False)]


def _update(change: AgentChange) -> AgentUpdate:
    return AgentUpdate(
        model=KEPT if change.model is None else storable(change.model) or None,
        mode=KEPT if change.mode is None else check_mode(change.mode),
        instructions=KEPT if change.instructions is None else _instructions(change.instructions),
        max_parallel=KEPT if change.most is None else _check_parallel(change.most),
        state=KEPT if change.paused is None else AgentState.PAUSED if change.paused else AgentState.ACTIVE,
    )


def _check_parallel(most: int) -> int:
    if not 1 <= most <= MOST_PARALLEL:
        raise BadRequest(
            f"An agent can have 1 to {MOST_PARALLEL} runs at once (got {most}).", "To stop an agent, pause it."
        )
    return most


def _instructions(text: str | None) -> str | None:
    return None if text is None else storable(check_size(text, "The instruction")) or None


async def _offer(machine: Machine, agent: AgentView, program: AgentProgram) -> None:
    if agent.runtime is not None:
        await machine.offer(RuntimeId(agent.runtime), program)
