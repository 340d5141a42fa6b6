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
    PermissionMode,
    Probe,
    ProbeKind,
    ProviderName,
    Sent,
    choose_mode,
)
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, LiveSession, OpenSpec, Settings
from clew.programs.checks import MALFORMED, MalformedId, check_id
from clew.programs.environment import environment_for
from clew.programs.faults import CannotStart, NotAble, ProgramFault, Refused
from clew.programs.locks import is_locked, locks_of_home
from clew.providers.command.launcher import Asker, Launcher, Running, signal
from clew.providers.command.recipe import Recipe, home_of
from clew.providers.command.session import CURSOR_VERSION, CommandSession, Holding


class CommandProvider:
    def __init__(self, settings: Settings, recipe: Recipe) -> None:
        self._settings, self._recipe = settings, recipe
        self._launcher = Launcher(settings, recipe, Running(settings.state))
        self._sessions: set[CommandSession] = set()
        environment = environment_for(settings.home, settings.environment)
        self._locks = locks_of_home("command", home_of(settings), environment)

    @property
    def name(self) -> ProviderName:
        return ProviderName("command")

    @property
    def capabilities(self) -> Capabilities:
        """It says nothing of itself before its first line, so nothing is reported of a session that was opened. Nor can
        anybody tell what it keeps of a prompt."""
        recipe = self._recipe
        return Capabilities(
            resume=recipe.resume is not None,
            # Every turn is a process of its own, in the directory it is given.
            resume_elsewhere=recipe.resume is not None,
            choose_id=recipe.chooses_id,
            reapply_mode=True,
            change_model=recipe.model is not None,
            warm=False,
            hears=False,
            names_itself=False,
            modes=frozenset(recipe.modes),
            cursor_versions=frozenset({CURSOR_VERSION}),
            id_shape=recipe.shape,
            missing_signals=frozenset(map(signal, recipe.missing)),
            rejection_signals=frozenset({MALFORMED}),
            reports=frozenset(),
        )

    async def discover(self) -> Discovery:
        program, home = self._settings.program, home_of(self._settings)
        if shutil.which(program[0]) is None:
            return Discovery(installed=False, home=home, missing=f"{program[0]} is not here: install it, or say where.")
        return Discovery(installed=True, home=home, version=await self._version(), program=program)

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        try:
            self._check(cursor)
            if is_locked(self._locks, cursor.native_id):
                return Probe(ProbeKind.BUSY, holder="another opening of it by Clew", detail="it is open")
        except MalformedId as fault:
            return Probe(ProbeKind.REJECTED, signal=MALFORMED, detail=fault.words)
        except ProgramFault as fault:
            return Probe(ProbeKind.UNREACHABLE, detail=str(fault))
        return await Asker(self._launcher).ask(cursor.native_id, Path(directory.path))

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:  # noqa: ARG002
        words = "Clew cannot read what a command keeps of its sessions, so nobody can tell whether it took the prompt."
        return Attestation(Evidence.UNKNOWN, words, able=False)

    async def open(self, spec: OpenSpec) -> LiveSession:
        self._launcher.running.must_be_open()
        mode = self._mode(spec.mode)
        self._able(spec)
        await self._launcher.running.ledger()
        directory = Path(spec.directory.path)
        if not directory.is_dir():
            raise CannotStart(f"{directory} is no directory.", "Make it first.")
        if shutil.which(self._settings.program[0]) is None:
            raise CannotStart(f"{self._settings.program[0]} is not here.", "Install it, or say where it is.")
        id_ = self._chosen(spec) if spec.cursor is None else self._checked(spec.cursor)
        holding = Holding(self._locks if self._recipe.resume is not None else None)
        holding.begin(id_)
        try:
            if id_ is not None and spec.cursor is not None:
                await self._must_be_there(id_, directory)
            # It may have been closed while the program was asked.
            self._launcher.running.must_be_open()
        except BaseException:
            holding.end()
            raise
        session = CommandSession(
            self._launcher.with_environment(spec.environment),
            directory,
            mode,
            id_,
            spec.cursor is not None,
            spec.model,
            spec.instructions,
            holding,
            self._sessions.discard,
        )
        self._sessions.add(session)
        return session

    async def sessions(self) -> Sequence[FoundSession]:
        raise NotAble("Nothing is known of a command's sessions.", "Open a session by its id.")

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:  # noqa: ARG002
        raise NotAble("Nothing is known of where a command keeps its sessions.", "They stay on this machine.")

    async def restore(self, archive: Path, directory: Directory) -> Cursor:  # noqa: ARG002
        raise NotAble("Nothing is known of where a command keeps its sessions.", "Start a new one.")

    async def close(self) -> None:
        await asyncio.gather(*(session.close() for session in list(self._sessions)))
        await self._launcher.running.close(self._settings.deadlines.close)

    # ---------------------------------------------------------------- inside

    def _check(self, cursor: Cursor) -> None:
        """What is no id of this program never becomes an argument of it."""
        check_id(cursor, CURSOR_VERSION, self._recipe.shape, "this command")

    def _checked(self, cursor: Cursor) -> NativeId:
        self._check(cursor)
        return cursor.native_id

    def _mode(self, wanted: PermissionMode) -> PermissionMode:
        mode = choose_mode(wanted, (), frozenset(self._recipe.modes)).mode
        if mode is None:
            raise NotAble(
                f"It is not said how the program keeps to {wanted}.", f"Say it with the option mode.{wanted}."
            )
        return mode

    def _able(self, spec: OpenSpec) -> None:
        if spec.fork:
            raise NotAble("A command cannot fork a session.", "Start a new one.")
        if spec.fresh_id is not None and not self._recipe.chooses_id:
            raise NotAble("It is not said how the program takes an id.", "Put {session} into the option `start`.")
        if spec.model is not None and self._recipe.model is None:
            raise NotAble("It is not said how the program's model is chosen.", "Say it with the option `model`.")
        if spec.cursor is not None and self._recipe.resume is None:
            raise NotAble("It is not said how the program goes on with a session.", "Say it with the option `resume`.")

    def _chosen(self, spec: OpenSpec) -> NativeId | None:
        if not self._recipe.chooses_id:
            return None
        chosen = spec.fresh_id or NativeId(str(uuid.uuid4()))
        self._check(Cursor(CURSOR_VERSION, chosen))
        return chosen

    async def _must_be_there(self, id_: NativeId, directory: Path) -> None:
        answer = await Asker(self._launcher).ask(id_, directory)
        if answer.kind is not ProbeKind.FOUND_HERE:
            raise Refused(f"Session {id_} was not found: {answer.detail}.", "Start a new one.")

    async def _version(self) -> str:
        """A program is not run for that unless it is said how: another argument might set it to work."""
        if self._recipe.version is None:
            return "unknown"
        try:
            _, words = await self._launcher.run(self._recipe.version, Path(tempfile.gettempdir()))
        except ProgramFault:
            return "unknown"
        return words or "unknown"
