"""A turn from its prompt to its end: what comes is told on, what does not come in time is ended."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from clew.ports.events import Done, Ending, ErrorCode, Event, Failed
from clew.ports.provider import Deadlines
from clew.programs.faults import ProgramFault
from clew.programs.secrets import Redactor
from clew.providers.opencode.api import Api
from clew.providers.opencode.events import Following
from clew.providers.opencode.faults import ABORTED, failed, gave_up
from clew.providers.opencode.http import Json

_LAST_WORDS = 2.0
"""Seconds. What was cut short is told just after the session is idle."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The server, or the session itself, is no more; the words say which."""

    words: str
    closed: bool = False


class Turn:
    """Events are put in from outside (`tell`); `events` follows them, and its last is always Done."""

    def __init__(
        self, id_: str, directory: str, following: Following, deadlines: Deadlines, redactor: Redactor
    ) -> None:
        self._id, self._directory, self._following = id_, directory, following
        self._deadlines, self._redactor = deadlines, redactor
        self._queue: asyncio.Queue[Json | Gone] = asyncio.Queue()
        self.messages: list[str] = []
        """The ids of its prompt and of what it was told meanwhile, where they were given any."""
        self.withdraw: Callable[[], object] = lambda: None
        """Keeps out what was handed over and has not come in."""
        self.interrupted = False
        self.handed = False
        """Whether the prompt may have reached the server."""
        self.moved = asyncio.Event()
        """Set once the server works on it. Before that an interrupt would pass it by."""
        self.over = asyncio.Event()

    def not_handed(self) -> None:
        """The prompt was not heard after all, and what was told since was told of a server that is gone."""
        self.handed = False
        self.moved.clear()
        while not self._queue.empty():
            self._queue.get_nowait()

    def tell(self, what: Json | Gone) -> None:
        self._queue.put_nowait(what)
        if isinstance(what, Gone) or _moves(what, self._id):
            self.moved.set()

    async def works(self) -> bool:
        """Whether the server works on it, as soon as it does."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._deadlines.answer):
                await self.moved.wait()
        return self.moved.is_set() and not self.over.is_set()

    def owes(self, answers: int) -> None:
        """What is told meanwhile is answered before the turn is over; fewer when it was not told after all."""
        self._following.owed += answers
        self.tell({})

    def interrupt(self) -> None:
        self.interrupted = self._following.forgiven = True
        self.tell({})

    async def events(self, api: Api) -> AsyncIterator[Event]:
        """Follow it, from when the prompt was taken."""
        following = self._following
        since, seen = time.monotonic(), following.progress
        while not following.settled:
            if following.progress != seen:
                since, seen = time.monotonic(), following.progress
            if (retry := following.retry) is not None and retry.next - time.time() > self._left(since):
                # It will not have moved by the time it is given.
                reset = retry.reset(time.time())
                why = gave_up(retry.words, time.monotonic() - since, self._redactor, reset)
                async for event in self._cut(api, why):
                    yield event
                return
            heard = await self._next(self._left(since))
            if heard is None and (following.idle or (self.interrupted and not await self._busy(api))):
                break
            if heard is None:
                async for event in self._cut(api, self._too_slow()):
                    yield event
                return
            if isinstance(heard, Gone):
                for event in self._gone(heard):
                    yield event
                return
            for event in following.take(heard):
                yield event
        for event in self._ended():
            yield event

    def _left(self, since: float) -> float:
        if self.interrupted:
            return self._deadlines.close
        if self._following.idle:
            return self._deadlines.answer if self._following.owes else _LAST_WORDS
        if self._following.asks:
            # While a person is asked, silence is theirs.
            return float("inf")
        limit = self._deadlines.silence if self._following.begun else self._deadlines.answer
        return max(0.0, since + limit - time.monotonic())

    async def _next(self, seconds: float) -> Json | Gone | None:
        try:
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                return await self._queue.get()
        except TimeoutError:
            return None

    async def _busy(self, api: Api) -> bool:
        with contextlib.suppress(ProgramFault):
            return await api.busy(self._id, self._directory)
        return True

    # ---------------------------------------------------------------- its ends

    def _ended(self) -> list[Event]:
        self.over.set()
        following, error = self._following, self._following.error
        rest = list(following.unfinished())
        if self.interrupted or (error is not None and error.get("name") == ABORTED):
            return [*rest, Done(Ending.INTERRUPTED, following.reply)]
        if error is not None:
            return [*rest, failed(error, self._redactor, time.time()), Done(Ending.FAILED, following.reply)]
        return [*rest, Done(Ending.COMPLETED, following.reply)]

    def _gone(self, gone: Gone) -> list[Event]:
        self.over.set()
        rest = list(self._following.unfinished())
        if gone.closed or self.interrupted:
            return [*rest, Done(Ending.INTERRUPTED, self._following.reply)]
        words = self._redactor.text(f"OpenCode ended in the turn: {gone.words}")
        why = Failed(ErrorCode.PROGRAM_ENDED, words, retryable=True)
        return [*rest, why, Done(Ending.FAILED, self._following.reply)]

    def _too_slow(self) -> Failed:
        if (retry := self._following.retry) is not None:
            return gave_up(retry.words, self._deadlines.silence, self._redactor)
        if not self._following.begun:
            if self._following.error is not None:
                return failed(self._following.error, self._redactor, time.time())
            words = f"OpenCode took the prompt, and did not begin within {self._deadlines.answer:g} s."
            return Failed(ErrorCode.TOO_SLOW, words, retryable=True)
        words = f"Nothing came for {self._deadlines.silence:g} s, so the turn was ended."
        return Failed(ErrorCode.TOO_SLOW, words, retryable=True)

    async def _cut(self, api: Api, why: Failed) -> AsyncIterator[Event]:
        """End it ourselves, and tell what it still says."""
        self.withdraw()
        with contextlib.suppress(ProgramFault):
            await api.abort(self._id)
            deadline = time.monotonic() + self._deadlines.close
            while not self._following.settled and time.monotonic() < deadline:
                heard = await self._next(_LAST_WORDS)
                if heard is None or isinstance(heard, Gone):
                    break
                for event in self._following.take(heard):
                    yield event
        self.over.set()
        for event in self._following.unfinished():
            yield event
        yield why
        yield Done(Ending.FAILED, self._following.reply)


def _moves(event: Json, id_: str) -> bool:
    about = event.get("properties")
    return (
        event.get("type") in ("session.status", "session.error")
        and isinstance(about, dict)
        and about.get("sessionID") == id_
    )
