"""A turn from its prompt to its end, as a stream of events. One that is silent for too long is ended."""

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
from clew.providers.opencode.events import TurnFollower
from clew.providers.opencode.faults import ABORTED, failed, gave_up
from clew.providers.opencode.messages import Json

_LAST_WORDS = 2.0
"""Seconds. The last events of an interrupted message come just after the session is idle."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The server has ended, or the session was closed. `words` say which."""

    words: str
    closed: bool = False


class Turn:
    """The server's events come in by `put`. `events` yields those of the port, and Done as the last."""

    def __init__(
        self, id_: str, directory: str, follower: TurnFollower, deadlines: Deadlines, redactor: Redactor
    ) -> None:
        self._id, self._directory, self._follower = id_, directory, follower
        self._deadlines, self._redactor = deadlines, redactor
        self._queue: asyncio.Queue[Json | Gone] = asyncio.Queue()
        self.messages: list[str] = []
        """The ids of its prompt and of those that were added meanwhile, if they have one."""
        self.withdraw: Callable[[], object] = lambda: None
        """Keeps out prompts that were posted and are not in the session yet."""
        self.interrupted = False
        self.handed = False
        """Whether the prompt may have reached the server."""
        self.started = asyncio.Event()
        """Set once the server works on it. An interrupt before that would have no effect."""
        self.over = asyncio.Event()
        self._since = time.monotonic()
        """When something came last."""

    @property
    def ends_in(self) -> float | None:
        return None if self._follower.asks else self._left()

    def not_handed(self) -> None:
        """The prompt did not reach the server after all. Events since then come from a server that has ended."""
        self.handed = False
        self.started.clear()
        while not self._queue.empty():
            self._queue.get_nowait()

    def put(self, what: Json | Gone) -> None:
        self._queue.put_nowait(what)
        if isinstance(what, Gone) or _shows_work(what, self._id):
            self.started.set()

    async def works(self) -> bool:
        """Wait until the server works on it. False if it does not in time, or the turn is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._deadlines.answer):
                await self.started.wait()
        return self.started.is_set() and not self.over.is_set()

    def expect(self, answers: int) -> None:
        """Wait for so many more answers before the turn is over; negative if a prompt was not taken after all."""
        self._follower.owed += answers
        self.put({})

    def interrupt(self) -> None:
        self.interrupted = self._follower.forgiven = True
        self.put({})

    async def events(self, api: Api) -> AsyncIterator[Event]:
        """Follow the turn, once the prompt was posted."""
        follower = self._follower
        self._since, seen = time.monotonic(), follower.progress
        while not follower.is_over:
            if follower.progress != seen:
                self._since, seen = time.monotonic(), follower.progress
            if (retry := follower.retry) is not None and retry.next - time.time() > self._left():
                # The next attempt is later than the turn may be silent.
                reset = retry.reset(time.time())
                why = gave_up(retry.words, time.monotonic() - self._since, self._redactor, reset)
                async for event in self._cut(api, why):
                    yield event
                return
            item = await self._next(self._left())
            if item is None and (follower.idle or (self.interrupted and not await self._busy(api))):
                break
            if item is None:
                async for event in self._cut(api, self._too_slow()):
                    yield event
                return
            if isinstance(item, Gone):
                for event in self._gone(item):
                    yield event
                return
            for event in follower.follow(item):
                yield event
        for event in self._ended():
            yield event

    def _left(self) -> float:
        if self.interrupted:
            return self._deadlines.close
        if self._follower.idle:
            return self._deadlines.answer if self._follower.owes else _LAST_WORDS
        if self._follower.asks:
            # The turn waits for a person, who may take any time.
            return float("inf")
        limit = self._deadlines.silence if self._follower.begun else self._deadlines.answer
        return max(0.0, self._since + limit - time.monotonic())

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

    # ---------------------------------------------------------------- ends

    def _ended(self) -> list[Event]:
        self.over.set()
        follower, error = self._follower, self._follower.error
        rest = list(follower.unfinished())
        if self.interrupted or (error is not None and error.get("name") == ABORTED):
            return [*rest, Done(Ending.INTERRUPTED, follower.reply)]
        if error is not None:
            return [*rest, failed(error, self._redactor, time.time()), Done(Ending.FAILED, follower.reply)]
        return [*rest, Done(Ending.COMPLETED, follower.reply)]

    def _gone(self, gone: Gone) -> list[Event]:
        self.over.set()
        rest = list(self._follower.unfinished())
        if gone.closed or self.interrupted:
            return [*rest, Done(Ending.INTERRUPTED, self._follower.reply)]
        words = self._redactor.text(f"OpenCode ended in the turn: {gone.words}")
        why = Failed(ErrorCode.PROGRAM_ENDED, words, retryable=True)
        return [*rest, why, Done(Ending.FAILED, self._follower.reply)]

    def _too_slow(self) -> Failed:
        if (retry := self._follower.retry) is not None:
            return gave_up(retry.words, self._deadlines.silence, self._redactor)
        if not self._follower.begun:
            if self._follower.error is not None:
                return failed(self._follower.error, self._redactor, time.time())
            words = f"OpenCode took the prompt, but did not begin within {self._deadlines.answer:g} s."
            return Failed(ErrorCode.TOO_SLOW, words, retryable=True)
        words = f"Nothing came for {self._deadlines.silence:g} s, so the turn was ended."
        return Failed(ErrorCode.TOO_SLOW, words, retryable=True)

    async def _cut(self, api: Api, why: Failed) -> AsyncIterator[Event]:
        """Abort the turn, with the events that still come."""
        self.withdraw()
        with contextlib.suppress(ProgramFault):
            await api.abort(self._id)
            deadline = time.monotonic() + self._deadlines.close
            while not self._follower.is_over and time.monotonic() < deadline:
                item = await self._next(_LAST_WORDS)
                if item is None or isinstance(item, Gone):
                    break
                for event in self._follower.follow(item):
                    yield event
        self.over.set()
        for event in self._follower.unfinished():
            yield event
        yield why
        yield Done(Ending.FAILED, self._follower.reply)


def _shows_work(event: Json, id_: str) -> bool:
    properties = event.get("properties")
    return (
        event.get("type") in ("session.status", "session.error")
        and isinstance(properties, dict)
        and properties.get("sessionID") == id_
    )
