"""OpenCode behind the port: one server for a home, kept warm and shared by all its sessions."""

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
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, LiveSession, OpenSpec, Settings
from clew.programs.checks import MALFORMED, MalformedId, check_options, check_variables
from clew.programs.environment import environment_for
from clew.programs.faults import ProgramFault, Refused, TooSlow
from clew.programs.ledger import open_ledger
from clew.programs.locks import is_locked
from clew.programs.scratch import Scratch
from clew.programs.secrets import Redactor
from clew.providers.opencode import archive as archiving
from clew.providers.opencode import launch as launching
from clew.providers.opencode.api import NOT_FOUND, Api
from clew.providers.opencode.evidence import Witness
from clew.providers.opencode.faults import SessionMissing
from clew.providers.opencode.home import (
    CURSOR_VERSION,
    ID_SHAPE,
    credential,
    cursor_of,
    directory_at,
    id_of,
    locks,
    store,
)
from clew.providers.opencode.launch import AGENT, PASSWORD, PROJECT_CONFIG, Launch
from clew.providers.opencode.opened import Opened, Opening, place_of
from clew.providers.opencode.plugin import Belongings
from clew.providers.opencode.restore import Restoring
from clew.providers.opencode.server import Server, Shared
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
    cursor_versions=frozenset({CURSOR_VERSION}),
    archive_formats=frozenset({archiving.FORMAT}),
    id_shape=ID_SHAPE,
    missing_signals=frozenset({MISSING}),
    rejection_signals=frozenset({MALFORMED, SUBAGENT}),
    # A new session has no model until its first prompt, and each model's provider has an account of its own.
    reports=frozenset({LandingField.NATIVE_ID, LandingField.DIRECTORY, LandingField.MODE, LandingField.TURNS}),
)


class OpenCodeProvider:
    def __init__(self, settings: Settings) -> None:
        check_options(settings.options, (AGENT, PROJECT_CONFIG), "OpenCode")
        self._settings = settings
        environment = environment_for(settings.home, settings.environment)
        self._store = store(environment)
        self._ledger = open_ledger(settings.state)
        self._scratch = Scratch(settings.state / "scratch" if settings.state is not None else None)
        self._scratch.remove_orphans()
        # One for all its servers: what is hidden stays hidden when the server has to be started again.
        self._password = secrets.token_urlsafe(24)
        self._locks = locks(self._store)
        self._witness = Witness(self._store, self._locks, Redactor({**environment, PASSWORD: self._password}))
        self._shared = Shared(self._launch)
        self._open: set[OpenCodeSession] = set()

    @property
    def name(self) -> ProviderName:
        return NAME

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def discover(self) -> Discovery:
        """Its models only while its server runs: to list them it would have to be started."""
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

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        try:
            id_ = id_of(cursor)
            if is_locked(self._locks, id_):
                return Probe(
                    ProbeKind.BUSY, holder="another session of Clew", detail="another session of Clew has it open"
                )
            session = await self._shared.ask(lambda server: Api(server).session(id_))
        except MalformedId as fault:
            return Probe(ProbeKind.REJECTED, signal=MALFORMED, detail=fault.words)
        except SessionMissing as fault:
            return Probe(ProbeKind.MISSING, signal=MISSING, detail=fault.words)
        except ProgramFault as fault:
            return Probe(ProbeKind.UNREACHABLE, detail=str(fault))
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
            id_ = id_of(cursor)
        except MalformedId as fault:
            return Attestation(Evidence.UNKNOWN, fault.words)
        ours = any(session.cursor == cursor for session in self._open)
        return await self._witness.heard(id_, sent, self._shared.latest, ours)

    async def open(self, spec: OpenSpec) -> LiveSession:
        if spec.cursor is not None:
            id_of(spec.cursor)
        place_of(spec)
        # A shell with wrong variables would not start, and not say why; they are written as UTF-8.
        check_variables(spec.environment, errors="strict")
        launch, agent = self._launch(), self._settings.options.get(AGENT)

        async def opening(server: Server) -> Opened:
            return await Opening(server, self._shared, launch, self._locks, agent).open(spec)

        opened = await self._shared.ask(opening)
        belongings = Belongings(opened.id, spec.environment, self._ledger)
        redactor = launch.redactor(spec.environment)
        session = OpenCodeSession(
            opened, spec, self._shared, belongings, launch.deadlines, redactor, self._open.discard, self._heard
        )
        self._open.add(session)
        try:
            await session.attach()
        except BaseException:
            await session.close()
            raise
        return session

    async def sessions(self) -> Sequence[FoundSession]:
        """Those that were not put away in OpenCode itself."""
        found = await self._shared.ask(lambda server: Api(server).sessions())
        return [
            FoundSession(
                cursor_of(str(each["id"])),
                directory_at(str(each["directory"])),
                str(each.get("title", "")),
                float(each["time"]["updated"]) / 1000,
            )
            for each in found
        ]

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:  # noqa: ARG002 - one store
        id_ = id_of(cursor)
        seconds = self._settings.deadlines.start
        return await self._shared.ask(lambda server: archiving.archive(Api(server), id_, into, since, seconds))

    async def restore(self, archive: Path, directory: Directory) -> Cursor:
        copy = await asyncio.to_thread(archiving.read, archive)
        place = place_of(OpenSpec(directory, PermissionMode.READ))
        launch = self._launch()
        await self._shared.ask(
            lambda server: Restoring(server, self._shared, launch, self._locks, copy, place).restore()
        )
        return cursor_of(copy.id)

    async def close(self) -> None:
        try:
            await asyncio.gather(*(session.close() for session in tuple(self._open)))
        finally:
            await self._shared.close()

    def _launch(self) -> Launch:
        return launching.launch(self._settings, self._password, self._ledger, self._scratch)


async def _version(launch: Launch) -> str:
    program = await launch.start("--version", directory=Path("/"))
    try:
        async with asyncio.timeout(launch.deadlines.answer):
            lines = [line async for line in program.lines()]
    except TimeoutError as fault:
        raise TooSlow("OpenCode does not say its version.", "Start `opencode --version` by hand.") from fault
    finally:
        await asyncio.shield(asyncio.ensure_future(program.end(launch.deadlines.close)))
    if not lines or program.returncode != 0:
        words = launch.redactor().text(program.last_words)
        raise Refused(f"OpenCode does not say its version: {words or 'it said nothing'}", "Install it again.")
    said = lines[-1].decode(errors="replace").strip()
    if _VERSION.fullmatch(said) is None:
        words = launch.redactor().text(said)[:80]
        raise Refused(f"{launch.command[0]} is not OpenCode; asked for its version it says {words!r}.", "Name another.")
    return said
