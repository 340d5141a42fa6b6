"""One turn: a prompt on its way through Claude Code, and what is heard of it until its last event."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.ports.events import Done, Ending, ErrorCode, Event, Used
from clew.programs import json_lines as lines
from clew.providers.claude.failing import failure, failure_in
from clew.providers.claude.steering import Steered
from clew.providers.claude.telling import Telling
from clew.providers.claude.wire import Message


@dataclass(frozen=True, slots=True)
class Told:
    message: Message

    @property
    def tries_again(self) -> bool:
        return self.message.get("subtype") == "api_retry"

    @property
    def shows_life(self) -> bool:
        """Trying again and again is no sign of life, however often it is said."""
        return not self.tries_again and self.message.get("type") != "keep_alive"


@dataclass(frozen=True, slots=True)
class Asked:
    number: str
    request: Message


@dataclass(frozen=True, slots=True)
class Answered:
    """That request is waited for no more: a person answered it, or it was taken back."""

    number: str


@dataclass(frozen=True, slots=True)
class Written:
    """The prompt is in the transcript."""


@dataclass(frozen=True, slots=True)
class Ended:
    words: str


@dataclass(frozen=True, slots=True)
class Silent:
    """Nothing was heard for as long as that may be."""


Heard = Told | Asked | Answered | Written | Ended | Silent


@dataclass
class Turn:
    """`id` is the uuid that the prompt's line gets in the transcript, and what the program tells it back by.

    `accepted` once the program has taken this very prompt: before, it may be at a turn that it began by itself.

    `blocked` when it was held back at the last moment, and `stopped` says why we ended the turn, if we did. `tried` is
    the last failure of the model after which the program tried again, `stands` where it last said it was. `steered` is
    what it is told meanwhile, one after the other; `ended_with` is its last line while that is not settled.
    """

    text: str
    telling: Telling
    id: str
    inbox: "asyncio.Queue[Heard]" = field(default_factory=asyncio.Queue)
    begun: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    blocked: bool = False
    interrupted: bool = False
    over: bool = False
    stopped: tuple[ErrorCode, str] | None = None
    tried: Message | None = None
    stands: Message | None = None
    steering: asyncio.Lock = field(default_factory=asyncio.Lock)
    steered: Steered | None = None
    ended_with: Message | None = None
    answers: tuple[str, ...] = ()
    """What it said at the end of turns of its own making that belong to this one."""

    @property
    def accepted(self) -> bool:
        return self.begun.done() and self.begun.result()

    def accept(self) -> None:
        if not self.begun.done():
            self.begun.set_result(True)

    def leave(self) -> None:
        """Whoever waits to tell it something waits no longer."""
        if not self.begun.done():
            self.begun.set_result(False)
        if self.steered is not None:
            self.steered.settle(False)

    @property
    def tells(self) -> Steered | None:
        """What it was told, and has neither taken nor refused."""
        return None if self.steered is None or self.steered.taken.done() else self.steered

    @property
    def ending(self) -> bool:
        return self.interrupted or self.stopped is not None

    def end(self, shown: Message, used: Used) -> Iterator[Event]:
        """The last events, by the program's own last line."""
        yield used
        reply = self.telling.reply
        failed = failure_in(shown, self.telling.kind, self.telling.reset_at)
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
        """The last events when the program says no more."""
        if self.interrupted and self.stopped is None:
            yield self._done(Ending.INTERRUPTED, self.telling.reply, {})
            return
        code, words = self.stopped or (code, words)
        yield failure(code, words)
        yield self._done(Ending.FAILED, self.telling.reply, {})

    def _done(self, ending: Ending, reply: str, raw: Message) -> Done:
        self.over = True
        self.leave()
        return Done(ending, reply, raw=raw)


def literal(prompt: str) -> str:
    """A prompt that begins with a slash would be run as a command of the program, or be lost as an unknown one."""
    text = str(lines.without_surrogates(prompt))
    return f" {text}" if text.startswith("/") else text
