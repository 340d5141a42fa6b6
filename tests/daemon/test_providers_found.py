"""Packages of providers come and go while a daemon runs."""

import asyncio
from pathlib import Path

from clew.daemon import LocalMachine
from clew.kernel import MachineId
from clew.ports.plugins import BrokenPlugin, Providers
from clew.protocol.machine import AgentProgram
from clew.providers import guide
from clew.workspaces import GitWorkspaces


def test_a_provider_that_is_removed_or_breaks_is_no_longer_found_and_comes_back(tmp_path: Path) -> None:
    there = Providers("provider", "open", {"guide": guide.make}, {})
    gone = Providers("provider", "open", {}, {})
    why = BrokenPlugin("provider", "It cannot be imported.", "Install it again.")
    found = iter([there, gone, Providers("provider", "open", {}, {"guide": why}), there])
    program = AgentProgram("guide", home={"GUIDE_HOME": str(tmp_path / "guide")})
    machine = LocalMachine(
        MachineId("here"),
        "here",
        there,
        GitWorkspaces(tmp_path / "workspaces"),
        tmp_path / "state",
        tmp_path / "workspaces",
        find=lambda: next(found),
    )

    async def scene() -> list[str]:
        looked = [await machine.discover(program) for _ in range(4)]
        await machine.close()
        return [each.missing for each in looked]

    assert asyncio.run(scene()) == [
        "",
        "There is no provider 'guide'. Installed: none.",
        "It cannot be imported. Install it again.",
        "",
    ]
