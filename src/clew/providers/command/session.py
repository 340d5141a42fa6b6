"""A conversation with a command: one process per turn; between turns nothing runs."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from clew.kernel import Answer, ApprovalId, Cursor, Landing, NativeId, PermissionMode, ProbeKind, PromptId
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed, SessionNamed
from clew.programs.checks import expressed
from clew.programs.cursor import VERSION
from clew.programs.faults import BadArguments, CannotLock, CannotStart, NotAble, Refused, SessionBusy
from clew.programs.locks import SessionLock, lock_session, must_be_lockable
from clew.programs.session import OpenSession
from clew.providers.command.launcher import Launcher
from clew.providers.command.recipe import (
    MODEL,
    PROMPT,
    SESSION,
    Arguments,
    Recipe,
    filled,
    taken_for_option,
    with_options,
)
from clew.providers.command.turn import Turn


class SessionLocks:
    """The locks of one open session, whose program may name it only in its first turn, and rename it later.

    Without a lock directory nothing is locked: a session that cannot be resumed needs no lock.
    """

    def __init__(self, locks: Path | None) -> None:
        self._locks = locks
        self._held: dict[NativeId, SessionLock] = {}

    def add(self, id_: NativeId | None) -> None:
        """Lock that id as well. Without an id yet, make sure that locks can be used."""
        if self._locks is None or id_ in self._held:
            return
        if id_ is None:
            must_be_lockable(self._locks)
        else:
            self._held[id_] = lock_session(self._locks, id_)

    def release(self) -> None:
        for lock in self._held.values():
            lock.release()
        self._held, self._locks = {}, None


class CommandSession(OpenSession):
    def __init__(
        self,
        launcher: Launcher,
        directory: Path,
        mode: PermissionMode,
        native_id: NativeId | None,
        resumed: bool,
        model: str | None,
        instructions: str | None,
        session_locks: SessionLocks,
    ) -> None:
        super().__init__()
        self.after_close.callback(session_locks.release)
        self._launcher, self._directory = launcher, directory
        self._mode, self._model, self._instructions = mode, model, instructions
        self._id = native_id
        self._begun = self._durable = resumed
        self._session_locks = session_locks
        self._turn: Turn | None = None
        self._busy = self._called_off = False

    @property
    def id(self) -> NativeId | None:
        return self._id

    @property
    def landing(self) -> Landing:
        """Empty: the program says nothing before its first turn."""
        return Landing()

    @property
    def cursor(self) -> Cursor | None:
        return Cursor(VERSION, self._id) if self._id is not None and self._durable else None

    @property
    def ends_in(self) -> float | None:
        return None if self._turn is None else self._turn.ends_in

    @property
    def address(self) -> Cursor | None:
        """The id that Clew chose or the program printed, durable or not."""
        return Cursor(VERSION, self._id) if self._id is not None else None

    async def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002, ARG002
        self._must_be_idle(self._busy)
        self._busy, self._called_off = True, False
        try:
            if self._begun and (self._recipe.resume is None or self._id is None):
                # Without a way to resume, a second turn would be a new conversation under the old name.
                raise NotAble("The program cannot continue a session.", "Open a new session for each turn.")
            async for event in self._run(prompt):
                if isinstance(event, SessionNamed):
                    try:
                        self._session_locks.add(event.native_id)
                    except (SessionBusy, CannotLock) as fault:
                        await self.interrupt()
                        for last in _failed(ErrorCode.UNKNOWN, fault.words, handed=True):
                            yield last
                        return
                    self._rename(event)
                yield event
        finally:
            if self._turn is not None:
                await self._turn.leave()
            self._turn, self._busy = None, False

    async def interrupt(self) -> None:
        # A turn whose program is just being started ends before it gets the prompt.
        self._called_off = self._busy
        if self._turn is not None:
            await self._turn.stop()

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002, ARG002
        raise NotAble("A command takes no prompt while it runs.", "Send it in the next turn.")

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:  # noqa: ARG002 - asks nothing
        return False

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        self._mode = expressed(mode, self._recipe.modes, "The command")
        return self._mode

    async def set_model(self, model: str) -> None:
        if self._recipe.model is None:
            raise NotAble("The command has no way to choose a model.", "Set the option `model`.")
        self._model = model

    async def _close(self) -> None:
        await self.interrupt()

    # ---------------------------------------------------------------- inside

    @property
    def _recipe(self) -> Recipe:
        return self._launcher.recipe

    def _rename(self, event: SessionNamed) -> None:
        """A new id counts once it is durable; until then the old one leads to the session."""
        if event.durable or not self._durable:
            self._id, self._durable = event.native_id, event.durable and self._recipe.resume is not None

    async def _run(self, prompt: str) -> AsyncIterator[Event]:
        template = self._recipe.start if not self._begun else self._recipe.resume or ()
        text = prompt if self._instructions is None else f"{self._instructions}\n\n{prompt}"
        by_argument = any(PROMPT in word for word in template)
        if taken_for_option(template, text):
            words = "A prompt that begins with - would be an option of the program: put `--` before {prompt}."
            for last in _failed(ErrorCode.BAD_REQUEST, words):
                yield last
            return
        try:
            program = await self._launcher.launch(self._arguments(template, text), self._directory)
        except BadArguments as fault:
            for last in _failed(ErrorCode.BAD_REQUEST, self._launcher.redactor.text(fault.words)):
                yield last
            return
        except (CannotStart, Refused) as fault:
            if not (self._called_off or self.is_closed):
                words = self._launcher.redactor.text(fault.words)
                yield Failed(ErrorCode.PROGRAM_ENDED, words, retryable=True, handed=False)
            yield Done(Ending.INTERRUPTED if self._called_off or self.is_closed else Ending.FAILED)
            return
        turn = self._turn = Turn(program, self._launcher, self._id, self._found)
        if self._called_off or self.is_closed:
            await turn.stop()
            yield Done(Ending.INTERRUPTED)
            return
        self._begun, self._instructions = True, None
        async for event in turn.events(None if by_argument else text, self._durable):
            yield event

    def _arguments(self, template: Arguments, prompt: str) -> Arguments:
        model = self._recipe.model if self._model is not None else None
        options = (*self._recipe.modes[self._mode], *filled(model or (), {MODEL: self._model or ""}))
        # The prompt last, so that nothing in it is taken for a placeholder.
        return filled(with_options(template, options), {SESSION: self._id or "", PROMPT: prompt})

    async def _found(self, id_: NativeId) -> bool:
        if self._recipe.resume is None:
            return False
        return (await self._launcher.probe(id_, self._directory)).kind is ProbeKind.FOUND_HERE


def _failed(code: ErrorCode, words: str, handed: bool = False) -> Iterator[Event]:
    """A failure that a retry does not change. Unless `handed`, the program was not started."""
    yield Failed(code, words, retryable=False, handed=handed)
    yield Done(Ending.FAILED)
