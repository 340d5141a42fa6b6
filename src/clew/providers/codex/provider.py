"""Codex as a provider: every open session has a process of its own; looking takes one for a moment."""

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
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, LiveSession, OpenSpec, Settings
from clew.programs.checks import MALFORMED, MalformedId, check_homes, check_options, check_paths
from clew.programs.environment import environment_for
from clew.programs.faults import CannotStart, NotAble, ProgramFault, Refused
from clew.programs.ledger import Ledger
from clew.programs.locks import SessionLock
from clew.programs.rpc import CallRefused
from clew.programs.secrets import Redactor
from clew.providers.codex import archiving, discovering, locating, locks, placing, probing
from clew.providers.codex.apart import apart, make_ready
from clew.providers.codex.hearing import hear
from clew.providers.codex.home import HOMES, Home
from clew.providers.codex.names import CURSOR_VERSION, ID_SHAPE, cursor_of, id_of
from clew.providers.codex.opening import Opened, bind, opened, take_back
from clew.providers.codex.server import AppServer, Launch, started
from clew.providers.codex.session import CodexSession
from clew.providers.codex.store import Index
from clew.providers.codex.underway import Underway

NAME = ProviderName("codex")

_STILL = 0.5
"""Seconds that a lock of a program that was killed may live on."""

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
    cursor_versions=frozenset({CURSOR_VERSION}),
    archive_formats=frozenset({archiving.FORMAT}),
    id_shape=ID_SHAPE,
    missing_signals=frozenset({probing.NO_ROLLOUT}),
    rejection_signals=frozenset({probing.DAMAGED, MALFORMED}),
    reports=frozenset(LandingField) - {LandingField.ACCOUNT},
)


