"""An opened session: what is known of it, from its landing to its end."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from clew.kernel import Cursor, Landing, NativeId, PermissionMode
from clew.ports.events import SessionNamed
from clew.ports.provider import Deadlines
from clew.programs.program import Program
from clew.programs.secrets import Redactor
from clew.providers.claude import holding, modes, transcript
from clew.providers.claude.apart import apart
from clew.providers.claude.asking import Asking
from clew.providers.claude.faults import Busy, HomeFailed
from clew.providers.claude.holding import Hold
from clew.providers.claude.home import Home, real
from clew.providers.claude.spending import Spent
from clew.providers.claude.telling import Telling
from clew.providers.claude.way import CURSOR_VERSION, Way
from clew.providers.claude.wire import Message, Wire

_WRITING = 5.0
"""Seconds. The program writes its transcript a little after it has told the same."""


@dataclass
class Opened:
    """`mode` is in force; `next_mode` is what the next turn gets. `unbound` when its process could do all it likes."""

    program: Program
    wire: Wire
    home: Home
    redactor: Redactor
    deadlines: Deadlines
    landing: Landing
    native_id: NativeId
    mode: PermissionMode
    next_mode: PermissionMode
    unbound: bool
    model: str | None
    asking: Asking
    way: Way
    cursor: Cursor | None = None
    transcript: Path | None = None
    spent: Spent = field(default_factory=Spent)
    applying: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def named(self) -> SessionNamed:
        return SessionNamed(self.native_id, self.cursor is not None)

    def telling(self) -> Telling:
        return Telling(self.redactor, self.home.tasks(self.native_id))

    @property
    def needs_another(self) -> bool:
        """Whether the next mode takes another process: what may do all and what may not is settled as it starts."""
        return self.next_mode is not self.mode and self.unbound is not (self.next_mode is PermissionMode.FULL)

    async def apply_mode(self) -> PermissionMode:
        """One at a time: what is in force is what was applied last. What takes another process is not applied here."""
        async with self.applying:
            if self.next_mode is not self.mode and not self.needs_another:
                wanted = self.next_mode
                self.mode = await modes.apply(self.wire, wanted, self.deadlines.answer)
                if self.next_mode is wanted:
                    self.next_mode = self.mode
            return self.mode

    def count(self, result: Message) -> None:
        _, self.spent = Spent.told(result, self.spent)

    def wrong(self, native_id: object, place: object, word: object) -> str | None:
        """In what the program is not where it said it was, by what it says now."""
        landing, mode = self.landing, modes.meant(word)
        if native_id != self.native_id:
            return f"Claude Code is in session {native_id}, not in {self.native_id}."
        if place is not None and landing.directory is not None and str(place) != real(landing.directory):
            return f"Claude Code works in {place}, not in {landing.directory}."
        if mode is None or mode > self.mode:
            return f"Claude Code has the mode {word}, which is more than {self.mode}."
        return None

    @property
    def is_stored(self) -> bool:
        """False once the transcript that it told of is gone."""
        try:
            return self.transcript is None or self.transcript.exists()
        except OSError:
            return False

    def look_for_transcript(self) -> None:
        """For a program that was kept from telling where it is."""
        if self.transcript is None:
            self.transcript = next(iter(self.home.copies(self.native_id)), None)

    async def written(self, uuid: str) -> bool:
        """Wait until that line is in the transcript, for as long as that usually takes."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WRITING):
                while not self._has(uuid):
                    await asyncio.sleep(0.02)
                return True
        return False

    async def keeps(self, id_: str, ended: Callable[[], bool]) -> bool:
        """Whether the transcript has words that the program told back as part of its turn. It writes them within a
        tenth of a second; what it has not written when it ends, it has lost."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WRITING):
                while not self._has(id_):
                    if ended():
                        return self._has(id_)
                    await asyncio.sleep(0.02)
        # One that runs and cannot write has them all the same.
        return True

    def _has(self, uuid: str) -> bool:
        return self.transcript is not None and transcript.holds(self.transcript, uuid)

    async def made_durable(self) -> SessionNamed | None:
        """From now on another process could find the session; none of ours may take it."""
        path = self.transcript
        if self.cursor is not None or path is None:
            return None
        # Nobody can have a session that has only just come to be; and if, the turn that made it still counts.
        with contextlib.suppress(Busy, HomeFailed):
            self.way.hold = await apart(lambda: holding.lock(path), Hold.release)
        self.cursor, self.way.placed = Cursor(CURSOR_VERSION, self.native_id), None
        return self.named

    async def end(self) -> None:
        """End the process with all it started, and let go of the session."""
        try:
            await self.program.end(self.deadlines.close)
            await self.wire.close()
        finally:
            self.way.give_up()
