"""The doctor: what is there, what works, and what to do about the rest. Nothing it looks at stops it."""

import asyncio
import errno
import os
import shutil
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Connection

from clew.control.programs import read_settings, with_own_program
from clew.control.services import Services
from clew.kernel import Heard, Patience, Presence, presence
from clew.ports.fault import Fault
from clew.protocol.machine import AgentProgram, Machine
from clew.protocol.views import CheckView, RuntimeView
from clew.store.engine.clock import read_clock
from clew.store.engine.statement import Row
from clew.store.operations.runtimes import accounts_there
from clew.store.queries import agents as reading
from clew.store.queries.agents import list_agents
from clew.store.schema.version import read_version

_WAIT = 60.0
_BLOCK, _BLOCKS = 4096, 16


async def examine(services: Services) -> tuple[CheckView, ...]:
    disk = await asyncio.to_thread(_disk, services.data)
    checks = [await _database(services), disk, _token(services), await _git()]
    if services.machine is None:
        return (*checks, CheckView("machine", "missing", "No machine is at hand.", "Start one with `clew up`."))
    checks.append(CheckView("machine", "ok", f"Machine {services.machine.id} serves."))
    machine = services.machine
    looked = [_provider(machine, name) for name in await with_own_program(machine)]
    agents = [_agent(machine, row) for row in await services.read(list_agents)]
    found = await asyncio.gather(*looked, *agents)
    if disk.state != "ok":
        # Programs may be missing for want of room alone.
        found = [each if each.state == "ok" else replace(each, remedy=disk.remedy) for each in found]
    return (*checks, *found)


async def _database(services: Services) -> CheckView:
    try:
        version = await services.read(read_version)
        await services.write(read_clock)
    except Fault as fault:
        return CheckView("database", "failed", fault.words, fault.remedy)
    return CheckView("database", "ok", f"It answers; its schema is {version.schema}.")


def _disk(data: Path) -> CheckView:
    """Tried, not computed: quotas and limits count as well. The file has no name, so that nothing of it can stay."""
    try:
        with tempfile.TemporaryFile(dir=data, buffering=0) as file:
            for _ in range(_BLOCKS):
                file.write(bytes(_BLOCK))
            os.fsync(file.fileno())
    except OSError as fault:
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            return CheckView("disk", "failed", f"The disk of {data} is full.", "Free some space, then look again.")
        words = f"Nothing can be written in {data}: {fault.strerror}."
        return CheckView("disk", "failed", words, "Make it writable for you, then look again.")
    return CheckView("disk", "ok", f"{data} can be written.")


def _token(services: Services) -> CheckView:
    token = services.data / "token"
    try:
        mode = stat.S_IMODE(token.stat().st_mode)
    except OSError as fault:
        words = f"{token} cannot be read: {fault.strerror}."
        return CheckView("token", "missing", words, "Start the server anew with `clew up`; it makes one.")
    if mode & 0o077:
        return CheckView("token", "failed", f"Others can read {token}.", f"Run `chmod 600 {token}`, then start anew.")
    return CheckView("token", "ok", "Only you can read it.")


async def _git() -> CheckView:
    where = shutil.which("git")
    if where is None:
        return CheckView("git", "missing", "Git was not found.", "Install git: worktrees are made with it.")
    try:
        program = await asyncio.create_subprocess_exec(
            where, "--version", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(10):
            said, _ = await program.communicate()
    except (OSError, TimeoutError) as fault:
        return CheckView("git", "failed", f"{where} cannot be run: {fault}.", "Install git anew.")
    return CheckView("git", "ok", said.decode(errors="replace").strip())


async def _provider(machine: Machine, name: str) -> CheckView:
    return await _look(machine, name, AgentProgram(name), "Agents of other providers work without it.")


async def _agent(machine: Machine, row: Row) -> CheckView:
    program = read_settings(row["settings"], row["provider"])
    found = await _look(machine, f"agent {row['name']}", program, "Install it again, or move it: `clew agent edit`.")
    if found.state == "ok" and row["state"] != "active":
        return CheckView(
            found.name, "warning", f"It is {row['state']}.", f"Let it work again: `clew agent resume {row['name']}`."
        )
    return found


async def _look(machine: Machine, name: str, program: AgentProgram, remedy: str) -> CheckView:
    try:
        async with asyncio.timeout(_WAIT):
            looked = await machine.discover(program)
    except TimeoutError:
        return CheckView(name, "failed", f"{program.provider} did not answer within {_WAIT:g} s.", remedy)
    except Fault as fault:
        return CheckView(name, "failed", fault.words, fault.remedy)
    if looked.registration is None:
        return CheckView(name, "missing", looked.missing or "It was not found.", remedy)
    account, key = looked.registration.account, looked.registration.credential
    as_whom = f", as {account}" if account else ", with a key" if key else ""
    return CheckView(name, "ok", f"{program.provider} {looked.version}".strip() + f"{as_whom}.")


async def list_runtimes(services: Services) -> tuple[RuntimeView, ...]:
    def look(connection: Connection) -> tuple[RuntimeView, ...]:
        going = reading.count_going(connection, "runtime_id")
        accounts = accounts_there(connection)
        return tuple(
            _show(row, going.get(row["id"], (0, 0)), accounts.get(row["id"], ()))
            for row in reading.list_runtimes(connection)
        )

    return await services.read(look)


def _show(row: Row, going: tuple[int, int], accounts: tuple[str, ...]) -> RuntimeView:
    here = presence(Heard(row["seen_at"] or 0.0), row["now"], Patience())
    return RuntimeView(
        id=row["id"],
        machine=row["machine_name"],
        provider=row["provider"],
        home=row["home"],
        accounts=accounts,
        online=here is Presence.ONLINE,
        seen_at=row["seen_at"],
        live=going[0],
        most=row["max_live"],
        waiting=going[1],
    )
