"""Whether a session took a prompt: its database is asked, once it is certain that nobody writes there any more."""

import asyncio
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import Attestation, Evidence, Sent
from clew.programs.faults import ProgramEnded, ProgramFault, TooSlow
from clew.programs.locks import is_locked
from clew.programs.secrets import Redactor
from clew.providers.opencode import keeping
from clew.providers.opencode.api import Api
from clew.providers.opencode.hearing import attestation
from clew.providers.opencode.keeping import Kept
from clew.providers.opencode.naming import message_id
from clew.providers.opencode.server import Server

_ANSWER = 2.0
"""Seconds for a server to say what is going on. One that does not is asked again later."""


@dataclass(frozen=True, slots=True)
class Witness:
    store: Path
    locks: Path
    redactor: Redactor

    async def heard(self, session: str, sent: Sent, server: Server | None, ours: bool) -> Attestation:
        """`server` is the one that was started last. `ours` is whether we have the session open ourselves."""
        try:
            return await self._told(session, sent, server, ours)
        except ProgramFault as fault:
            return Attestation(Evidence.UNKNOWN, fault.words)
        except (sqlite3.Error, OSError, ValueError) as fault:
            return Attestation(Evidence.UNKNOWN, f"OpenCode's database {self.store} cannot be read: {fault}.")

    async def _told(self, session: str, sent: Sent, server: Server | None, ours: bool) -> Attestation:
        message = message_id(sent.id)
        kept = await self._read(session, message)
        may_come, busy = False, False
        if kept is not None and server is not None:
            may_come = server.alive and not kept.holds_it and not server.gate.shut(message)
            going = await _going(server, session, kept.directory)
            may_come, busy = may_come and going is not None, bool(going)
            kept = await self._read(session, message)
        told = attestation(kept, sent, self.redactor)
        if told.evidence is Evidence.FINISHED:
            return told
        if busy:
            return Attestation(Evidence.UNKNOWN, "A turn of the session is going on.")
        if told.evidence is Evidence.UNSENT and may_come:
            return Attestation(Evidence.UNKNOWN, "OpenCode has let it in, and is writing it.")
        if not ours and is_locked(self.locks, session):
            return Attestation(Evidence.UNKNOWN, "Another process of Clew has the session open.")
        return told

    async def _read(self, session: str, message: str) -> Kept | None:
        if not self.store.exists():
            raise FileNotFoundError("it is not there")
        return await asyncio.to_thread(keeping.read, self.store, session, message)


async def _going(server: Server, session: str, directory: str) -> bool | None:
    """Whether a turn of the session is going; None when the server is gone, and all it would have written with it."""
    if server.alive:
        try:
            async with asyncio.timeout(_ANSWER):
                return await Api(server).busy(session, directory)
        except TimeoutError as fault:
            words = f"OpenCode's server did not say within {_ANSWER:g} s what is going on."
            raise TooSlow(words, "It is asked again.") from fault
        except ProgramEnded:
            pass
    if not await server.is_gone():
        raise TooSlow("OpenCode's server is being ended.", "It is asked again.")
    return None
