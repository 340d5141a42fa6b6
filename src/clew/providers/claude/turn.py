"""The state of one turn: its prompt, what was received of it, and its last events."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.ports.events import Done, Ending, ErrorCode, Event, Used
from clew.programs import json_lines
from clew.providers.claude.connection import Message
from clew.providers.claude.events import EventReader, failure, failure_in


@dataclass(frozen=True, slots=True)
class Received:
    message: Message

    @property
    def is_retry(self) -> bool:
        return self.message.get("subtype") == "api_retry"

    @property
    def shows_life(self) -> bool:
        """Retries and keep-alives do not count, however many come."""
        return not self.is_retry and self.message.get("type") != "keep_alive"


@dataclass(frozen=True, slots=True)
class Requested:
    number: str
    request: Message


@dataclass(frozen=True, slots=True)
class RequestClosed:
    """A person answered that request, or the program cancelled it."""

    number: str


@dataclass(frozen=True, slots=True)
class PromptWritten:
    """The prompt is in the transcript."""


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    words: str


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing was received within the deadline."""


Signal = Received | Requested | RequestClosed | PromptWritten | ProcessEnded | Silence


@dataclass
class Steer:
    """Words sent within a turn. The program puts them into the turn after the next tool, and echoes them by `id`.

    If no tool follows, it would make a turn of its own of them when this one is over. It asks at the gate before that,
    and the gate refuses, which leaves no trace of the words; so the end of the turn is reported only then. `taken` is
    resolved when the words are part of the turn, or never will be; `refused` when the gate refused them, so the program
    has them no more.
    """

    text: str
    id: str
    refused: bool = False
    taken: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def resolve(self, taken: bool) -> None:
        if not self.taken.done():
            self.taken.set_result(taken)


@dataclass
class Turn:
    """`id` is the uuid of the prompt's line in the transcript; the program echoes the prompt by it.

    `accepted` once the program has taken this prompt; before that it may be at a turn that it began by itself.
    `blocked` when the gate refused the prompt. `stopped` is the reason why Clew ended the turn, if it did. `last_retry`
    is the last failure of the model that the program retried, `last_status` where it last said it was. `steer` is what
    was sent last within the turn; `result` is the program's last line while that steer is unresolved.
    """

    text: str
    reader: EventReader
    id: str
    inbox: "asyncio.Queue[Signal]" = field(default_factory=asyncio.Queue)
    begun: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    blocked: bool = False
    interrupted: bool = False
    over: bool = False
    stopped: tuple[ErrorCode, str] | None = None
    last_retry: Message | None = None
    last_status: Message | None = None
    steering: asyncio.Lock = field(default_factory=asyncio.Lock)
    steer: Steer | None = None
    result: Message | None = None
    answers: tuple[str, ...] = ()
    """The results of turns that the program began by itself and that belong to this one."""

    @property
    def accepted(self) -> bool:
        return self.begun.done() and self.begun.result()

    def accept(self) -> None:
        if not self.begun.done():
            self.begun.set_result(True)

    def release_waiters(self) -> None:
        """Steering callers stop waiting for this turn."""
        if not self.begun.done():
            self.begun.set_result(False)
        if self.steer is not None:
            self.steer.resolve(False)

    @property
    def open_steer(self) -> Steer | None:
        """The steer that the program has neither taken nor lost yet."""
        return None if self.steer is None or self.steer.taken.done() else self.steer

    @property
    def ending(self) -> bool:
        return self.interrupted or self.stopped is not None

    def end(self, shown: Message, used: Used) -> Iterator[Event]:
        """The last events, by the program's own last line."""
        yield used
        reply = self.reader.reply
        failed = failure_in(shown, self.reader.error_kind, self.reader.reset_at)
        if failed is None and not self.blocked and isinstance(shown.get("result"), str):
            reply = "\n\n".join((*self.answers, shown["result"]))
        if self.stopped is not None:
            failed = failure(*self.stopped, raw=shown)
        elif self.interrupted:
            failed = None
        if failed is not None:
            yield failed
            yield self._done(Ending.FAILED, reply, shown)
        else:
            yield self._done(Ending.INTERRUPTED if self.interrupted else Ending.COMPLETED, reply, shown)

    def cut(self, code: ErrorCode, words: str) -> Iterator[Event]:
        """The last events when the program sends no last line."""
        if self.interrupted and self.stopped is None:
            yield self._done(Ending.INTERRUPTED, self.reader.reply, {})
            return
        code, words = self.stopped or (code, words)
        yield failure(code, words)
        yield self._done(Ending.FAILED, self.reader.reply, {})

    def _done(self, ending: Ending, reply: str, raw: Message) -> Done:
        self.over = True
        self.release_waiters()
        return Done(ending, reply, raw=raw)


def literal(prompt: str) -> str:
    """The prompt, not to be run as a command: the program takes text that begins with a slash for one."""
    text = str(json_lines.without_surrogates(prompt))
    return f" {text}" if text.startswith("/") else text
