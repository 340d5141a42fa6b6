"""Prompts in the lines of a history: which there are, in which turn, and what follows one of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clew.kernel import digest_of
from clew.providers.codex.history import Line

_TOLD = frozenset({"user", "developer", "system"})
"""The roles of what is told to a model; all else was said or done by it."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One that is in a history. `turn` is how many turns had begun by then, its own among them; `first` is whether it
    began that turn. `client` is the id that its sender chose; None where it was cut off before that was written, or
    where a version of Codex keeps none. `shown` is whether a model is shown it when the thread is resumed."""

    at: int
    began: int
    turn: int
    first: bool
    client: str | None
    digest: str
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Followed:
    """What came behind a prompt. `reply` is the last thing the agent said in that turn."""

    anything: bool
    completed: bool
    reply: str
    failure: str


def prompts_in(lines: Sequence[Line | None], before: int = 0) -> Sequence[Prompt]:
    """In their order. `before` is how many turns there were before these lines."""
    reading = _Reading(before)
    for at, line in enumerate(lines):
        if line is not None:
            reading.take(at, line)
    return reading.end()


class _Reading:
    def __init__(self, before: int) -> None:
        self._turn, self._began, self._first = before, 0, True
        self._found: list[Prompt] = []
        self._told: list[tuple[int, str]] = []
        """What a model is shown as the user's in this turn and no event has named yet: its line and its digest."""

    def take(self, at: int, line: Line) -> None:
        if line.event == "task_started":
            self._close()
            self._turn, self._began = self._turn + 1, at
        elif line.type == "response_item" and line.payload.get("role") == "user":
            self._told.append((at, _digest(line.payload.get("content"))))
        elif (said := _said(line)) is not None:
            digest, client = said
            told = next((each for each in self._told if each[1] == digest), None)
            if told is not None:
                self._told.remove(told)
            self._found.append(Prompt(at, self._began, self._turn, self._first, client, digest, told is not None))
            self._first = False

    def end(self) -> Sequence[Prompt]:
        self._close()
        return sorted(self._found, key=lambda prompt: prompt.at)

    def _close(self) -> None:
        """What no event named was cut off before it, or is of an older version; or it is the program's own."""
        for at, digest in self._told:
            self._found.append(Prompt(at, self._began, self._turn, self._first, None, digest))
        self._told, self._first = [], True


def followed(lines: Sequence[Line | None], prompt: Prompt) -> Followed:
    began = lines[prompt.began]
    turn = began.payload.get("turn_id") if began is not None else None
    anything, completed, reply, failure = False, False, "", ""
    for at, line in enumerate(lines[prompt.began + 1 :], prompt.began + 1):
        if line is not None and line.event == "task_started":
            break
        if line is None or _turn_of(line) not in (None, turn):
            # The end of a command that an earlier turn left running is told in a later one.
            continue
        item = _item(line)
        if item.get("type") == "AgentMessage":
            reply = _text(item.get("content"))
        anything = anything or (at > prompt.at and _is_the_agents(line))
        if line.event == "task_complete":
            error = line.payload.get("error")
            failure = str(error.get("message") or error) if isinstance(error, Mapping) else ""
            completed = error is None
    return Followed(anything, completed, reply, failure)


def _is_the_agents(line: Line) -> bool:
    if line.type == "response_item":
        return line.payload.get("role") not in _TOLD
    return _item(line).get("type") not in (None, "UserMessage", "HookPrompt")


def _turn_of(line: Line) -> Any:
    kept = line.payload.get("internal_chat_message_metadata_passthrough")
    return line.payload.get("turn_id") or (kept.get("turn_id") if isinstance(kept, Mapping) else None)


def _said(line: Line) -> tuple[str, str | None] | None:
    """The digest and the client's id of a prompt's event."""
    item = _item(line)
    return (_digest(item.get("content")), item.get("client_id")) if item.get("type") == "UserMessage" else None


def _item(line: Line) -> Mapping[str, Any]:
    item = line.payload.get("item") if line.event == "item_completed" else None
    return item if isinstance(item, Mapping) else {}


def _digest(content: Any) -> str:
    return digest_of(_text(content))


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else ()
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))
