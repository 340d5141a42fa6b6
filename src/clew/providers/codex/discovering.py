"""What is installed, told by the program itself."""

import asyncio
import re
from pathlib import Path

from clew.programs.faults import NotUnderstood, TooSlow
from clew.programs.program import Program, start
from clew.providers.codex.server import AppServer, Launch

_VERSION = re.compile(rb"codex[\w-]* (\d[\w.+-]*)")


async def version(launch: Launch) -> str:
    program = await start((*launch.command, "--version"), Path("/"), launch.environment, launch.ledger)
    try:
        async with asyncio.timeout(launch.deadlines.start):
            found = await _found(program)
    except TimeoutError as fault:
        raise TooSlow(f"{launch.command[0]} --version did not end.", "Look at the program.") from fault
    finally:
        await asyncio.shield(program.end(launch.deadlines.close, gently=False))
    if found is None:
        raise NotUnderstood(f"{launch.command[0]} is not Codex, or does not say so.", "Name the right program.")
    return found


async def _found(program: Program) -> str | None:
    version = None
    async for line in program.lines():
        found = _VERSION.search(line)
        version = found[1].decode() if found is not None else version
    return version


async def models(server: AppServer) -> tuple[str, ...]:
    told = (await server.call("model/list", {})).get("data") or ()
    return tuple(str(each["model"]) for each in told if isinstance(each, dict) and "model" in each)
