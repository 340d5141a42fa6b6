"""One turn: a prompt on its way through Claude Code, and what is heard of it until its last event."""

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.ports.events import Done, Ending, ErrorCode, Event, Used
from clew.programs import lines
from clew.providers.claude.failing import failure, failure_in
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
    """`accepted` once the program has taken this very prompt: before, it may be at a turn that it began by itself.

    `blocked` when it was held back at the last moment, and `stopped` says why we ended the turn, if we did. `tried` is
    the last failure of the model after which the program tried again, `stands` where it last said it was.
    """

    text: str
    telling: Telling
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    inbox: "asyncio.Queue[Heard]" = field(default_factory=asyncio.Queue)
    accepted: bool = False
    blocked: bool = False
    interrupted: bool = False
    over: bool = False
    stopped: tuple[ErrorCode, str] | None = None
    tried: Message | None = None
    stands: Message | None = None

    @property
    def ending(self) -> bool:
        return self.interrupted or self.stopped is not None

    def end(self, shown: Message, used: Used) -> Iterator[Event]:
        """The last events, by the program's own last line."""
        yield used
        reply = self.telling.reply
        failed = failure_in(shown, self.telling.kind, self.telling.reset_at)
        if failed is None and not self.blocked and isinstance(shown.get("result"), str):
            reply = shown["result"]
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
        return Done(ending, reply, raw=raw)


def literal(prompt: str) -> str:
    """A prompt that begins with a slash would be run as a command of the program, or be lost as an unknown one."""
    text = str(lines.whole(prompt))
    return f" {text}" if text.startswith("/") else text