class CodexProvider:
    def __init__(self, settings: Settings) -> None:
        check_options(settings.options, (), "Codex")
        self._settings = settings
        self._environment = environment_for(settings.home, settings.environment)
        check_homes(self._environment, HOMES)
        self._home = Home(self._environment)
        self._ledger = Ledger(settings.state / "ledger") if settings.state is not None else None
        if self._ledger is not None:
            self._ledger.end_orphans()
        self._sessions: set[CodexSession] = set()
        self._told_back: set[PromptId] = set()
        """What Codex said that it took, in turns that did not end well."""
        self._underway = Underway()
        # The first start in a new home makes its databases; a second one at the same time would fail.
        self._first = asyncio.Lock()
        self._made_ready = False

    @property
    def name(self) -> ProviderName:
        return NAME

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def discover(self) -> Discovery:
        found = Discovery(installed=False, home=str(self._home.root))
        try:
            return await self._underway.do(self._discovered(found))
        except ProgramFault as fault:
            return replace(found, missing=str(fault))

    async def _discovered(self, found: Discovery) -> Discovery:
        launch = self._launch(self._environment)
        version = await discovering.version(launch)
        models: tuple[str, ...] = ()
        if self._home.root.is_dir() and self._home.lists_models:
            with contextlib.suppress(ProgramFault, CallRefused):
                async with self._for_a_moment() as server:
                    models = await discovering.models(server)
        return Discovery(
            installed=True,
            home=found.home,
            version=version,
            program=launch.command,
            account=self._home.account,
            models=models,
            credential=self._home.credential,
        )

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        try:
            id_ = id_of(cursor)
        except MalformedId as fault:
            return Probe(ProbeKind.REJECTED, signal=MALFORMED, detail=fault.words)
        except Refused as fault:
            return Probe(ProbeKind.UNREACHABLE, detail=fault.words)
        if not self._home.root.is_dir():
            return Probe(ProbeKind.UNREACHABLE, detail=f"The home {self._home.root} is not there.")
        try:
            return await self._underway.do(self._probed(id_, directory))
        except ProgramFault as fault:
            return Probe(ProbeKind.UNREACHABLE, detail=str(fault))

    async def _probed(self, id_: str, directory: Directory) -> Probe:
        async with self._for_a_moment() as server:
            return await probing.probe(server, self._home, id_, directory)

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:  # noqa: ARG002 - one store
        try:
            id_ = id_of(cursor)
        except Refused as fault:
            return Attestation(Evidence.UNKNOWN, fault.words, able=False)
        root = self._home.root
        own = next((session for session in self._sessions if session.address == cursor), None)
        if own is not None and own.is_turning:
            return Attestation(Evidence.UNKNOWN, "A turn of the session is going on.")

        def busy() -> bool:
            if own is None:
                return locks.is_loaded(root, id_)
            return not own.lives and locks.is_locked(root, id_)

        try:
            await _until_still(busy)
            said = await apart(lambda: hear(root, id_, sent, Redactor(self._environment), busy))
        except ProgramFault as fault:
            return Attestation(Evidence.UNKNOWN, str(fault))
        if said.evidence is Evidence.UNSENT and sent.id in self._told_back:
            return Attestation(Evidence.UNKNOWN, "Codex said that it took the prompt, and did not write it down.")
        return said

    async def open(self, spec: OpenSpec) -> LiveSession:
        check_paths(spec.directory)
        if spec.cursor is not None:
            id_of(spec.cursor)
        if spec.fresh_id is not None:
            raise NotAble("Codex names its sessions itself.", "Open it without an id; it says which it took.")
        if spec.fork and spec.cursor is None:
            raise Refused("A fork needs a session that it is made from.", "Name one, or begin afresh.")
        return await self._underway.do(self._opened(spec), CodexSession.call_off)

    async def _opened(self, spec: OpenSpec) -> CodexSession:
        await apart(lambda: make_ready(self._home.root))
        with contextlib.ExitStack() as held:
            await self._claimed(spec.cursor.native_id if spec.cursor is not None and not spec.fork else None, held)
            # A run may have its own variables, but no other home.
            own = {name: value for name, value in spec.environment.items() if name not in HOMES}
            server = await self._started(Path(spec.directory.path), {**self._environment, **own})
            try:
                landed = await opened(server, spec, self._home)
                if spec.cursor is None or spec.fork:
                    await self._claimed_as_made(server, landed, held)
            except CallRefused as fault:
                await server.close()
                words = server.redactor.text(fault.words)
                raise Refused(f"Codex does not open the session: {words}", "Look at what it says.") from fault
            except BaseException:
                await asyncio.shield(server.close())
                raise
            claim = held.pop_all()
        session = CodexSession(
            server, landed, self._home, self._told_back, lambda session: self._release(session, claim)
        )
        self._sessions.add(session)
        return session

    async def sessions(self) -> Sequence[FoundSession]:
        return await apart(lambda: Index(self._home.root).sessions())

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:  # noqa: ARG002 - one store
        thread = id_of(cursor)
        check_paths(into)
        return await apart(lambda: archiving.archive(self._home.root, thread, into, since))

    async def restore(self, archive: Path, directory: Directory) -> Cursor:
        check_paths(directory, archive)
        return await self._underway.do(self._restored(archive, directory))

    async def _restored(self, archive: Path, directory: Directory) -> Cursor:
        copy = await apart(lambda: archiving.read(archive))
        place = Path(directory.real or directory.path)
        _must_be_there(place)
        await apart(lambda: make_ready(self._home.root))
        placed = await apart(lambda: placing.place(self._home.root, copy), placing.Placed.take_back)
        try:
            server = await self._started(place, self._environment)
            try:
                await bind(server, self._home, placed.threads, str(place))
            finally:
                await asyncio.shield(server.close())
        except BaseException:
            await asyncio.shield(asyncio.to_thread(placed.take_back))
            raise
        await asyncio.to_thread(placed.keep)
        return cursor_of(copy.thread)

    async def close(self) -> None:
        """For good: what is under way is called off, and nothing is opened any more."""
        await asyncio.gather(self._underway.close(), self._close_sessions())
        # One may have been opened in that very moment.
        await self._close_sessions()

    async def _close_sessions(self) -> None:
        await asyncio.gather(*(session.close() for session in tuple(self._sessions)))

    async def _claimed(self, thread: str | None, held: contextlib.ExitStack) -> None:
        """Ours for as long as it is `held`. Of one that has no id yet, it is made sure that it can be."""
        if thread is None:
            await apart(lambda: locks.must_be_claimable(self._home.root))
        else:
            claim = await apart(lambda: locks.claim(self._home.root, thread), SessionLock.release)
            held.callback(claim.release)

    async def _claimed_as_made(self, server: AppServer, landed: Opened, held: contextlib.ExitStack) -> None:
        try:
            await self._claimed(landed.id, held)
        except BaseException:
            await take_back(server, landed)
            raise

    def _release(self, session: CodexSession, claim: contextlib.ExitStack) -> None:
        self._sessions.discard(session)
        claim.close()

    # ---------------------------------------------------------------- processes

    def _launch(self, environment: dict[str, str]) -> Launch:
        return Launch(locating.program(self._settings.program), environment, self._settings.deadlines, self._ledger)

    async def _started(self, directory: Path, environment: dict[str, str]) -> AppServer:
        launch = self._launch(environment)
        _must_be_there(directory)
        if self._made_ready:
            return await started(launch, directory)
        async with self._first:
            server = await started(launch, directory)
            self._made_ready = True
            return server

    @contextlib.asynccontextmanager
    async def _for_a_moment(self) -> AsyncIterator[AppServer]:
        server = await self._started(self._home.root, self._environment)
        try:
            yield server
        finally:
            await asyncio.shield(server.close())


async def _until_still(busy: Callable[[], bool]) -> None:
    """A program that was killed while it started another leaves its lock to that one for a moment. Others keep it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_STILL):
            while await apart(busy):
                await asyncio.sleep(0.02)


def _must_be_there(directory: Path) -> None:
    if not directory.is_dir():
        raise CannotStart(f"There is no directory {directory}.", "Make it, or name another.")
