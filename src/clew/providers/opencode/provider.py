"""The provider of OpenCode: one server per home, kept running and shared by all sessions."""

import asyncio
import contextlib
import re
import secrets
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
    PermissionMode,
    Probe,
    ProbeKind,
    ProviderName,
    Sent,
)
from clew.ports.logins import Logins
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, LiveSession, OpenSpec, Settings
from clew.programs.checks import check_options, check_variables, directory_at
from clew.programs.cursor import MALFORMED, MalformedId, busy_probe, failed_probe
from clew.programs.faults import ProgramFault, Refused, SessionMissing
from clew.programs.locks import is_locked
from clew.programs.program import environment_for
from clew.programs.secrets import Redactor
from clew.programs.state import ProviderState
from clew.providers.opencode.api import NOT_FOUND, Api
from clew.providers.opencode.archive import FORMAT, read_archive, write_archive
from clew.providers.opencode.evidence import Witness
from clew.providers.opencode.home import CURSORS, credential, locks, store
from clew.providers.opencode.launch import AGENT, PASSWORD, PROJECT_CONFIG, OpenCodeLaunch, launch_of
from clew.providers.opencode.logins import logins_of
from clew.providers.opencode.opened import Opened, Opener, checked_directory
from clew.providers.opencode.plugin import ShellEnvironment
from clew.providers.opencode.restore import Restore
from clew.providers.opencode.server import Server, SharedServer
from clew.providers.opencode.session import OpenCodeSession

NAME = ProviderName("opencode")
MISSING = f"404 {NOT_FOUND}"
SUBAGENT = "session-of-a-subagent"
_VERSION = re.compile(r"\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?|local")

CAPABILITIES = Capabilities(
    resume=True,
    resume_elsewhere=False,
    fork=True,
    fork_into=True,
    archive=True,
    restore_keeps_id=True,
    choose_id=False,
    reapply_mode=True,
    change_model=True,
    steers=True,
    hears=True,
    modes=frozenset(PermissionMode),
    cursor_versions=frozenset({CURSORS.version}),
    archive_formats=frozenset({FORMAT}),
    id_shape=CURSORS.shape,
    missing_signals=frozenset({MISSING}),
    rejection_signals=frozenset({MALFORMED, SUBAGENT}),
    # Neither model nor account: a session has no model before its first prompt, and each model's provider has its own
    # account.
    reports=frozenset({LandingField.NATIVE_ID, LandingField.DIRECTORY, LandingField.MODE, LandingField.TURNS}),
)


