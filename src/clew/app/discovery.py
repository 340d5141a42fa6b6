"""Discovery of the agent programs installed on this machine: by a starting server, or by `clew doctor` without one."""

import asyncio
import contextlib
import logging
import socket
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from clew.app.logs import FoundAgents, Notice
from clew.control.actor import Actor, MachineDaemon
from clew.control.agents import add_agent, list_agents
from clew.control.doctor import look_at_program
from clew.control.programs import GUIDE, look_again, offer_agents, own_program_providers
from clew.control.projects import look_for_projects
from clew.control.services import Services
from clew.daemon import Daemon, LocalMachine
from clew.kernel import MachineId
from clew.ports.fault import Fault
from clew.ports.plugins import find_providers
from clew.protocol.machine import AgentProgram, Looked, Machine
from clew.protocol.requests import NewAgent
from clew.protocol.views import CheckView
from clew.store.faults import NameTaken
from clew.workspaces import GitWorkspaces

log = logging.getLogger("clew.up")

_RETRY, _RETRY_MAX = 1.0, 60.0
"""Seconds before the first retry, and the most that the doubling delay reaches."""


LOOK_AGAIN = 10.0
"""Seconds between two looks for programs that could not be started."""


async def discover(services: Services, machine: Machine, daemon: Daemon, notify: Callable[[Notice], None]) -> None:
    """Runs once the server answers, because some programs are slow to start. Then looks now and then for programs that
    could not be started, and for directories of projects that were gone."""
    await _until_discovered(services, machine, daemon, notify)
    actor, logged = MachineDaemon(machine.id), ""
    there = set[str]()
    while True:
        await asyncio.sleep(LOOK_AGAIN)
        try:
            for check in await look_again(services, actor, machine.id):
                log.info("%s can be started again: %s", check.name, check.words)
            for name in await look_for_projects(services, actor, machine.id, there):
                log.info("the directory of project %s is there again", name)
            logged = ""
        except Fault as fault:
            if fault.words != logged:
                log.warning("looking for programs and projects failed, retrying: %s", fault)
            logged = fault.words


async def _until_discovered(
    services: Services, machine: Machine, daemon: Daemon, notify: Callable[[Notice], None]
) -> None:
    """Retries until it has worked, and logs each reason once."""
    delay, logged = _RETRY, ""
    while True:
        try:
            return await _discover(services, machine, daemon, notify)
        except Fault as fault:
            if fault.words != logged:
                log.warning("discovering agents failed, retrying: %s", fault)
            logged = fault.words
        await asyncio.sleep(delay)
        delay = min(delay * 2, _RETRY_MAX)


async def _discover(services: Services, machine: Machine, daemon: Daemon, notify: Callable[[Notice], None]) -> None:
    """Configured agents first: wakes may be waiting for them."""
    actor = MachineDaemon(machine.id)
    for check in await offer_agents(services, actor, machine.id):
        log.log(logging.INFO if check.state == "ok" else logging.WARNING, "%s: %s", check.name, check.words)
    await _add_guide(services, actor, machine)
    agents = await list_agents(services, actor)
    used = {agent.provider for agent in agents}
    names = [name for name in await own_program_providers(machine) if name != GUIDE]
    looked = await asyncio.gather(*(_find(machine, daemon, AgentProgram(name), name in used) for name in names))
    installed = [(each.program.provider, each.version) for each in looked if each.registration is not None]
    notify(FoundAgents(tuple(installed), tuple(agent.name for agent in agents)))


async def _find(machine: Machine, daemon: Daemon, program: AgentProgram, used: bool) -> Looked:
    """A program that no agent uses is registered as well, so that `clew adopt` can take sessions you have with it."""
    try:
        return await (machine.discover(program) if used else daemon.register(program))
    except Fault as fault:
        return Looked(program, None, missing=str(fault))


async def _add_guide(services: Services, actor: Actor, machine: Machine) -> None:
    """Gives a new installation one agent that works without an account."""
    if await list_agents(services, actor):
        return
    # Another new server on the same database may have added it first.
    with contextlib.suppress(NameTaken):
        await add_agent(services, actor, NewAgent(GUIDE, GUIDE, machine=machine.id))
        log.info("added the agent %s", GUIDE)


def inspect_machine() -> Sequence[CheckView]:
    """Checks every provider's program without a server. Uses a temporary directory and stores nothing."""
    with tempfile.TemporaryDirectory(prefix="clew-doctor-") as scratch:
        return asyncio.run(_inspect(Path(scratch)))


async def _inspect(scratch: Path) -> Sequence[CheckView]:
    workspaces = GitWorkspaces(scratch / "workspaces", scratch / "homes")
    machine = LocalMachine(
        MachineId("nobody"),
        socket.gethostname(),
        find_providers(),
        workspaces,
        scratch / "state",
        scratch / "workspaces",
    )
    names = await own_program_providers(machine)
    found = await asyncio.gather(*(look_at_program(machine, name, AgentProgram(name), "") for name in names))
    # There is no server: this is the PATH of who asks.
    return [replace(each, words=each.words.replace("PATH of the server", "PATH")) for each in found]
