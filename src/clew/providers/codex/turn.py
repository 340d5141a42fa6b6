"""One turn: what Codex tells of it while it goes on, translated in order."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.kernel import PromptId
from clew.ports.events import Done, Ending, Event, PlanChanged, Text
from clew.programs.secrets import Redaction, Redactor
from clew.providers.codex import items
from clew.providers.codex.failures import failed
from clew.providers.codex.usage import Meter

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    method: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Gone:
    """The program has ended."""

    words: str


Heard = Told | Gone | Event


@dataclass(frozen=True, slots=True)
class _Expected:
    """Words that were sent while the turn goes on."""

    words: str
    id: PromptId | None
    future: "asyncio.Future[bool]"


class Turn:
    """`begun` is set once it has an id, `over` when the program says that it has ended; both when the program is gone.
    `retrying` tells that the model cannot be reached; `running` are the tools that have begun and not ended."""

    def __init__(self, thread: str, meter: Meter, redactor: Redactor) -> None:
        self.over = asyncio.Event()
        self.begun = asyncio.Event()
        self.id: str | None = None
        self.running: dict[str, Json] = {}
        self.retrying = False
        self.interrupted = False
        self._thread, self._meter, self._redactor = thread, meter, redactor
        self._heard: asyncio.Queue[Heard] = asyncio.Queue()
        self._retried = False
        self.reply = ""
        self._streams: dict[str, Redaction] = {}
        self.steering = asyncio.Lock()
        """Held while something is told within the turn."""
        self.taken: set[PromptId] = set()
        """The prompts that it told back."""
        self.kept = False
        """Whether it completed, and is written down."""
        self._prompts = 0
        self._expected: _Expected | None = None
        meter.next_turn()
        self.moved()

    # ---------------------------------------------------------------- as it comes in

    def take(self, method: str, arguments: Json) -> None:
        """Nothing is lost while nobody reads; what cannot wait is noted at once."""
        if method == "error":
            self.retrying = bool(arguments.get("willRetry"))
        elif method.startswith(("item/", "turn/")):
            # Also a sub-agent's: the turn waits for it.
            self.moved()
            self.retrying = False
        if arguments.get("threadId") == self._thread:
            self._note(method, arguments)
        self._heard.put_nowait(Told(method, arguments))

    def begin(self, id_: str) -> None:
        self.id = id_
        self.begun.set()

    def moved(self) -> None:
        """Silence is counted from here on."""
        self._progress = asyncio.get_running_loop().time()

    def tell(self, event: Event) -> None:
        self.moved()
        self._heard.put_nowait(event)

    def end(self) -> None:
        """Nothing more is taken into it."""
        self.over.set()
        self.begun.set()
        self._told_back(False)

    def gone(self, words: str) -> None:
        self.end()
        self._heard.put_nowait(Gone(words))

    def expect(self, words: str, id_: PromptId | None) -> "asyncio.Future[bool]":
        """Whether these words become part of the turn: known once they are told back, or the turn is over."""
        self._expected = _Expected(words, id_, asyncio.get_running_loop().create_future())
        return self._expected.future

    def _told_back(self, taken: bool) -> None:
        if self._expected is not None and not self._expected.future.done():
            self._expected.future.set_result(taken)

    async def next(self, silence: float | None) -> Heard | None:
        """What came next; None when nothing has moved for that long."""
        while True:
            left = None if silence is None else self._progress + silence - asyncio.get_running_loop().time()
            if left is not None and left <= 0 and self._heard.empty():
                return None
            try:
                async with asyncio.timeout(left):
                    return await self._heard.get()
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
                self._hear_prompt(item)
        elif method == "turn/completed" and self._is_this(arguments):
            self.end()

    def _hear_prompt(self, item: Json) -> None:
        """Known by its id. Without one, the first is the turn's own, whatever else reads the same."""
        self._prompts += 1
        words = "".join(str(part.get("text", "")) for part in item.get("content") or () if isinstance(part, Mapping))
        id_, expected = item.get("clientId"), self._expected
        if id_ is not None:
            self.taken.add(PromptId(str(id_)))
        if expected is None:
            return
        by_id = id_ is not None and expected.id is not None
        if id_ == expected.id if by_id else self._prompts > 1 and words == expected.words:
            self._told_back(True)

    def _is_this(self, arguments: Json) -> bool:
        turn = arguments.get("turn")
        told = turn.get("id") if isinstance(turn, Mapping) else arguments.get("turnId")
        return told == self.id

    # ---------------------------------------------------------------- as it is told on

    def events(self, told: Told, limits: Json) -> Iterator[Event]:
        """Only what this turn of this thread says: side threads and earlier turns have none of it."""
        if told.arguments.get("threadId") != self._thread or not self._is_this(told.arguments):
            return
        arguments = self._redactor.value(told.arguments)
        raw = {"method": told.method, "params": arguments}
        match told.method:
            case "item/agentMessage/delta":
                yield from self._part(told, raw)
            case "item/started":
                yield from items.begun(arguments.get("item") or {}, raw)
            case "item/completed":
                item = arguments.get("item") or {}
                if item.get("type") == "agentMessage":
                    self.reply = str(item.get("text", ""))
                    yield from self._rest(str(item.get("id")), raw)
                yield from items.ended(item, raw)
            case "turn/plan/updated":
                steps = arguments.get("plan") or ()
                yield PlanChanged(tuple((str(step.get("step")), str(step.get("status"))) for step in steps), raw=raw)
            case "thread/tokenUsage/updated":
                yield self._meter.used(arguments.get("tokenUsage") or {}, raw)
            case "error":
                self._retried = self._retried or bool(arguments.get("willRetry"))
            case "turn/completed":
                yield from self._end(arguments.get("turn") or {}, limits, raw)
            case _:
                pass

    def _part(self, told: Told, raw: Json) -> Iterator[Event]:
        """A secret may be cut in two by the parts, so a part is shown as far as it cannot be the beginning of one."""
        stream = self._streams.setdefault(str(told.arguments.get("itemId")), self._redactor.stream())
        shown = stream.feed(str(told.arguments.get("delta", "")))
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
