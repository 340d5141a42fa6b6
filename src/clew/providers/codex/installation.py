"""The installed Codex: its native program, its version and its models.

The native program is started without its wrapper: a wrapper that is killed leaves it running with the session's lock.
"""

import platform
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from clew.programs.faults import NoProgram, NotUnderstood
from clew.programs.program import Launch, find_program
from clew.providers.codex.server import AppServer

_SCRIPT = b"#!"
_MACHINES = {"x86_64": ("x64", "x86_64"), "amd64": ("x64", "x86_64"), "aarch64": ("arm64", "aarch64")}
_MACHINES["arm64"] = _MACHINES["aarch64"]
_VERSION = re.compile(rb"codex[\w-]* (\d[\w.+-]*)")
_REMEDY = "Install it with `npm install -g @openai/codex`, or name the program: `clew agent edit NAME -- PROGRAM`."


def program(given: tuple[str, ...]) -> tuple[str, ...]:
    """The command line of the native program, searched for when none is given. An unknown wrapper is used as it is."""
    given = find_program(given, "codex", None, _REMEDY)
    whole = shutil.which(given[0])
    if whole is None:
        raise NoProgram(f"There is no program {given[0]}.", _REMEDY)
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
    output = await launch.run("--version", seconds=launch.deadlines.start)
    found = [found[1].decode() for line in output.lines if (found := _VERSION.search(line)) is not None]
    if not found:
        raise NotUnderstood(f"{launch.command[0]} is not Codex, or does not say so.", "Name the right program.")
    return found[-1]


async def models(server: AppServer) -> tuple[str, ...]:
    listed = (await server.call("model/list", {})).get("data") or ()
    return tuple(str(each["model"]) for each in listed if isinstance(each, dict) and "model" in each)
