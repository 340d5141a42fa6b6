"""What is installed on this machine, looked for once the server answers: some programs take their time."""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from clew.app.notices import FoundAgents, Notice
from clew.control.actor import Actor, MachineDaemon
from clew.control.agents import add_agent, list_agents
from clew.control.programs import GUIDE, offer_agents, own_program_providers
from clew.control.services import Services
from clew.daemon import Daemon
from clew.ports.fault import Fault
from clew.protocol.machine import AgentProgram, Looked, Machine
from clew.protocol.requests import NewAgent
from clew.store.faults import NameTaken

log = logging.getLogger("clew.up")

_AGAIN, _AGAIN_MOST = 1.0, 60.0
"""Seconds until it is tried again: at first, and when it was in vain for long."""


async def discover(services: Services, machine: Machine, daemon: Daemon, tell: Callable[[Notice], None]) -> None:
    """Until it has worked. What it waits for is said once."""
    wait, said = _AGAIN, ""
    while True:
        try:
            return await _discover(services, machine, daemon, tell)
        except Fault as fault:
            if fault.words != said:
                log.warning("agents are looked for again until it works: %s", fault)
            said = fault.words
        await asyncio.sleep(wait)
        wait = min(wait * 2, _AGAIN_MOST)


async def _discover(services: Services, machine: Machine, daemon: Daemon, tell: Callable[[Notice], None]) -> None:
    """The agents that there are come first: somebody may wait for them."""
    actor = MachineDaemon(machine.id)
    for check in await offer_agents(services, actor, machine.id):
        log.log(logging.INFO if check.state == "ok" else logging.WARNING, "%s: %s", check.name, check.words)
    await _first_agent(services, actor, machine)
    agents = await list_agents(services, actor)
    used = {agent.provider for agent in agents}
    # Whether an agent uses them or not.
    names = [name for name in await own_program_providers(machine) if name != GUIDE]
    looked = await asyncio.gather(*(_look(machine, daemon, AgentProgram(name), name in used) for name in names))
    here = [(each.program.provider, each.version) for each in looked if each.registration is not None]
    missing = [(each.program.provider, each.missing) for each in looked if each.registration is None]
    tell(FoundAgents(tuple(here), tuple(missing), tuple(agent.name for agent in agents)))


async def _look(machine: Machine, daemon: Daemon, program: AgentProgram, used: bool) -> Looked:
    """One that no agent uses is registered as well: the sessions that a person has with it can be adopted."""
    try:
        return await (machine.discover(program) if used else daemon.register(program))
    except Fault as fault:
        return Looked(program, None, missing=str(fault))


async def _first_agent(services: Services, actor: Actor, machine: Machine) -> None:
    """Somebody who has just installed Clew can wake one agent at once; it needs no account."""
    if await list_agents(services, actor):
        return
    # Another server on the same database may be as new as this one, and faster.
    with contextlib.suppress(NameTaken):
        await add_agent(services, actor, NewAgent(GUIDE, GUIDE, machine=machine.id))
        log.info("the agent %s is there", GUIDE)
