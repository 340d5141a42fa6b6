"""The programs of agents: checked, looked for on a machine, and offered again when a server starts."""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence

from clew.control.actor import Actor
from clew.control.faults import BadRequest, NotInstalled
from clew.control.services import Services
from clew.kernel import AgentState, MachineId, RuntimeId
from clew.ports.fault import Fault
from clew.protocol.control import Registration
from clew.protocol.machine import AgentProgram, Looked, Machine
from clew.protocol.views import CheckView
from clew.store.engine.database import Transaction
from clew.store.engine.dialect import storable
from clew.store.faults import Busy
from clew.store.operations.agents import change_agent, set_missing
from clew.store.operations.runtimes import register_runtime
from clew.store.operations.updates import KEPT, AgentUpdate
from clew.store.queries.agents import AgentRecord, agent_records, read_agent
from clew.store.queries.runtimes import runtime_records

_MOST = 100
_SHOWN = 60
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
GUIDE = "guide"
"""The agent that comes with Clew: its program is Clew itself."""

_ALWAYS_NAMED = frozenset({"acp", "command"})
"""Providers that run any program: without a name there is nothing to look for."""


async def own_program_providers(machine: Machine) -> list[str]:
    """The machine's providers that know which program they are for."""
    return sorted(name for name in await machine.providers() if name not in _ALWAYS_NAMED)


async def find_program(machine: Machine, program: AgentProgram) -> Registration:
    """The program as the machine registers it. Raises where the machine does not have it."""
    there = await machine.providers()
    if program.provider not in there:
        raise BadRequest(f"There is no provider {program.provider!r}.", f"Use one of: {', '.join(sorted(there))}.")
    looked = await machine.discover(program)
    if looked.registration is None:
        missing = looked.missing or "It was not found."
        raise NotInstalled(
            f"{program.provider} cannot be used on this machine: {missing}",
            "`clew doctor` shows what was looked at. The guide agent is always there.",
        )
    return looked.registration


def found_words(looked: Looked) -> str:
    """The program that was found: its provider and version, or its name where it does not say its version."""
    name = looked.version or " ".join(looked.program.program[:1])
    return f"{looked.program.provider} {name}".strip()


def another_program(agent: str) -> str:
    """What to do beside installing a missing program, which its provider says."""
    return f"`clew agent edit {agent} -- PROGRAM` names another program."


def remedy_for(agent: AgentRecord, providers: Collection[str]) -> str:
    """What to do about an agent that cannot be started on a machine with these providers, beside what its provider
    says."""
    if agent.provider in providers:
        return another_program(agent.name)
    return (
        f"Install the package of the provider {agent.provider} again, or give {agent.name} another one: "
        f"`clew agent edit {agent.name} --provider NAME`."
    )


def replaced(kept: Mapping[str, str], change: Mapping[str, str] | None) -> Mapping[str, str]:
    """The change takes the place of all that there was; a name with an empty value is left out."""
    return kept if change is None else {name: text for name, text in change.items() if text}


def check_program(program: AgentProgram) -> AgentProgram:
    for what, given in (("option", program.options), ("home", program.home), ("environment", program.environment)):
        if len(given) > _MOST:
            raise BadRequest(f"{len(given)} variables of {what} are too many.", f"Give up to {_MOST}.")
        for name, text in given.items():
            if what != "option" and _VARIABLE.fullmatch(name) is None:
                words = f"{name[:_SHOWN]!r} cannot be the name of an environment variable."
                raise BadRequest(words, "Use letters, digits and _, beginning with a letter, as in ANTHROPIC_API_KEY.")
            if not name or "=" in name or "\0" in name + text:
                raise BadRequest(f"{name[:_SHOWN]!r} cannot be the name of an option.", "Leave out = and NUL.")
    if program.program and program.provider == GUIDE:
        # Another program in its place would be reported as missing or broken.
        raise BadRequest("The guide takes no program: its program is Clew itself.", "Leave those words out.")
    if program.program and not program.program[0].strip():
        raise BadRequest("The command line names no program: its first word is empty.", "Put the program's name first.")
    if len(program.program) > _MOST or any("\0" in word for word in program.program):
        raise BadRequest("That command line cannot be run.", f"Give up to {_MOST} words without NUL.")
    return program


async def offer_agents(services: Services, actor: Actor, machine: MachineId) -> tuple[CheckView, ...]:
    """Look for the program of every agent of that machine, and offer it; one result for each.

    An agent whose program is gone stays as it is and stops no other. A database that is busy says nothing about any
    of them: then Busy is raised, and all have to be offered again."""
    there = services.machine(machine)
    agents = await _agents_of(services, machine)
    unregistered = _Unregistered(agents)
    # Together: a program that is slow to answer delays no other agent.
    return tuple(await asyncio.gather(*(_offer(services, actor, there, agent, unregistered) for agent in agents)))


