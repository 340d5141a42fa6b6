"""One turn of a command: it gets the prompt, and its output is read line by line to its end."""

import asyncio
import contextlib
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from clew.kernel import NativeId
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed, SessionNamed, Text
from clew.programs.faults import ProgramEnded, ProgramFault
from clew.programs.program import Program
from clew.providers.command.launcher import Launcher


class Turn:
    """`known` is the session's id, if it has one. `found` returns whether the program has a session of that id.

    The first id that the program prints in a turn counts; if it differs from `known`, the session continues under it. A
    line that holds only an id is not shown, unless no session of that id is found.
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
        self._probing: asyncio.Future[bool] | None = None
        self._durable = self._printed = False
        self._said: list[str] = []
        self._held_back: tuple[int, str] | None = None
        self.interrupted = False
        self._quiet_since = asyncio.get_running_loop().time()

    @property
    def ends_in(self) -> float:
        return self._quiet_since + self._deadlines.silence - asyncio.get_running_loop().time()

    async def events(self, prompt: str | None, durable: bool) -> AsyncIterator[Event]:
        self._durable = durable
        failed: Failed | None = None
        # Beside reading: a program may print before it reads a long prompt to its end.
        sending = asyncio.create_task(self._send(prompt))
        try:
            if self._named is not None:
                yield SessionNamed(self._named, durable)
            async for event in self._follow():
                yield event
        except TimeoutError:
            words = f"The program said nothing for {self._deadlines.silence:g} s."
            failed = Failed(ErrorCode.TOO_SLOW, words, retryable=True)
        except ProgramFault as fault:
            failed = Failed(ErrorCode.PROGRAM_ENDED, self._redactor.text(fault.words), retryable=True)
        finally:
            words = self._program.last_words
            sending.cancel()
            await self._launcher.end(self._program)
        async for event in self._await_durable():
            yield event
        reply = self._reply()
        if reply:
            yield Text(reply)
        for last in self._ending(failed or self._failure(words), reply):
            yield last

    async def _send(self, prompt: str | None) -> None:
        """No deadline of its own, so that no program takes the beginning of a prompt for all of it: the turn ends when
        the program has been silent for too long."""
        if prompt is not None:
            # A program that does not read its input may have ended; its exit status says how.
            with contextlib.suppress(ProgramEnded):
                await self._program.send(prompt.encode(errors="replace"), math.inf)
        await self._program.close_input()

    async def _follow(self) -> AsyncIterator[Event]:
        lines = self._program.lines()
        while True:
            self._quiet_since = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(self._deadlines.silence):
                    line = await anext(lines)
            except StopAsyncIteration:
                await self._program.final_words(self._deadlines.close)
                return
            for event in self._on_line(line.decode(errors="replace")):
                yield event
            async for event in self._found_event(wait=False):
                yield event

    def _on_line(self, line: str) -> Iterator[Event]:
        found, known, shown = self._id_in(line), self._named, self._redactor.text(line) + "\n"
        if found is not None:
            self._printed = True
            yield from self._named_as(NativeId(found[1]))
        if found is not None and found[0] == line.strip():
            # A line that holds nothing else is meant for Clew.
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
        self._probing = asyncio.ensure_future(self._found(id_))

    def _id_in(self, line: str) -> re.Match[str] | None:
        """The first match of the turn, if it has the shape of an id: it becomes an argument later."""
        recipe = self._launcher.recipe
        found = recipe.session.search(line) if recipe.session is not None and not self._printed else None
        return found if found is not None and re.fullmatch(recipe.shape, found[1] or "") else None

    def _reply(self) -> str:
        if self._held_back is not None and not self._durable:
            at, line = self._held_back
            self._said.insert(at, line)
        return "".join(self._said).strip()

    async def _found_event(self, wait: bool) -> AsyncIterator[Event]:
        probing = self._probing
        if probing is None or self._durable or self._named is None or not (wait or probing.done()):
            return
        self._durable, self._probing = await probing, None
        if self._durable:
            yield SessionNamed(self._named, durable=True)

    async def _await_durable(self) -> AsyncIterator[Event]:
        """Before Done it must be known whether the session can be found again."""
        async for event in self._found_event(wait=True):
            yield event
        if not self._durable and self._named is not None:
            self._probing = asyncio.ensure_future(self._found(self._named))
            async for event in self._found_event(wait=True):
                yield event

    def _failure(self, words: str) -> Failed | None:
        status = self._program.returncode
        if status == 0:
            return None
        said = self._redactor.text(words) or "it said nothing"
        if status is None or status < 0:
            return Failed(ErrorCode.PROGRAM_ENDED, f"The program was killed: {said}.", retryable=True)
        # Clew does not know what an exit status means, so it does not retry.
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
        """Stop the program and the probe, if they still run."""
        await self.stop()
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait([self._probing])
