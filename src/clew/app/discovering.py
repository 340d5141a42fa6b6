"""What is installed on this machine, looked for once the server answers: some programs take their time."""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from clew.app.notices import FoundAgents, Notice
from clew.control.agents import add_agent, list_agents
from clew.control.programs import GUIDE, offer_agents, with_own_program
from clew.control.services import Services
from clew.daemon import Daemon
from clew.ports.fault import Fault
from clew.protocol.machine import AgentProgram, Looked
from clew.protocol.requests import NewAgent
from clew.store.faults import NameTaken

log = logging.getLogger("clew.up")

_AGAIN, _AGAIN_MOST = 1.0, 60.0
"""Seconds until it is tried again: at first, and when it was in vain for long."""


async def discover(services: Services, daemon: Daemon, tell: Callable[[Notice], None]) -> None:
    """Until it has worked. What it waits for is said once."""
    wait, said = _AGAIN, ""
    while True:
        try:
            return await _discover(services, daemon, tell)
        except Fault as fault:
            if fault.words != said:
                log.warning("agents are looked for again until it works: %s", fault)
            said = fault.words
        await asyncio.sleep(wait)
        wait = min(wait * 2, _AGAIN_MOST)


async def _discover(services: Services, daemon: Daemon, tell: Callable[[Notice], None]) -> None:
    """The agents that there are come first: somebody may wait for them."""
    for check in await offer_agents(services):
        log.log(logging.INFO if check.state == "ok" else logging.WARNING, "%s: %s", check.name, check.words)
    await _first_agent(services)
    agents = await list_agents(services)
    used = {agent.provider for agent in agents}
    # Whether an agent uses them or not.
    names = [name for name in await with_own_program(services.here()) if name != GUIDE]
    looked = await asyncio.gather(*(_look(services, daemon, AgentProgram(name), name in used) for name in names))
    here = [(each.program.provider, each.version) for each in looked if each.registration is not None]
    missing = [(each.program.provider, each.missing) for each in looked if each.registration is None]
    tell(FoundAgents(tuple(here), tuple(missing), tuple(agent.name for agent in agents)))


async def _look(services: Services, daemon: Daemon, program: AgentProgram, used: bool) -> Looked:
    """One that no agent uses is registered as well: the sessions that a person has with it can be adopted."""
    try:
        return await (services.here().discover(program) if used else daemon.register(program))
    except Fault as fault:
        return Looked(program, None, missing=str(fault))


async def _first_agent(services: Services) -> None:
    """Somebody who has just installed Clew can wake one agent at once; it needs no account."""
    if await list_agents(services):
        return
    # Another server on the same database may be as new as this one, and faster.
    with contextlib.suppress(NameTaken):
        await add_agent(services, NewAgent(GUIDE, GUIDE))
        log.info("the agent %s is there", GUIDE)
