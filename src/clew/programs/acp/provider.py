"""The provider of one ACP agent in one home. Each open session has a process of its own."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from clew.kernel import (
    Attestation,
    Capabilities,
    Cursor,
    Directory,
    Evidence,
    LandingField,
    NativeId,
    Probe,
    ProviderName,
    Sent,
)
from clew.ports.fault import Fault
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, LiveSession, OpenSpec, Settings
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.connection import Abilities, AcpLaunch, Connection, connect
from clew.programs.acp.history import heard
from clew.programs.acp.lookup import NOT_LISTED, listed, probe, signals
from clew.programs.acp.opened import Opener
from clew.programs.acp.protected_files import must_not_widen
from clew.programs.acp.session import AcpSession
from clew.programs.checks import check_homes, check_opening, check_paths, expressed
from clew.programs.cursor import MALFORMED, CursorForm, busy_probe, failed_probe
from clew.programs.faults import CannotStart, NotAble
from clew.programs.locks import is_locked, lock_session, locks_of_home, must_be_lockable
from clew.programs.program import environment_for
from clew.programs.state import ProviderState
from clew.programs.tasks import ProviderTasks


class AcpProvider:
    """What the agent can do is known after the first connection, which `discover` or any other call makes."""

    def __init__(self, name: str, agent: AcpAgent, settings: Settings, home: str) -> None:
        self._name = ProviderName(name)
        self._agent, self._settings, self._home = agent, settings, home
        self._abilities = Abilities()
        self._sessions: set[AcpSession] = set()
        self._tasks = ProviderTasks()
        self._locks = _locks(self._name, agent, settings, home)
        self._cursors = CursorForm(name, agent.id_shape)
        self._state = ProviderState(settings.state)

    @property
    def name(self) -> ProviderName:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        can, agent = self._abilities, self._agent
        by_list = frozenset() if can.list else {NOT_LISTED}
        return Capabilities(
            resume=can.resume or can.load,
            fork=can.fork,
            fork_into=can.fork and agent.fork_into,
            reapply_mode=True,
            change_model=agent.change_model,
            steers=bool(agent.steers),
            hears=can.load,
            modes=frozenset(agent.modes),
            cursor_versions=frozenset({self._cursors.version}),
            id_shape=self._cursors.shape,
            missing_signals=signals(agent) - by_list,
            rejection_signals=frozenset({MALFORMED}),
            reports=agent.reports if can.list else agent.reports - {LandingField.DIRECTORY, LandingField.TURNS},
        )

    async def discover(self) -> Discovery:
        async def version() -> str:
            async with self._connected(_neutral()) as connection:
                return connection.abilities.version

        try:
            found = await self._tasks.run(version())
        except Fault as fault:
            return Discovery(installed=False, home=self._home, missing=str(fault))
        return Discovery(installed=True, home=self._home, version=found, program=self._command)

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        async def probed() -> Probe:
            async with self._connected(Path(directory.path)) as connection:
                return await probe(connection, self._agent, cursor, directory)

        try:
            self._cursors.id_of(cursor)
            check_paths(directory)
            return busy_probe() if is_locked(self._locks, cursor.native_id) else await self._tasks.run(probed())
        except Fault as fault:
            return failed_probe(fault)

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:
        async def attested() -> Attestation:
            # Locked, so that no process opens it meanwhile: loading is the only way to read it.
            with ExitStack() as held:
                held.callback(lock_session(self._locks, cursor.native_id).release)
                async with self._connected(Path(directory.path)) as connection:
                    return await heard(connection, self._agent, cursor, directory, sent, self._settings.deadlines)

        try:
            self._cursors.id_of(cursor)
            check_paths(directory)
            return await self._tasks.run(attested())
        except Fault as fault:
            return Attestation(Evidence.UNKNOWN, str(fault))

    async def open(self, spec: OpenSpec) -> LiveSession:
        check_opening(spec, "The agent")
        if spec.cursor is not None:
            self._cursors.id_of(spec.cursor)
        return await self._tasks.run(self._opened(spec), AcpSession.close)

    async def _opened(self, spec: OpenSpec) -> AcpSession:
        mode = expressed(spec.mode, self._agent.modes, self._agent.name)
        await asyncio.to_thread(must_not_widen, self._agent, mode, spec.directory)
        resumed = spec.cursor.native_id if spec.cursor is not None and not spec.fork else None
        with ExitStack() as held:

            def lock(id_: NativeId) -> None:
                held.callback(lock_session(self._locks, id_).release)

            if resumed is not None:
                lock(resumed)
            else:
                must_be_lockable(self._locks)
            connection = await self._connect(Path(spec.directory.path), spec)
            try:
                opener = Opener(connection, self._agent, spec, mode, self._settings.deadlines, lock)
                opened = await opener.open()
            except BaseException:
                await connection.end()
                raise
            locks = held.pop_all()
        session = AcpSession(connection, self._agent, opened, self._settings.deadlines, spec.instructions)
        session.after_close.push(locks)
        return session.listed_in(self._sessions)

    async def sessions(self) -> Sequence[FoundSession]:
        async def found() -> list[FoundSession]:
            async with self._connected(_neutral()) as connection:
                if not connection.abilities.list:
                    raise NotAble("The agent cannot list its sessions.", "Open a session by its id.")
                return [each.found async for each in listed(connection)]

        return sorted(await self._tasks.run(found()), key=lambda each: each.updated_at or 0.0, reverse=True)

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:  # noqa: ARG002
        raise NotAble("The protocol has no way to export a session.", "It stays on this machine.")

    async def restore(self, archive: Path, directory: Directory) -> Cursor:  # noqa: ARG002
        raise NotAble("The protocol has no way to import a session.", "Start a new one.")

    async def close(self) -> None:
        await self._tasks.close()
        await asyncio.gather(*(session.close() for session in list(self._sessions)))

    # ---------------------------------------------------------------- inside

    @property
    def _command(self) -> tuple[str, ...]:
        return self._settings.program or self._agent.command

    @asynccontextmanager
    async def _connected(self, directory: Path) -> AsyncIterator[Connection]:
        connection = await self._connect(directory)
        try:
            yield connection
        finally:
            await connection.end()

    async def _connect(self, directory: Path, spec: OpenSpec | None = None) -> Connection:
        if not self._command:
            raise CannotStart(f"The command line of {self._name} is not known.", self._agent.hint)
        settings, own = self._settings, {} if spec is None else spec.environment
        environment = environment_for(self._agent.environment, settings.home, settings.environment, own)
        ledger = await self._state.ledger()
        launch = AcpLaunch(
            self._command,
            environment,
            settings.deadlines,
            ledger,
            self._agent.hint,
            self._state.scratch,
            self._agent.scratch,
        )
        connection = await connect(launch, directory)
        self._abilities = connection.abilities
        return connection


def _locks(name: str, agent: AcpAgent, settings: Settings, home: str) -> Path:
    environment = environment_for(agent.environment, settings.home, settings.environment)
    check_homes(environment, {"HOME", *(variable for variable, _ in agent.locks)})
    if agent.locks_at is not None:
        return agent.locks_at(environment)
    for variable, below in agent.locks:
        if environment.get(variable):
            return Path(environment[variable]).resolve() / below
    return locks_of_home(name, home, environment)


def _neutral() -> Path:
    """A directory that belongs to no project."""
    return Path(tempfile.gettempdir())
