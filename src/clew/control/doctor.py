"""The doctor: checks everything that Clew needs, and says what to do about what fails. No failed check stops it."""

import asyncio
import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

from clew.control.actor import Actor
from clew.control.programs import found_words, look_for, own_program_providers, remedy_for
from clew.control.projects import look_for_projects
from clew.control.push.check import check_push
from clew.control.services import Services
from clew.kernel import AgentState, MachineId, RunState, WaitReason
from clew.ports.fault import Fault
from clew.protocol.machine import AgentProgram, Looked, Machine
from clew.protocol.views import CheckView, RuntimeView
from clew.store.engine.dialect import read_clock
from clew.store.queries import runtimes as queries
from clew.store.queries.agents import AgentRecord, agent_records
from clew.store.queries.runs import list_runs
from clew.store.queries.runtimes import runtime_records
from clew.store.schema.version import read_version

_WAIT = 60.0
_RUNS = 50
_BLOCK, _BLOCKS = 4096, 16


async def examine(services: Services, actor: Actor) -> tuple[CheckView, ...]:
    disk = await asyncio.to_thread(_disk, services.data)
    checks = [await _database(services), disk, _token(services), await _git()]
    push = await _push(services, actor)
    checks += [] if push is None else [push]
    if not services.machines:
        return (*checks, CheckView("machine", "missing", "No machine is connected.", "Start one with `clew up`."))
    checks += [CheckView("machine", "ok", f"Machine {each} is connected.") for each in services.machines]
    machines = {record.id: record.machine for record in await services.read(runtime_records)}
    looked = await _providers(services)
    agents = [
        _agent(services, actor, agent, None if agent.runtime is None else machines.get(agent.runtime))
        for agent in await services.read(agent_records)
        if agent.state is not AgentState.ARCHIVED
    ]
    letters = [_outbox(machine) for machine in services.machines.values()]
    checks += [each for each in await asyncio.gather(*letters) if each is not None]
    found = await asyncio.gather(*looked, *agents)
    # What the checks above say of the database and the machines is not said again.
    with contextlib.suppress(Fault):
        for machine in services.machines:
            await look_for_projects(services, actor, machine, set())
    if disk.state != "ok":
        # A full disk alone makes programs fail.
        found = [each if each.state == "ok" else replace(each, remedy=disk.remedy) for each in found]
    return (*checks, *found)


async def examine_programs(services: Services, actor: Actor) -> tuple[CheckView, ...]:
    """The agent programs that providers know, found on the connected machines or not. Each check has its provider's
    name."""
    return tuple(await asyncio.gather(*await _providers(services)))


async def list_providers(services: Services, actor: Actor) -> tuple[str, ...]:
    """The names of all providers on the connected machines, also of those that run any program."""
    return tuple(sorted({name for machine in services.machines.values() for name in await machine.providers()}))


async def list_machines(services: Services, actor: Actor) -> tuple[str, ...]:
    """The ids of the connected machines."""
    return tuple(sorted(services.machines))


async def data_directory(services: Services, actor: Actor) -> str:
    """Where the server keeps its own files, with the token among them."""
    return str(services.data)


async def _providers(services: Services) -> list[Awaitable[CheckView]]:
    return [
        _provider(machine, name)
        for machine in services.machines.values()
        for name in await own_program_providers(machine)
    ]


async def _database(services: Services) -> CheckView:
    try:
        version = await services.read(read_version)
        await services.write(read_clock)
    except Fault as fault:
        return CheckView("database", "failed", fault.words, fault.remedy)
    return CheckView("database", "ok", f"It answers; its schema is {version.schema}.")


async def _push(services: Services, actor: Actor) -> CheckView | None:
    try:
        return await check_push(services, actor)
    except Fault as fault:
        return CheckView("push", "failed", fault.words, fault.remedy)


def _disk(data: Path) -> CheckView:
    """Write a file, because quotas and limits count too. It has no name, so that it cannot stay behind."""
    try:
        with tempfile.TemporaryFile(dir=data, buffering=0) as file:
            for _ in range(_BLOCKS):
                file.write(bytes(_BLOCK))
            os.fsync(file.fileno())
    except OSError as fault:
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            return CheckView(
                "disk", "failed", f"The disk of {data} is full.", "Free some space, then run `clew doctor` again."
            )
        words = f"Nothing can be written in {data}: {fault.strerror}."
        return CheckView("disk", "failed", words, "Make it writable for you, then run `clew doctor` again.")
    return CheckView("disk", "ok", f"{data} can be written.")


def _token(services: Services) -> CheckView:
    token = services.data / "token"
    try:
        mode = stat.S_IMODE(token.stat().st_mode)
    except OSError as fault:
        words = f"{token} cannot be read: {fault.strerror}."
        return CheckView("token", "missing", words, "Restart the server with `clew up`; it makes one.")
    if mode & 0o077:
        return CheckView(
            "token", "failed", f"Others can read {token}.", f"Run `chmod 600 {token}`, then restart the server."
        )
    return CheckView("token", "ok", "Only you can read it.")


