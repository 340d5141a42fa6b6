"""What is installed on this machine, looked at by a command while no server is there to ask."""

import asyncio
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

from clew.control.programs import own_program_providers
from clew.daemon import LocalMachine
from clew.kernel import MachineId
from clew.ports.plugins import find_providers
from clew.protocol.machine import AgentProgram, Looked
from clew.protocol.views import CheckView
from clew.workspaces import GitWorkspaces


def look_around() -> Sequence[CheckView]:
    """Nothing is kept: it is looked at from a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="clew-doctor-") as kept:
        return asyncio.run(_look(Path(kept)))


async def _look(kept: Path) -> Sequence[CheckView]:
    places = GitWorkspaces(kept / "workspaces", kept / "homes")
    machine = LocalMachine(
        MachineId("nobody"), socket.gethostname(), find_providers(), places, kept / "state", kept / "workspaces"
    )
    looked = await asyncio.gather(
        *(machine.discover(AgentProgram(name)) for name in await own_program_providers(machine))
    )
    return [_check(each) for each in looked]


def _check(looked: Looked) -> CheckView:
    name = looked.program.provider
    if looked.registration is None:
        return CheckView(name, "missing", looked.missing)
    return CheckView(name, "ok", f"{looked.version or 'A version that it does not say'} is installed.")
