"""Asking the program for a session: started with the arguments for that, it answers by its exit status."""

from dataclasses import dataclass
from pathlib import Path

from clew.kernel import NativeId, Probe, ProbeKind
from clew.programs.faults import ProgramFault
from clew.providers.command.launching import Launcher
from clew.providers.command.recipe import SESSION, filled


@dataclass(frozen=True, slots=True)
class Asker:
    launcher: Launcher

    async def ask(self, id_: NativeId, directory: Path) -> Probe:
        recipe = self.launcher.recipe
        if recipe.probe is None:
            return Probe(ProbeKind.UNREACHABLE, detail="it is not said how the program is asked for a session")
        try:
            status, words = await self.launcher.run(filled(recipe.probe, {SESSION: id_}), directory)
        except ProgramFault as fault:
            return Probe(ProbeKind.UNREACHABLE, detail=str(fault))
        if status == 0:
            return Probe(ProbeKind.FOUND_HERE, detail="the program says that it is there")
        detail = f"the program ended with status {status}: {words or 'it said nothing'}"
        if status in recipe.missing:
            return Probe(ProbeKind.MISSING, signal=signal(status), detail=detail)
        return Probe(ProbeKind.UNREACHABLE, detail=detail)


def signal(status: int) -> str:
    return f"status-{status}"
