"""What the model does with a request: told by lines of the last prompt, or by the test.

A line of the last prompt may be, in a request that offers tools:

    RUN: <command>          call the shell tool
    ESCALATE: <command>     the same, asking to leave the sandbox (Codex)
    WRITE: <path> <text>    write a file with the agent's own tool; the path is absolute
    CALL: <tool> <json>     call any tool with just these arguments
    SAY: <text>             the answer, instead of what was seen
    THINK: <text>           think this before answering
    SLOW: <seconds>         stream the answer over that time
    HANG                    begin to answer, then never go on
    CUT                     begin to answer, then drop the connection

Calls are made one after the other, each when the result of the one before has come back. Then comes the answer.

A test may teach it such lines for a prompt that has none, so that people in a story need not speak like that.
"""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tests.providers.loopback.heard import Format, Heard, Json


class Usage(NamedTuple):
    """What every answer says it used. Anthropic counts the cached tokens beside the input, OpenAI within it."""

    input: int = 100
    output: int = 7
    cached: int = 20
    reasoning: int = 2


USAGE = Usage()
TITLE = "A loopback title"
BEGINNING = "Beginning"


@dataclass(frozen=True)
class Say:
    text: str
    thought: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Call:
    tool: str
    arguments: Mapping[str, Any]
    thought: str = ""


@dataclass(frozen=True)
class Fail:
    """`resets_at` is the second since 1970 at which a usage limit ends, said in each format's own way."""

    status: int
    body: Json | None = None
    retry_after: float | None = None
    resets_at: int | None = None


@dataclass(frozen=True)
class Hang:
    """`mute`: not even the head of an answer."""

    mute: bool = False


@dataclass(frozen=True)
class Cut:
    pass


Spoken = Say | Call
Fault = Fail | Hang | Cut
Answer = Spoken | Fault


@dataclass(frozen=True)
class Sent:
    """One server-sent event; `piece` marks a part of the answer's text."""

    data: Json | str
    name: str = ""
    piece: bool = False


class Failure(NamedTuple):
    body: Json
    headers: dict[str, str]


class Dialect(Protocol):
    """One wire format: reads its requests, writes its answers, and knows the tools of its agent."""

    @property
    def format(self) -> Format: ...

    def read(self, body: Json) -> Heard: ...

    def events(self, spoken: Spoken, model: str) -> list[Sent]: ...

    def whole(self, spoken: Spoken, model: str) -> Json: ...

    def failure(self, fail: Fail) -> Failure: ...

    def shell(self, command: str, tools: tuple[str, ...], escalate: bool) -> Call | None: ...

    def writing(self, path: str, text: str, tools: tuple[str, ...]) -> Call | None: ...


LINE = re.compile(r"^(?P<word>RUN|ESCALATE|WRITE|CALL|SAY|THINK|SLOW):[ \t]*(?P<rest>.*?)[ \t]*$", re.MULTILINE)
ALONE = re.compile(r"^(?P<word>HANG|CUT)[ \t]*$", re.MULTILINE)
STEPS = ("RUN", "ESCALATE", "WRITE", "CALL")


def follow(heard: Heard, dialect: Dialect, taught: Sequence[tuple[str, str]] = ()) -> Answer:
    """What the last prompt tells the model to do now, or what it was last taught for such a prompt."""
    if heard.side:
        return Say(TITLE if "title" in heard.system.lower() else saw(heard))
    prompt = heard.prompts[-1] if heard.prompts else ""
    prompt = next((lines for words, lines in reversed(taught) if words in prompt), prompt)
    alone = ALONE.search(prompt)
    if alone:
        return Hang() if alone["word"] == "HANG" else Cut()
    lines = [(found["word"], found["rest"]) for found in LINE.finditer(prompt)]
    told = dict(lines)
    steps = [(word, rest) for word, rest in lines if word in STEPS]
    if len(heard.pending) < len(steps):
        word, rest = steps[len(heard.pending)]
        return _call(word, rest, heard.tools, dialect) or Say(f"NO TOOL for {word} among {', '.join(heard.tools)}")
    return Say(told.get("SAY") or _reply(heard), told.get("THINK", ""), float(told.get("SLOW") or 0))


def _call(word: str, rest: str, tools: tuple[str, ...], dialect: Dialect) -> Call | None:
    first, _, after = rest.partition(" ")
    if word == "WRITE":
        return dialect.writing(first, after, tools)
    if word == "CALL":
        return Call(first, json.loads(after or "{}")) if first in tools else None
    return dialect.shell(rest, tools, escalate=word == "ESCALATE")


def _reply(heard: Heard) -> str:
    results = heard.pending
    return f"TOOL SAID: {results[-1].text.strip()[-600:]}\n{saw(heard)}" if results else saw(heard)


def saw(heard: Heard) -> str:
    """The line that proves which history a request carried."""
    prompts = heard.prompts or ("",)
    first, last = (json.dumps(text[:60], ensure_ascii=False) for text in (prompts[0], prompts[-1]))
    return f"SAW users={len(heard.prompts)} first={first} last={last}"


@dataclass
class Script:
    """The fault that a test has set, if any, and otherwise what the prompts say."""

    _fault: Fault | None = None
    _left: int | None = None
    _taught: list[tuple[str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def set(self, fault: Fault | None, times: int | None = None) -> None:
        with self._lock:
            self._fault, self._left = fault, times

    def teach(self, words: str, lines: str) -> None:
        with self._lock:
            self._taught.append((words, lines))

    def answer(self, heard: Heard, dialect: Dialect) -> Answer:
        return self._take(heard.side) or follow(heard, dialect, tuple(self._taught))

    def _take(self, side: bool) -> Fault | None:
        """A side request fails with the others but is not counted: how many there are is not the test's to know."""
        with self._lock:
            fault = self._fault
            if fault and self._left is not None and not side:
                self._left -= 1
                if self._left <= 0:
                    self._fault = None
            return fault


def pieces(text: str, count: int = 10) -> list[str]:
    size = max(1, -(-len(text) // count))
    return [text[at : at + size] for at in range(0, len(text), size)]
