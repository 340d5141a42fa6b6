"""The provider of Codex. Every open session has its own process; a probe starts one for a moment."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
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
    PromptId,
    ProviderName,
    Sent,
)
from clew.ports.logins import Logins
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, LiveSession, OpenSpec, Settings
from clew.programs.checks import check_directory, check_homes, check_opening, check_options, check_paths
from clew.programs.cursor import MALFORMED, failed_probe
from clew.programs.faults import ProgramFault, Refused
from clew.programs.locks import SessionLock
from clew.programs.program import Launch, environment_for
from clew.programs.rpc import CallRefused
from clew.programs.secrets import Redactor
from clew.programs.state import ProviderState
from clew.programs.tasks import ProviderTasks, in_thread
from clew.providers.codex import evidence, installation, locks, thread_calls
from clew.providers.codex.archive import FORMAT, Placed, archive_thread, place, read_archive
from clew.providers.codex.home import AGENT, HOMES, Home, make_home
from clew.providers.codex.logins import logins_of
from clew.providers.codex.rollout import CURSORS
from clew.providers.codex.server import AppServer, start_server
from clew.providers.codex.session import CodexSession
from clew.providers.codex.store import Index

NAME = ProviderName("codex")

_LOCK_PATIENCE = 0.5
"""Seconds that the lock of a killed program may live on."""

CAPABILITIES = Capabilities(
    resume=True,
    resume_elsewhere=True,
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
    missing_signals=frozenset({thread_calls.NO_ROLLOUT}),
    rejection_signals=frozenset({thread_calls.DAMAGED, MALFORMED}),
    reports=frozenset(LandingField) - {LandingField.ACCOUNT},
)


class CodexProvider:
    def __init__(self, settings: Settings) -> None:
        check_options(settings.options, (), AGENT)
        self._settings = settings
        self._environment = environment_for(settings.home, settings.environment)
        check_homes(self._environment, HOMES)
        self._home = Home(self._environment)
        self._ledger = ProviderState(settings.state).open()
        self._sessions: set[CodexSession] = set()
        self._echoed: set[PromptId] = set()
        """The prompts that Codex echoed in turns that did not complete."""
        self._tasks = ProviderTasks()
        # The first start in a new home makes its databases; a second start at the same time would fail.
        self._first = asyncio.Lock()
        self._started_once = False

    @property
    def name(self) -> ProviderName:
        return NAME

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def discover(self) -> Discovery:
        found = Discovery(installed=False, home=str(self._home.root))
        try:
            return await self._tasks.run(self._discovered(found))
        except ProgramFault as fault:
            return replace(found, missing=str(fault))

    async def _discovered(self, found: Discovery) -> Discovery:
        launch = self._launch(self._environment)
        version = await installation.version(launch)
        models: tuple[str, ...] = ()
        if self._home.root.is_dir() and self._home.lists_models:
            with contextlib.suppress(ProgramFault, CallRefused):
                async with self._temporary_server() as server:
                    models = await installation.models(server)
        return Discovery(
            installed=True,
            home=found.home,
            version=version,
            program=launch.command,
            account=self._home.account,
            models=models,
            credential=self._home.credential,
        )

    async def logins(self) -> Logins:
        return await asyncio.to_thread(logins_of, self._home)

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        try:
            id_ = CURSORS.id_of(cursor)
            if not self._home.root.is_dir():
                return Probe(ProbeKind.UNREACHABLE, detail=f"The home {self._home.root} is not there.")
            return await self._tasks.run(self._probed(id_, directory))
        except ProgramFault as fault:
            return failed_probe(fault)

    async def _probed(self, id_: str, directory: Directory) -> Probe:
        async with self._temporary_server() as server:
            return await thread_calls.probe(server, self._home, id_, directory)

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:  # noqa: ARG002 - one store
        try:
            id_ = CURSORS.id_of(cursor)
        except Refused as fault:
            return Attestation(Evidence.UNKNOWN, fault.words, able=False)
        root = self._home.root
        own = next((session for session in self._sessions if session.address == cursor), None)
        if own is not None and own.is_turning:
            return Attestation(Evidence.UNKNOWN, "A turn of the session is going on.")

        def busy() -> bool:
            if own is None:
                return locks.is_loaded(root, id_)
            return own.has_ended and locks.has_writer_lock(root, id_)

        redactor = Redactor(self._environment)
        try:
            await _wait_while(busy)
            found = await in_thread(lambda: evidence.attestation(root, id_, sent, redactor, busy), AGENT)
        except ProgramFault as fault:
            return Attestation(Evidence.UNKNOWN, str(fault))
        if found.evidence is Evidence.UNSENT and sent.id in self._echoed:
            return Attestation(Evidence.UNKNOWN, "Codex said that it took the prompt, and did not write it down.")
        return found

    async def open(self, spec: OpenSpec) -> LiveSession:
        check_opening(spec, AGENT)
        if spec.cursor is not None:
            CURSORS.id_of(spec.cursor)
        return await self._tasks.run(self._opened(spec), CodexSession.discard)

    async def _opened(self, spec: OpenSpec) -> CodexSession:
        await in_thread(lambda: make_home(self._home.root), AGENT)
        with contextlib.ExitStack() as held:
            await self._claim(spec.cursor.native_id if spec.cursor is not None and not spec.fork else None, held)
            # A run may have its own variables, but no other home.
            own = {name: value for name, value in spec.environment.items() if name not in HOMES}
            server = await self._start(Path(spec.directory.path), {**self._environment, **own})
            try:
                landed = await thread_calls.open_thread(server, spec, self._home)
                if spec.cursor is None or spec.fork:
                    await self._claim_new(server, landed, held)
            except CallRefused as fault:
                await server.close()
                words = server.redactor.text(fault.words)
                raise Refused(f"Codex does not open the session: {words}", "Look at what it says.") from fault
            except BaseException:
                await asyncio.shield(server.close())
                raise
            claim = held.pop_all()
        session = CodexSession(server, landed, self._home, self._echoed)
        session.after_close.push(claim)
        return session.listed_in(self._sessions)

    async def sessions(self) -> Sequence[FoundSession]:
        return await in_thread(lambda: Index(self._home.root).sessions(), AGENT)

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:  # noqa: ARG002 - one store
        thread = CURSORS.id_of(cursor)
        check_paths(into)
        return await in_thread(lambda: archive_thread(self._home.root, thread, into, since), AGENT)

    async def restore(self, archive: Path, directory: Directory) -> Cursor:
        check_paths(directory, archive)
        return await self._tasks.run(self._restored(archive, directory))

    async def _restored(self, path: Path, directory: Directory) -> Cursor:
        root = self._home.root
        copy = await in_thread(lambda: read_archive(path), AGENT)
        target = Path(directory.real or directory.path)
        check_directory(target)
        await in_thread(lambda: make_home(root), AGENT)
        placed = await in_thread(lambda: place(root, copy), AGENT, Placed.take_back)
        try:
            server = await self._start(target, self._environment)
            try:
                await thread_calls.bind(server, self._home, placed.threads, str(target))
            finally:
                await asyncio.shield(server.close())
        except BaseException:
            await asyncio.shield(asyncio.to_thread(placed.take_back))
            raise
        await asyncio.to_thread(placed.keep)
        return CURSORS.cursor(copy.thread)

    async def close(self) -> None:
        """Cancel what is under way, close every session, and begin nothing more."""
        await asyncio.gather(self._tasks.close(), self._close_sessions())
        # One may have been opened in that very moment.
        await self._close_sessions()

    async def _close_sessions(self) -> None:
        await asyncio.gather(*(session.close() for session in tuple(self._sessions)))

    async def _claim(self, thread: str | None, held: contextlib.ExitStack) -> None:
        """Claim the thread for as long as `held` is open. Without an id yet, only check that it can be claimed."""
        root = self._home.root
        if thread is None:
            await in_thread(lambda: locks.must_be_claimable(root), AGENT)
        else:
            claim = await in_thread(lambda: locks.claim(root, thread), AGENT, SessionLock.release)
            held.callback(claim.release)

    async def _claim_new(self, server: AppServer, landed: thread_calls.Opened, held: contextlib.ExitStack) -> None:
        try:
            await self._claim(landed.id, held)
        except BaseException:
            await thread_calls.discard(server, self._home, landed)
            raise

    # ---------------------------------------------------------------- processes

    def _launch(self, environment: dict[str, str]) -> Launch:
        return Launch(installation.program(self._settings.program), environment, self._settings.deadlines, self._ledger)

    async def _start(self, directory: Path, environment: dict[str, str]) -> AppServer:
        launch = self._launch(environment)
        check_directory(directory)
        if self._started_once:
            return await start_server(launch, directory)
        async with self._first:
            server = await start_server(launch, directory)
            self._started_once = True
            return server

    @contextlib.asynccontextmanager
    async def _temporary_server(self) -> AsyncIterator[AppServer]:
        server = await self._start(self._home.root, self._environment)
        try:
            yield server
        finally:
            await asyncio.shield(server.close())


async def _wait_while(busy: Callable[[], bool]) -> None:
    """A program that was killed while it started another leaves its lock to that one for a moment; a living one keeps
    it longer than this waits."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LOCK_PATIENCE):
            while await in_thread(busy, AGENT):
                await asyncio.sleep(0.02)