class OpenCodeProvider:
    def __init__(self, settings: Settings) -> None:
        check_options(settings.options, (AGENT, PROJECT_CONFIG), "OpenCode")
        self._settings = settings
        environment = environment_for(settings.home, settings.environment)
        self._store = store(environment)
        self._state = ProviderState(settings.state)
        self._ledger = self._state.open()
        # One for all servers: what is redacted stays redacted when the server is restarted.
        self._password = secrets.token_urlsafe(24)
        self._locks = locks(self._store)
        self._witness = Witness(self._store, self._locks, Redactor({**environment, PASSWORD: self._password}))
        self._shared = SharedServer(self._launch)
        self._open: set[OpenCodeSession] = set()

    @property
    def name(self) -> ProviderName:
        return NAME

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def discover(self) -> Discovery:
        """Models are listed only while the server runs; it is not started for that."""
        found = Discovery(installed=False, home=str(self._store))
        try:
            launch = self._launch()
            version = await _version(launch)
        except ProgramFault as fault:
            return replace(found, missing=str(fault))
        models: tuple[str, ...] = ()
        if (server := self._shared.current) is not None:
            with contextlib.suppress(ProgramFault):
                models = await Api(server).models()
        key = await asyncio.to_thread(credential, launch.environment)
        return Discovery(True, found.home, version, launch.command, models=models, credential=key)

    async def logins(self) -> Logins:
        return await asyncio.to_thread(logins_of, environment_for(self._settings.home, self._settings.environment))

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        try:
            id_ = CURSORS.id_of(cursor)
            if is_locked(self._locks, id_):
                return busy_probe()
            session = await self._shared.run(lambda server: Api(server).session(id_))
        except SessionMissing as fault:
            return Probe(ProbeKind.MISSING, signal=MISSING, detail=fault.words)
        except ProgramFault as fault:
            return failed_probe(fault)
        if session.get("parentID"):
            return Probe(ProbeKind.REJECTED, signal=SUBAGENT, detail=f"It belongs to {session['parentID']}.")
        there = directory_at(str(session["directory"]))
        if there == directory_at(directory.path):
            return Probe(ProbeKind.FOUND_HERE, directory=there, detail="its server has it")
        return Probe(ProbeKind.FOUND_ELSEWHERE, directory=there, detail=f"it is in {there}")

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:  # noqa: ARG002 - one store
        return await self._heard(cursor, sent)

    async def _heard(self, cursor: Cursor, sent: Sent) -> Attestation:
        try:
            id_ = CURSORS.id_of(cursor)
        except MalformedId as fault:
            return Attestation(Evidence.UNKNOWN, fault.words)
        ours = any(session.cursor == cursor for session in self._open)
        return await self._witness.heard(id_, sent, self._shared.latest, ours)

    async def open(self, spec: OpenSpec) -> LiveSession:
        if spec.cursor is not None:
            CURSORS.id_of(spec.cursor)
        checked_directory(spec)
        # A shell with bad variables would fail without a reason. Strict: they are written as UTF-8.
        check_variables(spec.environment, errors="strict")
        launch, agent = self._launch(), self._settings.options.get(AGENT)

        async def open_on(server: Server) -> Opened:
            return await Opener(server, self._shared, launch, self._locks, agent).open(spec)

        opened = await self._shared.run(open_on)
        shell_environment = ShellEnvironment(opened.id, spec.environment, self._ledger)
        redactor = launch.redactor(spec.environment)
        session = OpenCodeSession(
            opened, spec, self._shared, shell_environment, launch.deadlines, redactor, self._heard
        ).listed_in(self._open)
        try:
            await session.attach()
        except BaseException:
            await session.close()
            raise
        return session

    async def sessions(self) -> Sequence[FoundSession]:
        """Without those that were archived in OpenCode itself."""
        found = await self._shared.run(lambda server: Api(server).sessions())
        return [
            FoundSession(
                CURSORS.cursor(str(each["id"])),
                directory_at(str(each["directory"])),
                str(each.get("title", "")),
                float(each["time"]["updated"]) / 1000,
            )
            for each in found
        ]

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:  # noqa: ARG002 - one store
        id_ = CURSORS.id_of(cursor)
        seconds = self._settings.deadlines.start
        return await self._shared.run(lambda server: write_archive(Api(server), id_, into, since, seconds))

    async def restore(self, archive: Path, directory: Directory) -> Cursor:
        session = await asyncio.to_thread(read_archive, archive)
        place = checked_directory(OpenSpec(directory, PermissionMode.READ))
        launch = self._launch()
        await self._shared.run(lambda server: Restore(server, self._shared, launch, self._locks, session, place).run())
        return CURSORS.cursor(session.id)

    async def let_go(self) -> None:
        if not self._open:
            await self._shared.end_idle()

    async def close(self) -> None:
        try:
            await asyncio.gather(*(session.close() for session in tuple(self._open)))
        finally:
            await self._shared.close()

    def _launch(self) -> OpenCodeLaunch:
        return launch_of(self._settings, self._password, self._ledger, self._state.scratch)


async def _version(launch: OpenCodeLaunch) -> str:
    result = await launch.run("--version", seconds=launch.deadlines.answer)
    if not result.lines or result.status != 0:
        raise Refused(f"OpenCode did not say its version: {result.words or 'it said nothing'}", "Install it again.")
    said = result.lines[-1].decode(errors="replace").strip()
    if _VERSION.fullmatch(said) is None:
        words = launch.redactor().text(said)[:80]
        raise Refused(f"{launch.command[0]} is not OpenCode: its version is {words!r}.", "Name another program.")
    return said
