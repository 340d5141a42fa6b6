"""One turn: the program is started, given its prompt, and followed line by line to its end."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from clew.kernel import NativeId
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed, SessionNamed, Text
from clew.programs.faults import ProgramEnded, ProgramFault, TooSlow
from clew.programs.program import Program
from clew.providers.command.launcher import Launcher


class Turn:
    """`known` is the session's id where there is one; `found` tells whether it can be found by now.

    The first id that the program prints in a turn counts, in every turn: where it is another than the one known, the
    session goes on under that. A line that holds nothing but an id is not shown, unless it turns out to be none.
    """

    def __init__(
        self,
        program: Program,
        launcher: Launcher,
        known: NativeId | None,
        found: Callable[[NativeId], Awaitable[bool]],
    ) -> None:
        self._program, self._launcher, self._found = program, launcher, found
        self._redactor, self._deadlines = launcher.redactor, launcher.settings.deadlines
        self._named = known
        self._looking: asyncio.Task[bool] | None = None
        self._durable = self._printed = False
        self._said: list[str] = []
        self._held_back: tuple[int, str] | None = None
        self.interrupted = False

    async def events(self, prompt: str | None, durable: bool) -> AsyncIterator[Event]:
        self._durable = durable
        failed: Failed | None = None
        try:
            if self._named is not None:
                yield SessionNamed(self._named, durable)
            async for event in self._follow(prompt):
                yield event
        except TimeoutError:
            words = f"The program said nothing for {self._deadlines.silence:g} s."
            failed = Failed(ErrorCode.TOO_SLOW, words, retryable=True)
        except TooSlow as fault:
            failed = Failed(ErrorCode.TOO_SLOW, fault.words, retryable=True)
        except ProgramFault as fault:
            failed = Failed(ErrorCode.PROGRAM_ENDED, self._redactor.text(fault.words), retryable=True)
        finally:
            words = self._program.last_words
            await self._launcher.end(self._program)
        async for event in self._settled():
            yield event
        reply = self._reply()
        if reply:
            yield Text(reply)
        for last in self._ending(failed or self._failure(words), reply):
            yield last

    async def _follow(self, prompt: str | None) -> AsyncIterator[Event]:
        if prompt is not None:
            # A program that does not want its input may have ended by now; its exit status tells how.
            with contextlib.suppress(ProgramEnded):
                await self._program.send(prompt.encode(errors="replace"), self._deadlines.silence)
        await self._program.close_input()
        lines = self._program.lines()
        while True:
            try:
                async with asyncio.timeout(self._deadlines.silence):
                    line = await anext(lines)
            except StopAsyncIteration:
                await self._program.final_words(self._deadlines.close)
                return
            for event in self._on_line(line.decode(errors="replace")):
                yield event
            async for event in self._sighted(wait=False):
                yield event

    def _on_line(self, line: str) -> Iterator[Event]:
        found, known, shown = self._id_in(line), self._named, self._redactor.text(line) + "\n"
        if found is not None:
            self._printed = True
            yield from self._named_as(NativeId(found[1]))
        if found is not None and found[0] == line.strip():
            # A line that holds nothing else is meant for whoever started the program.
            if known not in (None, self._named):
                self._held_back = (len(self._said), shown)
            return
        self._said.append(shown)
        yield Text(shown, final=False)

    def _named_as(self, id_: NativeId) -> Iterator[Event]:
        if id_ == self._named:
            return
        self._named, self._durable = id_, False
        yield SessionNamed(id_, durable=False)
        self._looking = asyncio.create_task(self._look(id_))

    def _id_in(self, line: str) -> re.Match[str] | None:
        """What the pattern finds, unless one was printed or this cannot be an id: it becomes an argument later."""
        recipe = self._launcher.recipe
        found = recipe.session.search(line) if recipe.session is not None and not self._printed else None
        return found if found is not None and re.fullmatch(recipe.shape, found[1] or "") else None

    def _reply(self) -> str:
        if self._held_back is not None and not self._durable:
            at, line = self._held_back
            self._said.insert(at, line)
        return "".join(self._said).strip()

    async def _look(self, id_: NativeId) -> bool:
        return await self._found(id_)

    async def _sighted(self, wait: bool) -> AsyncIterator[Event]:
        looking = self._looking
        if looking is None or self._durable or self._named is None or not (wait or looking.done()):
            return
        self._durable, self._looking = await looking, None
        if self._durable:
            yield SessionNamed(self._named, durable=True)

    async def _settled(self) -> AsyncIterator[Event]:
        """Before the turn is said to have ended it is known whether its session can be found again."""
        async for event in self._sighted(wait=True):
            yield event
        if not self._durable and self._named is not None:
            self._looking = asyncio.create_task(self._look(self._named))
            async for event in self._sighted(wait=True):
                yield event

    def _failure(self, words: str) -> Failed | None:
        status = self._program.returncode
        if status == 0:
            return None
        said = self._redactor.text(words) or "it said nothing"
        if status is None or status < 0:
            return Failed(ErrorCode.PROGRAM_ENDED, f"The program was ended from outside: {said}.", retryable=True)
        # An exit status is the program's own matter: whether another try is worth it, nobody can tell.
        return Failed(ErrorCode.UNKNOWN, f"The program ended with status {status}: {said}.", retryable=False)

    def _ending(self, failed: Failed | None, reply: str) -> Iterator[Event]:
        if self.interrupted:
            yield Done(Ending.INTERRUPTED, reply)
        elif failed is not None:
            yield failed
            yield Done(Ending.FAILED, reply)
        else:
            yield Done(Ending.COMPLETED, reply)

    async def stop(self) -> None:
        self.interrupted = True
        await self._launcher.end(self._program)

    async def leave(self) -> None:
        """Nobody follows it any more: nothing of it goes on."""
        await self.stop()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
