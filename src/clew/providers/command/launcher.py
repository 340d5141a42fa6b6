"""Starting the program: for a turn, for its version, or to ask whether it has a session."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from clew.kernel import NativeId, Probe, ProbeKind
from clew.ports.provider import Settings
from clew.programs.faults import ProgramFault, Refused
from clew.programs.program import Program, environment_for, start
from clew.programs.secrets import Redactor
from clew.programs.state import Ledger, ProviderState
from clew.programs.tasks import closed_provider
from clew.providers.command.recipe import SESSION, Arguments, Recipe, filled


class Running:
    """The programs that run now, and their ledger. The ledger's first use ends the processes that a crash has left."""

    def __init__(self, state: Path | None) -> None:
        self._state = ProviderState(state)
        self._programs: set[Program] = set()
        self._closed = False

    async def ledger(self) -> Ledger | None:
        return await self._state.ledger()

    async def start(self, command: Arguments, directory: Path, environment: Mapping[str, str], close: float) -> Program:
        self.must_be_open()
        program = await start(command, directory, environment, await self.ledger())
        try:
            # The provider may have been closed meanwhile; its `close` does not know this program.
            self.must_be_open()
        except Refused:
            await program.end(close)
            raise
        self._programs.add(program)
        return program

    async def end(self, program: Program, close: float) -> None:
        try:
            await program.end(close)
        finally:
            self._programs.discard(program)

    async def close(self, close: float) -> None:
        self._closed = True
        await asyncio.gather(*(self.end(program, close) for program in list(self._programs)))

    def must_be_open(self) -> None:
        if self._closed:
            raise closed_provider()


@dataclass(frozen=True, slots=True)
class Launcher:
    settings: Settings
    recipe: Recipe
    running: Running
    own: Mapping[str, str] = field(default_factory=dict, repr=False)

    def with_environment(self, own: Mapping[str, str]) -> "Launcher":
        return replace(self, own=own)

    @property
    def environment(self) -> dict[str, str]:
        return environment_for(self.settings.home, self.settings.environment, self.own)

    @property
    def redactor(self) -> Redactor:
        return Redactor(self.environment)

    async def launch(self, arguments: Arguments, directory: Path) -> Program:
        command = (*self.settings.program, *arguments)
        return await self.running.start(command, directory, self.environment, self.settings.deadlines.close)

    async def end(self, program: Program) -> None:
        await self.running.end(program, self.settings.deadlines.close)

    async def run(self, arguments: Arguments, directory: Path) -> tuple[int, str]:
        """Run it to its end. Returns its status, and its first line or else its last words."""
        program = await self.launch(arguments, directory)
        try:
            output = await program.output(self.settings.deadlines.answer, self.settings.deadlines.close)
        finally:
            await self.end(program)
        status = -1 if output.status is None else output.status
        return status, self.redactor.text(_first(output.lines) or output.words)

    async def probe(self, id_: NativeId, directory: Path) -> Probe:
        """Start the program with the arguments of the option `probe`. It answers by its exit status."""
        recipe = self.recipe
        if recipe.probe is None:
            return Probe(ProbeKind.UNREACHABLE, detail="the option `probe` is not set")
        try:
            status, words = await self.run(filled(recipe.probe, {SESSION: id_}), directory)
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


def _first(lines: list[bytes]) -> str:
    return next((text for line in lines if (text := line.decode(errors="replace").strip())), "")
