"""The installed Codex: its native program, its version and its models.

The native program is started without its wrapper: a wrapper that is killed leaves it running with the session's lock.
"""

import asyncio
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from clew.programs.faults import CannotStart, NotUnderstood, TooSlow
from clew.programs.program import Program, start
from clew.providers.codex.server import AppServer, Launch

_SCRIPT = b"#!"
_MACHINES = {"x86_64": ("x64", "x86_64"), "amd64": ("x64", "x86_64"), "aarch64": ("arm64", "aarch64")}
_MACHINES["arm64"] = _MACHINES["aarch64"]
_VERSION = re.compile(rb"codex[\w-]* (\d[\w.+-]*)")
_REMEDY = "Install it with `npm install -g @openai/codex`, or name the program in the settings."


def program(given: tuple[str, ...]) -> tuple[str, ...]:
    """The command line of the native program, searched for when none is given. An unknown wrapper is used as it is."""
    if not given:
        found = shutil.which("codex")
        if found is None:
            raise CannotStart("The program codex is not on the search path.", _REMEDY)
        given = (found,)
    whole = shutil.which(given[0])
    if whole is None:
        raise CannotStart(f"There is no program {given[0]}.", _REMEDY)
    script = _script((whole, *given[1:]))
    native = _native_beside(script) if script is not None else None
    return (str(native),) if native is not None else (whole, *given[1:])


def _script(command: tuple[str, ...]) -> Path | None:
    """The wrapper's script: the program itself, or the script that node runs."""
    file = Path(command[0])
    if len(command) == 1:
        with file.open("rb") as head:
            return file.resolve() if head.read(2) == _SCRIPT else None
    wrapped = Path(command[1])
    return wrapped.resolve() if len(command) == 2 and wrapped.name.startswith("codex") and wrapped.is_file() else None


def _native_beside(script: Path) -> Path | None:
    return next((file for file in _candidates(script) if file.is_file()), None)


def _candidates(script: Path) -> Iterator[Path]:
    name, triple = _MACHINES.get(platform.machine().lower(), ("", ""))
    system = "darwin" if sys.platform == "darwin" else "linux"
    package = script.parent.parent
    for home in (package / "node_modules" / "@openai", package.parent):
        for vendor in sorted(home.glob(f"codex-{system}-{name}/vendor/{triple}-*")):
            yield vendor / "bin" / "codex"
    for vendor in sorted(package.glob(f"vendor/{triple}-*{system}*")):
        yield vendor / "bin" / "codex"


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
    listed = (await server.call("model/list", {})).get("data") or ()
    return tuple(str(each["model"]) for each in listed if isinstance(each, dict) and "model" in each)