async def _agents_of(services: Services, machine: MachineId) -> list[AgentRecord]:
    machines = {record.id: record.machine for record in await services.read(runtime_records)}
    return [
        agent
        for agent in await services.read(agent_records)
        # A database that was brought to another machine names the former one.
        if agent.state is not AgentState.ARCHIVED
        and (agent.runtime is None or machines.get(agent.runtime) == machine or len(services.machines) == 1)
    ]


class _Unregistered:
    """Agents of an older database, whose program was never registered, by their runtime. Until it is, they count as
    the program that was registered there last, so their runtime is offered only afterwards."""

    def __init__(self, agents: Sequence[AgentRecord]) -> None:
        self._left: dict[str | None, set[str]] = {}
        self._registered: dict[str | None, asyncio.Event] = {}
        for agent in agents:
            if not agent.registered:
                self._left.setdefault(agent.runtime, set()).add(agent.id)
                self._registered.setdefault(agent.runtime, asyncio.Event())

    def looked_at(self, agent: AgentRecord) -> None:
        left = self._left.get(agent.runtime, set())
        left.discard(agent.id)
        if not left and agent.runtime in self._registered:
            self._registered[agent.runtime].set()

    async def none_in(self, runtime: str | None) -> None:
        registered = self._registered.get(runtime)
        if registered is not None:
            await registered.wait()


async def look_again(services: Services, actor: Actor, machine: MachineId) -> tuple[CheckView, ...]:
    """Look for the programs that could not be started, and for those whose provider was removed or broke since; one
    result for each that can be started now."""
    there = services.machine(machine)
    provided = await there.providers()
    agents = await _agents_of(services, machine)
    gone = [agent for agent in agents if agent.missing or agent.provider not in provided]
    looked = await asyncio.gather(*(_offer(services, actor, there, agent, _Unregistered(())) for agent in gone))
    return tuple(each for each in looked if each.state == "ok")


async def look_for(
    services: Services, actor: Actor, machine: Machine, agent: AgentRecord
) -> tuple[Looked, RuntimeId | None]:
    """Look for the agent's program, and record whether it can be started: its runs wait while it cannot. Returns its
    runtime, where it can be."""
    try:
        looked = await machine.discover(agent.program)
    except Fault as fault:
        await _set_missing(services, actor, agent, str(fault))
        raise
    found = looked.registration
    if found is None:
        await _set_missing(services, actor, agent, looked.missing or f"{agent.program.provider} was not found.")
        return looked, None
    runtime = await _register(services, agent, found)
    if agent.missing:
        services.record(actor, f"found the program of {agent.name} again")
    return looked, runtime


async def _set_missing(services: Services, actor: Actor, agent: AgentRecord, words: str) -> None:
    await services.write(lambda tx: set_missing(tx, agent.id, storable(words)))
    if not agent.missing:
        services.record(actor, f"missed the program of {agent.name}: {words}")


async def _offer(
    services: Services, actor: Actor, machine: Machine, agent: AgentRecord, unregistered: _Unregistered
) -> CheckView:
    name, program = f"agent {agent.name}", agent.program
    try:
        try:
            looked, runtime = await look_for(services, actor, machine, agent)
        finally:
            unregistered.looked_at(agent)
        if runtime is None:
            words = looked.missing or f"{program.provider} was not found."
            return CheckView(name, "missing", words, remedy_for(agent, await machine.providers()))
        await unregistered.none_in(runtime)
        await machine.offer(runtime, program)
    except Busy:
        raise
    except Fault as fault:
        return CheckView(name, "failed", fault.words, fault.remedy)
    return CheckView(name, "ok", found_words(looked))


async def _register(services: Services, before: AgentRecord, found: Registration) -> RuntimeId:
    def write(tx: Transaction) -> RuntimeId:
        runtime = register_runtime(tx, found)
        agent = read_agent(tx, before.id)
        # The home may have another name now, or the data came from another machine. An agent that was changed in the
        # meantime was registered with that change.
        if agent is not None and (agent.settings, agent.provider) == (before.settings, before.provider):
            update = AgentUpdate(
                runtime=KEPT if agent.runtime == runtime else runtime,
                program=KEPT if agent.registered == found.program else found.program,
            )
            if update != AgentUpdate():
                change_agent(tx, agent.id, update)
            set_missing(tx, agent.id, "")
        return runtime

    return await services.write(write)
