"""The provider of Claude Code."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clew.kernel import (
    Attestation,
    Capabilities,
    Cursor,
    Directory,
    Evidence,
    LandingField,
    Probe,
    ProbeKind,
    ProviderName,
    Sent,
)
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, OpenSpec, Settings
from clew.programs.checks import MALFORMED, MalformedId, check_homes, check_options, check_paths
from clew.programs.faults import CannotStart, ProgramFault, Refused
from clew.programs.ledger import Ledger
from clew.programs.program import start
from clew.programs.secrets import Redactor
from clew.providers.claude import carrying, hearing, holding, modes, store
from clew.providers.claude.apart import apart
from clew.providers.claude.command import environment_of, program_of
from clew.providers.claude.home import HOMES, ID, Home, account_of, credential_in
from clew.providers.claude.live import Live
from clew.providers.claude.opening import open_session
from clew.providers.claude.way import CURSOR_VERSION, readable

ABSENT = "transcript-absent"
EMPTY = "transcript-empty"

# The names it takes for its models; beside them it takes any full name.
_MODELS = ("default", "opus", "sonnet", "haiku")


class Claude:
    def __init__(self, settings: Settings) -> None:
        check_options(settings.options, (), "Claude Code")
        self._settings = settings
        self._environment = environment_of(settings)
        check_homes(self._environment, HOMES)
        self._home = Home.of(self._environment)
        self._ledger: Ledger | None = None
        self._settling = asyncio.Lock()
        self._opening: set[asyncio.Task[Live]] = set()
        self._open: set[Live] = set()
        self._closed = False
        self._capabilities = Capabilities(
            resume=True,
            fork=True,
            fork_into=True,
            archive=True,
            restore_keeps_id=True,
            choose_id=True,
            reapply_mode=True,
            change_model=True,
            steers=True,
            hears=True,
            modes=modes.expressible(self._environment),
            cursor_versions=frozenset({CURSOR_VERSION}),
            archive_formats=frozenset({carrying.FORMAT}),
            id_shape=ID,
            missing_signals=frozenset({ABSENT, EMPTY}),
            rejection_signals=frozenset({MALFORMED}),
            reports=frozenset(LandingField) - {LandingField.ACCOUNT},
        )

    @property
    def name(self) -> ProviderName:
        return ProviderName(carrying.PROVIDER)

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def discover(self) -> Discovery:
        try:
            program = program_of(self._settings, self._environment)
            version = await self._version(program)
        except ProgramFault as fault:
            return Discovery(False, self._home.text, missing=str(fault))
        account, credential = account_of(self._home, self._environment), credential_in(self._environment)
        return Discovery(True, self._home.text, version, program, account, _MODELS, credential=credential)

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        try:
            readable(cursor)
            check_paths(directory)
            return await apart(lambda: self._probe(cursor, directory))
        except MalformedId as fault:
            return Probe(ProbeKind.REJECTED, signal=MALFORMED, detail=fault.words)
        except ProgramFault as fault:
            return Probe(ProbeKind.UNREACHABLE, detail=fault.words)

    def _probe(self, cursor: Cursor, directory: Directory) -> Probe:
        """By the transcript alone: the program, when asked, goes by nothing else."""
        if not self._home.is_there:
            return Probe(ProbeKind.UNREACHABLE, detail=f"the home {self._home.root} is not there")
        stored = store.find(self._home, cursor.native_id, directory)
        if stored is None:
            return Probe(ProbeKind.MISSING, signal=ABSENT, detail=f"there is no transcript in {self._home.projects}")
        if not stored.summary.talks:
            return Probe(ProbeKind.MISSING, signal=EMPTY, detail=f"nothing is said in {stored.path}")
        if (holder := holding.holder(self._home, stored.path)) is not None:
            return Probe(ProbeKind.BUSY, directory=stored.directory, holder=holder, detail=f"it is open in {holder}")
        if stored.here:
            return Probe(ProbeKind.FOUND_HERE, directory=directory, detail=f"its transcript is {stored.path}")
        return Probe(ProbeKind.FOUND_ELSEWHERE, directory=stored.directory, detail=f"it is in {stored.directory}")

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:  # noqa: ARG002
        """By the transcript, wherever in the home it lies; and by the prompt's id, whatever its text."""
        try:
            native_id = readable(cursor)
            idle = [live.process for live in self._open if live.is_idle]
            told = await apart(lambda: hearing.attestation(self._home, native_id, sent.id, idle))
        except MalformedId as fault:
            return Attestation(Evidence.UNKNOWN, fault.words, able=False)
        except ProgramFault as fault:
            return Attestation(Evidence.UNKNOWN, fault.words)
        return replace(told, reply=Redactor(self._environment).text(told.reply))

    async def open(self, spec: OpenSpec) -> Live:
        check_paths(spec.directory)
        self._must_be_open()
        opening = asyncio.create_task(self._opened(spec))
        self._opening.add(opening)
        try:
            live = await opening
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                raise _closed() from None
            if not opening.cancelled() and opening.exception() is None:
                # Called off in the very moment in which it was open.
                await opening.result().close()
            raise
        finally:
            self._opening.discard(opening)
        # What is closed in that very moment is closed already.
        self._must_be_open()
        return live

    async def _opened(self, spec: OpenSpec) -> Live:
        live = await open_session(self._settings, await self._settled(), spec, self._open.discard)
        self._open.add(live)
        return live

    def _must_be_open(self) -> None:
        if self._closed:
            raise _closed()

    async def sessions(self) -> Sequence[FoundSession]:
        return await apart(lambda: store.sessions(self._home, CURSOR_VERSION))

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:
        native_id = readable(cursor)
        check_paths(directory, into)
        return await apart(lambda: carrying.archive(self._home, native_id, directory, into, since))

    async def restore(self, archive: Path, directory: Directory) -> Cursor:
        check_paths(directory, archive)
        return await apart(lambda: carrying.restore(self._home, archive, directory))

    async def close(self) -> None:
        """For good: what is being opened is called off, and nothing is opened any more."""
        self._closed = True
        for opening in tuple(self._opening):
            opening.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        await asyncio.gather(*(live.close() for live in tuple(self._open)), return_exceptions=True)

    async def _version(self, program: tuple[str, ...]) -> str:
        running = await start([*program, "--version"], Path("/"), self._environment, await self._settled())
        try:
            async with asyncio.timeout(self._settings.deadlines.start):
                said = [line async for line in running.lines()]
        except TimeoutError as fault:
            raise CannotStart(f"{program[0]} does not tell its version.", "Check that it runs by itself.") from fault
        finally:
            await running.end(self._settings.deadlines.close)
        version = said[0].decode(errors="replace").partition(" ")[0] if said else ""
        if not version[:1].isdigit():
            raise CannotStart(f"{program[0]} is not Claude Code: {running.last_words}", "Say where Claude Code is.")
        return version

    async def _settled(self) -> Ledger | None:
        """The ledger, once what an earlier owner of it left running has been ended."""
        if self._settings.state is None:
            return None
        async with self._settling:
            if self._ledger is None:
                ledger = Ledger(self._settings.state / "ledger")
                await asyncio.to_thread(ledger.end_orphans)
                self._ledger = ledger
        return self._ledger


def _closed() -> Refused:
    return Refused("The provider is closed.", "Open the session with another.")