async def _git() -> CheckView:
    where = shutil.which("git")
    if where is None:
        return CheckView("git", "missing", "Git was not found.", "Install git: Clew makes worktrees with it.")
    try:
        program = await asyncio.create_subprocess_exec(
            where, "--version", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(10):
            said, _ = await program.communicate()
    except (OSError, TimeoutError) as fault:
        return CheckView("git", "failed", f"{where} cannot be run: {fault}.", "Install git again.")
    return CheckView("git", "ok", said.decode(errors="replace").strip())


async def _outbox(machine: Machine) -> CheckView | None:
    unread = await machine.unread_letters()
    if not unread:
        return None
    runs = ", ".join(sorted({each.run for each in unread}))
    return CheckView(
        "outbox",
        "warning",
        f"{len(unread)} reports of {runs} on machine {machine.id} cannot be read and are kept: {unread[0].why}.",
        "Start the version of Clew that wrote them once; it delivers them.",
    )


async def _provider(machine: Machine, name: str) -> CheckView:
    return await look_at_program(machine, name, AgentProgram(name), "Agents of other providers work without it.")


async def _agent(services: Services, actor: Actor, agent: AgentRecord, machine: MachineId | None) -> CheckView:
    name = f"agent {agent.name}"
    if agent.damage:
        return CheckView(name, "failed", f"Its stored {agent.damage} cannot be read.", _mend(agent))
    try:
        there = services.remaining_machine(machine)
    except Fault as fault:
        return CheckView(name, "failed", fault.words, fault.remedy)
    found = await look_at_program(
        there,
        name,
        agent.program,
        remedy_for(agent, await there.providers()),
        agent.name,
        _look_for(services, actor, there, agent),
    )
    if found.state == "ok" and agent.state is not AgentState.ACTIVE:
        return CheckView(name, "warning", f"It is {agent.state}.", f"Resume it with `clew agent resume {agent.name}`.")
    return await _held(services, actor, agent) or found if found.state == "ok" else found


async def _held(services: Services, actor: Actor, agent: AgentRecord) -> CheckView | None:
    """A warning with what the first of its runs that is held says itself; None if all wait for their turn alone."""
    queued = await services.read(lambda tx: list_runs(tx, None, agent.id, RunState.QUEUED, _RUNS, None))
    held = [run for run in reversed(queued) if run.held or run.code == WaitReason.MACHINE_AWAY.code]
    if not held:
        return None
    run = held[0]
    more = f" {len(held) - 1} more of its runs wait." if len(held) > 1 else ""
    words = f"{run.ref} in {run.thread} waits: {(run.words or '').rstrip('.')}.{more}"
    return CheckView(f"agent {agent.name}", "warning", words, f"See `clew why {run.ref}`.", run.not_before)


async def _look_for(services: Services, actor: Actor, machine: Machine, agent: AgentRecord) -> Looked:
    """Runs that waited for a program that is there now are started."""
    looked, runtime = await look_for(services, actor, machine, agent)
    if runtime is not None:
        await machine.offer(runtime, agent.program)
    return looked


def _mend(agent: AgentRecord) -> str:
    if agent.damage == "policy":
        return f"Set one with `clew policy set FILE --agent {agent.name}`, or restore a backup."
    return f"Give it its home, options and variables again with `clew agent edit {agent.name}`, or restore a backup."


async def look_at_program(
    machine: Machine,
    name: str,
    program: AgentProgram,
    remedy: str,
    agent: str = "",
    looking: Awaitable[Looked] | None = None,
) -> CheckView:
    """Look for a program and its login on that machine. `looking` is another way to look for it. `remedy` is added to
    what its provider says of a missing program. Without an agent, a key is passed on to one that is added."""
    try:
        async with asyncio.timeout(_WAIT):
            looked = await (looking or machine.discover(program))
    except TimeoutError:
        words = f"{program.provider} did not answer within {_WAIT:g} s."
        return CheckView(name, "failed", words, "Start it yourself in a terminal to see why.")
    except Fault as fault:
        return CheckView(name, "failed", fault.words, fault.remedy)
    if looked.registration is None:
        return CheckView(name, "missing", looked.missing or "It was not found.", remedy)
    found, account = found_words(looked), looked.registration.account
    known = await machine.logins(program)
    if account:
        return CheckView(name, "ok", f"{found}, as {account}.")
    if known is None:
        return CheckView(name, "ok", f"{found}{', with a key' if looked.registration.credential else ''}.")
    if known.used:
        return CheckView(name, "ok", f"{found}, with {known.used}.")
    giving = "" if agent else f"clew agent add AGENT --provider {program.provider} --env"
    return CheckView(name, "warning", f"{found}, no login known.", known.remedy(agent or "AGENT", giving))


async def list_runtimes(services: Services, actor: Actor) -> tuple[RuntimeView, ...]:
    """Each provider in each home that a machine registered, and whether the machine reported lately."""
    return await services.read(queries.list_runtimes)
