"""The provider of the guide: the ACP client, with the guide as its agent, evidence from its memory, and archives."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from clew.kernel import (
    Attestation,
    Capabilities,
    Cursor,
    Directory,
    Evidence,
    LandingField,
    NativeId,
    PermissionMode,
    Probe,
    ProbeKind,
    Sent,
)
from clew.ports.fault import Fault
from clew.ports.provider import ArchiveFile, Settings
from clew.programs.acp.agent import AcpAgent, ModeRule
from clew.programs.acp.provider import AcpProvider
from clew.programs.checks import check_directory, check_homes, check_options, check_paths
from clew.programs.faults import Refused
from clew.programs.locks import lock_session
from clew.programs.program import environment_for
from clew.providers.guide.agent.rpc import PROMPT_ID, STEER
from clew.providers.guide.archive import FORMAT, restore_archive, write_archive
from clew.providers.guide.memory import (
    BEGUN,
    FINISHED,
    HOMES,
    SHAPE,
    VARIABLE,
    Busy,
    Damaged,
    Memory,
    Missing,
    Turn,
    home_of,
)


def attestation(home: Path, native_id: NativeId, sent: Sent) -> Attestation:
    """By the prompt's id in the guide's memory. The session is locked meanwhile, so that no guide writes it."""
    memory = Memory(home)
    if not memory.is_there:
        return Attestation(Evidence.UNKNOWN, f"The guide's memory is not in {home} any more.")
    try:
        if not memory.path(native_id).exists():
            raise Missing(native_id)
        memory.lock(native_id)
        try:
            turns = memory.load(native_id).turns
        finally:
            memory.release(native_id)
    except Missing:
        return Attestation(Evidence.UNSENT, f"The guide has no session {native_id}.")
    except Busy:
        return Attestation(Evidence.UNKNOWN, f"Session {native_id} is still open in a process of the guide.")
    except Damaged as fault:
        return Attestation(Evidence.UNKNOWN, f"Session {native_id} cannot be read: {fault}.")
    except OSError as fault:
        return Attestation(Evidence.UNKNOWN, f"The guide's memory cannot be read: {fault}.")
    found = next((turn for turn in turns if sent.id in turn.ids), None)
    if found is None:
        return Attestation(Evidence.UNSENT, "The guide's memory does not hold the prompt.")
    return _by_ending(found)


def _by_ending(turn: Turn) -> Attestation:
    match turn.ending:
        case "":
            return Attestation(Evidence.TAKEN, "The guide's memory holds the prompt, and no work on it.")
        case _ if turn.ending == FINISHED:
            return Attestation(Evidence.FINISHED, "The guide's memory holds the prompt and its reply.", turn.reply)
        case _ if turn.ending == BEGUN:
            return Attestation(Evidence.CUT_OFF, "The guide ended while it worked on the prompt.")
        case _:
            return Attestation(Evidence.CUT_OFF, f"The guide's turn for the prompt ended as {turn.ending}.")


DAMAGED = "damaged-session"

# Its modes are those of Clew, and it asks by itself. -P: Python must not import modules from its working directory.
GUIDE = AcpAgent(
    name="guide",
    command=(sys.executable, "-P", "-m", "clew.providers.guide.agent"),
    modes={
        PermissionMode.READ: ModeRule("read"),
        PermissionMode.ASK: ModeRule("ask", asks=True),
        PermissionMode.EDIT: ModeRule("edit", asks=True),
        PermissionMode.FULL: ModeRule("full"),
    },
    fork_into=True,
    list_is_whole=True,
    steers=STEER,
    plays_late=False,
    keeps_first=True,
    takes_ids=PROMPT_ID,
    apart=True,
    reports=frozenset({LandingField.NATIVE_ID, LandingField.DIRECTORY, LandingField.MODE, LandingField.TURNS}),
    id_shape=SHAPE,
    # Besides the locks that the guide itself holds while its process lives.
    locks=((VARIABLE, "clew-locks"),),
    hint="It comes with Clew: install Clew again.",
)


class GuideProvider(AcpProvider):
    def __init__(self, settings: Settings) -> None:
        check_options(settings.options, (), "The guide")
        environment = environment_for(settings.home)
        check_homes(environment, HOMES)
        self._store = home_of(environment).resolve()
        named = replace(settings, home={**settings.home, VARIABLE: str(self._store)})
        super().__init__("guide", GUIDE, named, str(self._store))

    @property
    def capabilities(self) -> Capabilities:
        can = super().capabilities
        return replace(
            can,
            hears=True,
            archive=True,
            restore_keeps_id=True,
            archive_formats=frozenset({FORMAT}),
            rejection_signals=can.rejection_signals | {DAMAGED},
        )

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        """A session that cannot be read is not on the agent's list, but is not missing."""
        try:
            Memory(self._store).load(cursor.native_id)
        except Damaged as fault:
            return Probe(ProbeKind.REJECTED, signal=DAMAGED, detail=f"It cannot be read: {fault}.")
        except OSError as fault:
            return Probe(ProbeKind.UNREACHABLE, detail=f"The guide's memory cannot be read: {fault}.")
        except Missing:
            pass
        return await super().probe(cursor, directory)

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:  # noqa: ARG002 - one store
        """By the prompt's id, which the guide stores before it acts on the prompt."""
        try:
            self._cursors.id_of(cursor)
            with ExitStack() as held:
                held.callback(lock_session(self._locks, cursor.native_id).release)
                # First end a guide that a crash of Clew has left running: it may still write.
                await self._state.ledger()
                return await asyncio.to_thread(attestation, self._store, cursor.native_id, sent)
        except Fault as fault:
            return Attestation(Evidence.UNKNOWN, str(fault))

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:  # noqa: ARG002 - one store
        self._cursors.id_of(cursor)
        with self._refusals():
            return await asyncio.to_thread(write_archive, self._store, cursor.native_id, into, since)

    async def restore(self, archive: Path, directory: Directory) -> Cursor:
        check_paths(directory, archive)
        check_directory(Path(directory.path))
        with self._refusals():
            return self._cursors.cursor(await asyncio.to_thread(restore_archive, self._store, archive, directory))

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            words = f"{fault.filename or self._store} cannot be used: {fault.strerror}."
            raise Refused(words, "Nothing was changed. Check that it exists, is yours and has room.") from fault
