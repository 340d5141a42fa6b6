"""One turn of Codex: its state, its notifications as events in order, and whether it is written to disk."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import PromptId
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed, PlanChanged, Retrying, Text
from clew.programs.secrets import Redaction, Redactor
from clew.providers.codex.events import Meter, failed, finished_events, started_events
from clew.providers.codex.rollout import written
from clew.providers.codex.server import Json


@dataclass(frozen=True, slots=True)
class Notification:
    method: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Gone:
    """The program has ended."""

    words: str


Signal = Notification | Gone | Event


@dataclass(frozen=True, slots=True)
class _Expected:
    """Words that were sent within the turn."""

    words: str
    id: PromptId | None
    future: "asyncio.Future[bool]"


class Turn:
    """`begun` is set when the turn has an id, `over` when Codex says that it has ended; both when the program is gone.

    `retrying`: the model cannot be reached. `running` are the tools that have begun and not ended.
    """

    def __init__(self, thread: str, meter: Meter, redactor: Redactor) -> None:
        self.over = asyncio.Event()
        self.begun = asyncio.Event()
        self.id: str | None = None
        self.running: dict[str, Json] = {}
        self.retrying = False
        self.interrupted = False
        self._thread, self._meter, self._redactor = thread, meter, redactor
        self._inbox: asyncio.Queue[Signal] = asyncio.Queue()
        self._retried = False
        self.reply = ""
        self._streams: dict[str, Redaction] = {}
        self.steering = asyncio.Lock()
        """Held while words are sent within the turn."""
        self.echoed: set[PromptId] = set()
        """The prompts that Codex echoed."""
        self.is_stored = False
        """Whether it completed and is on disk."""
        self._prompts = 0
        self._expected: _Expected | None = None
        meter.next_turn()
        self.moved()

    # ---------------------------------------------------------------- on arrival

    def receive(self, method: str, arguments: Json) -> None:
        """Queue a notification; what cannot wait for the reader is noted at once."""
        if method == "error":
            self.retrying = bool(arguments.get("willRetry"))
        elif method.startswith(("item/", "turn/")):
            # Also a sub-agent's: the turn waits for that.
            self.moved()
            self.retrying = False
        if arguments.get("threadId") == self._thread:
            self._note(method, arguments)
        self._inbox.put_nowait(Notification(method, arguments))

    def begin(self, id_: str) -> None:
        self.id = id_
        self.begun.set()

    def moved(self) -> None:
        """Silence is measured from now on."""
        self._progress = asyncio.get_running_loop().time()

    def add(self, event: Event) -> None:
        self.moved()
        self._inbox.put_nowait(event)

    def end(self) -> None:
        """No more words become part of it."""
        self.over.set()
        self.begun.set()
        self._resolve_steer(False)

    def gone(self, words: str) -> None:
        self.end()
        self._inbox.put_nowait(Gone(words))

    def expect(self, words: str, id_: PromptId | None) -> "asyncio.Future[bool]":
        """Whether these words become part of the turn: resolved when Codex echoes them, or the turn is over."""
        self._expected = _Expected(words, id_, asyncio.get_running_loop().create_future())
        return self._expected.future

    def _resolve_steer(self, taken: bool) -> None:
        if self._expected is not None and not self._expected.future.done():
            self._expected.future.set_result(taken)

    def left(self, silence: float) -> float:
        """Seconds until there was no progress for `silence` seconds."""
        return self._progress + silence - asyncio.get_running_loop().time()

    async def next(self, silence: float | None) -> Signal | None:
        """The next signal; None if there was no progress for `silence` seconds."""
        while True:
            left = None if silence is None else self.left(silence)
            if left is not None and left <= 0 and self._inbox.empty():
                return None
            try:
                async with asyncio.timeout(left):
                    return await self._inbox.get()
            except TimeoutError:
                continue

    def _note(self, method: str, arguments: Json) -> None:
        item, turn = arguments.get("item"), arguments.get("turn")
        if method == "turn/started" and self.id is None and isinstance(turn, Mapping):
            self.begin(str(turn.get("id")))
        elif method == "item/started" and isinstance(item, Mapping):
            self.running[str(item.get("id"))] = item
        elif method == "item/completed" and isinstance(item, Mapping):
            self.running.pop(str(item.get("id")), None)
            if item.get("type") == "userMessage" and self._is_this(arguments):
                self._prompt_echoed(item)
        elif method == "turn/completed" and self._is_this(arguments):
            self.end()

    def _prompt_echoed(self, item: Json) -> None:
        """Matched by id. Without ids, the first echo is the turn's own prompt, even if the texts are equal."""
        self._prompts += 1
        words = "".join(str(part.get("text", "")) for part in item.get("content") or () if isinstance(part, Mapping))
        id_, expected = item.get("clientId"), self._expected
        if id_ is not None:
            self.echoed.add(PromptId(str(id_)))
        if expected is None:
            return
        by_id = id_ is not None and expected.id is not None
        if id_ == expected.id if by_id else self._prompts > 1 and words == expected.words:
            self._resolve_steer(True)

    def _is_this(self, arguments: Json) -> bool:
        turn = arguments.get("turn")
        id_ = turn.get("id") if isinstance(turn, Mapping) else arguments.get("turnId")
        return id_ == self.id

    # ---------------------------------------------------------------- as events

    def events(self, notification: Notification, limits: Json) -> Iterator[Event]:
        """Only of this turn of this thread, not of side threads and earlier turns."""
        if notification.arguments.get("threadId") != self._thread or not self._is_this(notification.arguments):
            return
        arguments = self._redactor.value(notification.arguments)
        raw = {"method": notification.method, "params": arguments}
        match notification.method:
            case "item/agentMessage/delta":
                yield from self._part(notification, raw)
            case "item/started":
                yield from started_events(arguments.get("item") or {}, raw)
            case "item/completed":
                item = arguments.get("item") or {}
                if item.get("type") == "agentMessage":
                    self.reply = str(item.get("text", ""))
                    yield from self._rest(str(item.get("id")), raw)
                yield from finished_events(item, raw)
            case "turn/plan/updated":
                steps = arguments.get("plan") or ()
                yield PlanChanged(tuple((str(step.get("step")), str(step.get("status"))) for step in steps), raw=raw)
            case "thread/tokenUsage/updated":
                yield self._meter.used(arguments.get("tokenUsage") or {}, raw)
            case "error":
                if arguments.get("willRetry"):
                    self._retried = True
                    yield Retrying(str((arguments.get("error") or {}).get("message") or "The model failed."), raw=raw)
            case "turn/completed":
                yield from self._end(arguments.get("turn") or {}, limits, raw)
            case _:
                pass

    def _part(self, notification: Notification, raw: Json) -> Iterator[Event]:
        """A secret may be split between two parts, so the end of a part that may begin one is held back."""
        stream = self._streams.setdefault(str(notification.arguments.get("itemId")), self._redactor.stream())
        shown = stream.feed(str(notification.arguments.get("delta", "")))
        if shown:
            yield Text(shown, final=False, raw={**raw, "params": {**raw["params"], "delta": shown}})

    def _rest(self, item: str, raw: Json) -> Iterator[Event]:
        stream = self._streams.pop(item, None)
        if stream is not None and (held := stream.flush()):
            yield Text(held, final=False, raw=raw)

    def _end(self, turn: Json, limits: Json, raw: Json) -> Iterator[Event]:
        match turn.get("status"):
            case "completed":
                yield Done(Ending.COMPLETED, self.reply, raw=raw)
            case "interrupted":
                yield Done(Ending.INTERRUPTED, self.reply, raw=raw)
            case _:
                yield failed(turn.get("error") or {}, self._retried, limits, raw)
                yield Done(Ending.FAILED, self.reply, raw=raw)


_WRITING = 5.0
"""Seconds. Codex has written a turn by the time it reports its end, unless it cannot."""


class TurnFile:
    """Checks that a turn is written to the session's file. Made when the turn begins.

    Codex reports a turn as completed even when its disk is full, and does not know of it later.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._start = path, 0
        with contextlib.suppress(OSError):
            self._start = path.stat().st_size if path is not None else 0

    async def failure(self, turn: str | None) -> Failed | None:
        path, start = self._path, self._start
        if path is None or turn is None:
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WRITING):
                while not await asyncio.to_thread(written, path, start, turn):
                    await asyncio.sleep(0.05)
                return None
        words = (
            f"Codex answered, and could not write the turn to {path}: it will not know of it. Make room on the disk."
        )
        return Failed(ErrorCode.UNKNOWN, words, retryable=False)
