"""The provider of commands."""

import asyncio
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

from clew.kernel import (
    Attestation,
    Capabilities,
    Cursor,
    Directory,
    Evidence,
    NativeId,
    Probe,
    ProbeKind,
    ProviderName,
    Sent,
)
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, LiveSession, OpenSpec, Settings
from clew.programs.checks import check_directory, expressed
from clew.programs.cursor import MALFORMED, CursorForm, busy_probe, failed_probe
from clew.programs.faults import NoProgram, NotAble, ProgramFault, Refused
from clew.programs.locks import is_locked, locks_of_home
from clew.programs.program import environment_for
from clew.providers.command.launcher import Launcher, Running, signal
from clew.providers.command.recipe import Recipe, home_of
from clew.providers.command.session import CommandSession, SessionLocks


class CommandProvider:
    def __init__(self, settings: Settings, recipe: Recipe) -> None:
        self._settings, self._recipe = settings, recipe
        self._launcher = Launcher(settings, recipe, Running(settings.state))
        self._cursors = CursorForm("this command", recipe.shape)
        self._sessions: set[CommandSession] = set()
        environment = environment_for(settings.home, settings.environment)
        self._locks = locks_of_home("command", home_of(settings), environment)

    @property
    def name(self) -> ProviderName:
        return ProviderName("command")

    @property
    def capabilities(self) -> Capabilities:
        """A program says nothing before its first line, so a landing reports nothing. Clew cannot read its store."""
        recipe = self._recipe
        return Capabilities(
            resume=recipe.resume is not None,
            # Every turn is a new process, in whatever directory it gets.
            resume_elsewhere=recipe.resume is not None,
            choose_id=recipe.chooses_id,
            reapply_mode=True,
            change_model=recipe.model is not None,
            warm=False,
            hears=False,
            names_itself=False,
            modes=frozenset(recipe.modes),
            cursor_versions=frozenset({self._cursors.version}),
            id_shape=self._cursors.shape,
            missing_signals=frozenset(map(signal, recipe.missing)),
            rejection_signals=frozenset({MALFORMED}),
            reports=frozenset(),
        )

    async def discover(self) -> Discovery:
        program, home = self._settings.program, home_of(self._settings)
        if shutil.which(program[0]) is None:
            return Discovery(
                installed=False, home=home, missing=f"{program[0]} was not found: install it, or name its path."
            )
        return Discovery(installed=True, home=home, version=await self._version(), program=program)

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        try:
            self._cursors.id_of(cursor)
            if is_locked(self._locks, cursor.native_id):
                return busy_probe()
        except ProgramFault as fault:
            return failed_probe(fault)
        return await self._launcher.probe(cursor.native_id, Path(directory.path))

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:  # noqa: ARG002
        words = "Clew cannot read what a command stores, so it cannot tell whether it took the prompt."
        return Attestation(Evidence.UNKNOWN, words, able=False)

    async def open(self, spec: OpenSpec) -> LiveSession:
        self._launcher.running.must_be_open()
        mode = expressed(spec.mode, self._recipe.modes, "The command")
        self._able(spec)
        await self._launcher.running.ledger()
        directory = Path(spec.directory.path)
        check_directory(directory)
        if shutil.which(self._settings.program[0]) is None:
            raise NoProgram(f"{self._settings.program[0]} was not found.", "Install it, or name its path.")
        id_ = self._chosen(spec) if spec.cursor is None else self._cursors.id_of(spec.cursor)
        session_locks = SessionLocks(self._locks if self._recipe.resume is not None else None)
        session_locks.add(id_)
        try:
            if id_ is not None and spec.cursor is not None:
                await self._must_be_there(id_, directory)
            # The provider may have been closed while the program was asked.
            self._launcher.running.must_be_open()
        except BaseException:
            session_locks.release()
            raise
        session = CommandSession(
            self._launcher.with_environment(spec.environment),
            directory,
            mode,
            id_,
            spec.cursor is not None,
            spec.model,
            spec.instructions,
            session_locks,
        )
        return session.listed_in(self._sessions)

    async def sessions(self) -> Sequence[FoundSession]:
        raise NotAble("A command cannot list its sessions.", "Open a session by its id.")

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:  # noqa: ARG002
        raise NotAble("Clew does not know where a command stores its sessions.", "They stay on this machine.")

    async def restore(self, archive: Path, directory: Directory) -> Cursor:  # noqa: ARG002
        raise NotAble("Clew does not know where a command stores its sessions.", "Start a new one.")

    async def close(self) -> None:
        await asyncio.gather(*(session.close() for session in list(self._sessions)))
        await self._launcher.running.close(self._settings.deadlines.close)

    # ---------------------------------------------------------------- inside

    def _able(self, spec: OpenSpec) -> None:
        if spec.fork:
            raise NotAble("A command cannot fork a session.", "Start a new one.")
        if spec.fresh_id is not None and not self._recipe.chooses_id:
            raise NotAble("The command has no way to take an id.", "Put {session} into the option `start`.")
        if spec.model is not None and self._recipe.model is None:
            raise NotAble("The command has no way to choose a model.", "Set the option `model`.")
        if spec.cursor is not None and self._recipe.resume is None:
            raise NotAble("The command has no way to resume a session.", "Set the option `resume`.")

    def _chosen(self, spec: OpenSpec) -> NativeId | None:
        if not self._recipe.chooses_id:
            return None
        return self._cursors.id_of(self._cursors.cursor(spec.fresh_id or str(uuid.uuid4())))

    async def _must_be_there(self, id_: NativeId, directory: Path) -> None:
        answer = await self._launcher.probe(id_, directory)
        if answer.kind is not ProbeKind.FOUND_HERE:
            raise Refused(f"Session {id_} was not found: {answer.detail}.", "Start a new one.")

    async def _version(self) -> str:
        """Empty without the option `version`: another argument might make the program work."""
        if self._recipe.version is None:
            return ""
        try:
            _, words = await self._launcher.run(self._recipe.version, Path(tempfile.gettempdir()))
        except ProgramFault:
            return ""
        return words
