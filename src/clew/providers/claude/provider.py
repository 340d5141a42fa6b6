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
from clew.ports.logins import Logins
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, OpenSpec, Settings
from clew.programs.checks import check_homes, check_options, check_paths
from clew.programs.cursor import MALFORMED, MalformedId, failed_probe
from clew.programs.faults import CannotStart, ProgramFault
from clew.programs.program import Launch
from clew.programs.secrets import Redactor
from clew.programs.state import ProviderState
from clew.programs.tasks import ProviderTasks, in_thread
from clew.providers.claude import evidence, locks, modes, transcript
from clew.providers.claude.archive import FORMAT, PROVIDER, archive_session, restore_session
from clew.providers.claude.home import AGENT, CURSORS, HOMES, Home, account_of, credential_in
from clew.providers.claude.launch import environment_of, launch_of, open_session
from clew.providers.claude.logins import logins_of
from clew.providers.claude.session import ClaudeSession

ABSENT = "transcript-absent"
EMPTY = "transcript-empty"

# Short names that Claude Code knows; it also takes any full name.
_MODELS = ("default", "opus", "sonnet", "haiku")


class Claude:
    def __init__(self, settings: Settings) -> None:
        check_options(settings.options, (), AGENT)
        self._settings = settings
        self._environment = environment_of(settings)
        check_homes(self._environment, HOMES)
        self._home = Home.of(self._environment)
        self._state = ProviderState(settings.state)
        self._tasks = ProviderTasks()
        self._open: set[ClaudeSession] = set()
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
            cursor_versions=frozenset({CURSORS.version}),
            archive_formats=frozenset({FORMAT}),
            id_shape=CURSORS.shape,
            missing_signals=frozenset({ABSENT, EMPTY}),
            rejection_signals=frozenset({MALFORMED}),
            reports=frozenset(LandingField) - {LandingField.ACCOUNT},
        )

    @property
    def name(self) -> ProviderName:
        return ProviderName(PROVIDER)

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def discover(self) -> Discovery:
        try:
            launch = launch_of(self._settings, await self._state.ledger())
            version = await _version(launch)
        except ProgramFault as fault:
            return Discovery(False, self._home.text, missing=str(fault))
        account, credential = account_of(self._home, self._environment), credential_in(self._environment)
        return Discovery(True, self._home.text, version, launch.command, account, _MODELS, credential=credential)

    async def logins(self) -> Logins:
        return await in_thread(lambda: logins_of(self._home, self._environment), AGENT)

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        try:
            CURSORS.id_of(cursor)
            check_paths(directory)
            return await in_thread(lambda: self._probe(cursor, directory), AGENT)
        except ProgramFault as fault:
            return failed_probe(fault)

    def _probe(self, cursor: Cursor, directory: Directory) -> Probe:
        """By the transcript alone: the program itself has nothing else to go by."""
        if not self._home.is_there:
            return Probe(ProbeKind.UNREACHABLE, detail=f"the home {self._home.root} is not there")
        stored = transcript.find(self._home, cursor.native_id, directory)
        if stored is None:
            return Probe(ProbeKind.MISSING, signal=ABSENT, detail=f"there is no transcript in {self._home.projects}")
        if not stored.summary.talks:
            return Probe(ProbeKind.MISSING, signal=EMPTY, detail=f"nothing is said in {stored.path}")
        if (holder := locks.holder(self._home, stored.path)) is not None:
            return Probe(ProbeKind.BUSY, directory=stored.directory, holder=holder, detail=f"it is open in {holder}")
        if stored.here:
            return Probe(ProbeKind.FOUND_HERE, directory=directory, detail=f"its transcript is {stored.path}")
        return Probe(ProbeKind.FOUND_ELSEWHERE, directory=stored.directory, detail=f"it is in {stored.directory}")

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:  # noqa: ARG002
        """By the transcript, wherever in the home it is, and by the prompt's id, whatever its text."""
        try:
            native_id = CURSORS.id_of(cursor)
            idle = [session.process for session in self._open if session.is_idle]
            found = await in_thread(lambda: evidence.attestation(self._home, native_id, sent.id, idle), AGENT)
        except MalformedId as fault:
            return Attestation(Evidence.UNKNOWN, fault.words, able=False)
        except ProgramFault as fault:
            return Attestation(Evidence.UNKNOWN, fault.words)
        return replace(found, reply=Redactor(self._environment).text(found.reply))

    async def open(self, spec: OpenSpec) -> ClaudeSession:
        check_paths(spec.directory)
        return await self._tasks.run(self._opened(spec), ClaudeSession.close)

    async def _opened(self, spec: OpenSpec) -> ClaudeSession:
        launch = launch_of(self._settings, await self._state.ledger(), spec)
        return (await open_session(launch, spec)).listed_in(self._open)

    async def sessions(self) -> Sequence[FoundSession]:
        return await in_thread(lambda: transcript.sessions(self._home), AGENT)

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:
        native_id = CURSORS.id_of(cursor)
        check_paths(directory, into)
        return await in_thread(lambda: archive_session(self._home, native_id, directory, into, since), AGENT)

    async def restore(self, archive: Path, directory: Directory) -> Cursor:
        check_paths(directory, archive)
        return await in_thread(lambda: restore_session(self._home, archive, directory), AGENT)

    async def close(self) -> None:
        """Cancel what is being opened, close every session, and open no more."""
        await self._tasks.close()
        await asyncio.gather(*(session.close() for session in tuple(self._open)), return_exceptions=True)


async def _version(launch: Launch) -> str:
    output = await launch.run("--version", seconds=launch.deadlines.start)
    version = output.lines[0].decode(errors="replace").partition(" ")[0] if output.lines else ""
    if not version[:1].isdigit():
        words = f"{launch.command[0]} is not Claude Code: {output.words}"
        raise CannotStart(words, "Name its program: `clew agent edit NAME -- PROGRAM`.")
    return version
