"""Opening a session: what is asked is looked up and held, the program started, and its landing heard."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from clew.kernel import Cursor, Landing, PermissionMode, choose_mode
from clew.ports.provider import OpenSpec, Settings
from clew.programs.faults import NotAble, ProgramEnded, Refused
from clew.programs.ledger import Ledger
from clew.programs.program import start
from clew.programs.secrets import Redactor
from clew.providers.claude import modes
from clew.providers.claude.asking import Asking
from clew.providers.claude.command import command_for, environment_of, program_of
from clew.providers.claude.faults import NoSuchSession
from clew.providers.claude.home import Home
from clew.providers.claude.landing import land
from clew.providers.claude.live import Live
from clew.providers.claude.opened import Opened
from clew.providers.claude.transcript import summary_of
from clew.providers.claude.way import CURSOR_VERSION, Way, look_up, must_be_there
from clew.providers.claude.wire import Listener, Wire


async def open_session(settings: Settings, ledger: Ledger | None, spec: OpenSpec, gone: Callable[[Live], None]) -> Live:
    environment = environment_of(settings, spec)
    expressible = modes.expressible(environment)
    mode = choose_mode(spec.mode, (), expressible).mode
    if mode is None:
        raise NotAble(f"Claude Code cannot express {spec.mode}.", "Choose another mode.")
    home = Home.of(environment)
    opening = _Opening(settings, ledger, spec, home, program_of(settings, environment), environment)
    way = await look_up(home, spec)
    try:
        live = Live(expressible, opening.again, gone)
        live.landed(await opening.opened(live, way, mode))
    except BaseException:
        way.give_up()
        raise
    return live


@dataclass(frozen=True)
class _Opening:
    settings: Settings
    ledger: Ledger | None
    spec: OpenSpec
    home: Home
    program: tuple[str, ...]
    environment: Mapping[str, str]

    async def opened(self, listener: Listener, way: Way, mode: PermissionMode) -> Opened:
        """Start the program, and end it when it does not land where it was to."""
        deadlines, redactor = self.settings.deadlines, Redactor(self.environment)
        command = command_for(self.program, self.spec.model, mode, way)
        running = await start(command, Path(self.spec.directory.path), self.environment, self.ledger)
        wire = Wire(running, listener, redactor)
        try:
            landing = await self._landed(wire, way, mode)
        except BaseException:
            await running.end(deadlines.close)
            await wire.close()
            raise
        assert landing.mode is not None, "it lands with a mode or not at all"
        return Opened(
            program=running,
            wire=wire,
            home=self.home,
            redactor=redactor,
            deadlines=deadlines,
            landing=landing,
            native_id=way.native_id,
            mode=landing.mode,
            next_mode=landing.mode,
            unbound=mode is PermissionMode.FULL,
            model=self.spec.model,
            asking=Asking(redactor),
            way=way,
            cursor=None if way.hold is None else Cursor(CURSOR_VERSION, way.native_id),
            transcript=None if way.hold is None else way.source,
        )

    async def _landed(self, wire: Wire, way: Way, mode: PermissionMode) -> Landing:
        try:
            landing = await land(wire, self.home, self.spec, mode, way.turns, self.settings.deadlines)
        except ProgramEnded as fault:
            if wire.turned_away:
                raise NoSuchSession(f"Claude Code finds no session in {way.source}.", "Begin afresh.") from fault
            raise
        if landing.native_id != way.native_id:
            words = f"Session {way.native_id} was to be opened; Claude Code is in {landing.native_id}."
            raise Refused(words, "It was ended before any prompt went out.")
        return landing

    async def again(self, listener: Listener, before: Opened, model: str | None) -> Opened:
        """The same session in another process, in its next mode. Its hold is kept all the while."""
        await asyncio.to_thread(must_be_there, self.spec.directory)
        opening = replace(self, spec=replace(self.spec, model=model))
        way = before.way
        if before.transcript is not None and before.cursor is not None:
            summary = await asyncio.to_thread(summary_of, before.transcript)
            way = Way(before.native_id, before.transcript, summary.turns, way.hold, claim=way.claim)
        return await opening.opened(listener, way, before.next_mode)
