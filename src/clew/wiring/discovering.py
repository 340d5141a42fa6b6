"""What is installed on this machine, looked for once the server answers: some programs take their time."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from clew.control.agents import add_agent, list_agents
from clew.control.desk import Desk
from clew.control.programs import read_settings
from clew.daemon import Daemon
from clew.ports.fault import Fault
from clew.server.datadir import DataDirectory
from clew.store.reading.agents import list_agents as read_agents
from clew.wire.asks import NewAgent
from clew.wire.machine import AgentProgram, Looked
from clew.wiring.notices import FoundAgents, Notice

log = logging.getLogger("clew.up")

USUAL = ("claude", "codex", "opencode")
"""Programs that are looked for whether an agent uses them or not."""

GUIDE = "guide"


async def discover(desk: Desk, daemon: Daemon, data: DataDirectory, tell: Callable[[Notice], None]) -> None:
    """The agents that there are come first: somebody may wait for them."""
    programs = await _programs(desk)
    await _register(daemon, programs)
    await _first_agent(desk, data)
    usual = [AgentProgram(name) for name in USUAL if name not in {each.provider for each in programs}]
    looked = await _register(daemon, [*usual])
    here = [(each.program.provider, each.version) for each in looked if each.registration is not None]
    missing = [(each.program.provider, each.missing) for each in looked if each.registration is None]
    agents = [agent.name for agent in await list_agents(desk)]
    tell(FoundAgents(tuple(here), tuple(missing), tuple(agents)))


async def _programs(desk: Desk) -> list[AgentProgram]:
    rows = await desk.read(read_agents)
    found: list[AgentProgram] = []
    for row in rows:
        program = read_settings(row["settings"], row["provider"])
        if row["state"] != "archived" and program not in found:
            found.append(program)
    return found


async def _register(daemon: Daemon, programs: Sequence[AgentProgram]) -> list[Looked]:
    return list(await asyncio.gather(*(_look(daemon, program) for program in programs)))


async def _look(daemon: Daemon, program: AgentProgram) -> Looked:
    try:
        return await daemon.register(program)
    except Fault as fault:
        log.warning("%s: %s", program.provider, fault)
        return Looked(program, None, missing=str(fault))


async def _first_agent(desk: Desk, data: DataDirectory) -> None:
    """Somebody who has just installed Clew can wake one agent at once; it needs no account."""
    if await list_agents(desk):
        return
    home = {"GUIDE_HOME": str(data.root / GUIDE)}
    await add_agent(desk, NewAgent(GUIDE, GUIDE, home=home))
    log.info("the agent %s is there", GUIDE)
