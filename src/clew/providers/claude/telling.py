"""What Claude Code tells during a turn, in the vocabulary of all providers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from clew.kernel import Instant
from clew.ports.events import Event, PlanChanged, Text, Thought, ToolFinished, ToolStarted
from clew.programs.secrets import Redaction, Redactor
from clew.providers.claude.wire import Message

_FILES = ("file_path", "notebook_path", "path")
_PLANS = frozenset({"TaskCreate", "TaskUpdate"})


class Telling:
    """One turn. `reply` is the last whole message, `last` its line's uuid, `kind` what an error was called.

    `allowed` are the seconds that the model allowed what is running now: not a word is heard of it until it ends.
    """

    def __init__(self, redactor: Redactor, tasks: Path) -> None:
        self._redactor = redactor
        self._tasks = tasks
        self._parts: Redaction = redactor.stream()
        self._plans: set[str] = set()
        self._running: dict[str, float] = {}
        self.reply = ""
        self.last: str | None = None
        self.kind: str | None = None
        self.reset_at: Instant | None = None

    @property
    def allowed(self) -> float:
        return max(self._running.values(), default=0.0)

    def take(self, message: Message) -> Iterator[Event]:
        """Side threads count with what they run, never with what they say."""
        side = message.get("parent_tool_use_id") is not None
        match message.get("type"):
            case "assistant":
                yield from self._assistant(message, side)
            case "user":
                yield from self._results(message)
            case "stream_event" if not side:
                yield from self._part(message)
            case "rate_limit_event":
                self._limit(message.get("rate_limit_info") or {})
            case _:
                pass

    def _assistant(self, message: Message, side: bool) -> Iterator[Event]:
        inner = message.get("message") or {}
        if not side and message.get("error"):
            self.kind = str(message["error"])
        if not side:
            self.last = str(message["uuid"]) if message.get("uuid") else self.last
        if inner.get("model") == "<synthetic>":
            # The program itself speaks in the model's place, of a failure mostly; the turn's end tells it.
            return
        raw = self._redactor.value(dict(message))
        for block in (raw.get("message") or {}).get("content") or ():
            match block.get("type"):
                case "text" if not side:
                    yield from self._held_back()
                    self.reply = block.get("text", "")
                    yield Text(self.reply, raw=raw)
                case "thinking" if not side and block.get("thinking"):
                    yield Thought(block["thinking"], raw=raw)
                case "tool_use":
                    yield self._tool(block, raw)
                case _:
                    pass

    def _tool(self, block: Mapping[str, Any], raw: Message) -> Event:
        name, given = str(block.get("name")), block.get("input") or {}
        if name in _PLANS:
            self._plans.add(str(block.get("id")))
        command, limit = given.get("command"), given.get("timeout")
        self._running[str(block.get("id"))] = limit / 1000 if isinstance(limit, int | float) else 0.0
        file = next((given[key] for key in _FILES if isinstance(given.get(key), str)), None)
        return ToolStarted(str(block.get("id")), name, command if isinstance(command, str) else None, file, raw=raw)

    def _results(self, message: Message) -> Iterator[Event]:
        content = (message.get("message") or {}).get("content")
        if message.get("isReplay") or not isinstance(content, list):
            return
        raw = self._redactor.value(dict(message))
        for block in raw["message"]["content"]:
            if block.get("type") != "tool_result":
                continue
            call = str(block.get("tool_use_id"))
            self._running.pop(call, None)
            yield ToolFinished(call, not block.get("is_error"), _text(block.get("content")), raw=raw)
            if call in self._plans:
                shown = self._redactor.text
                yield PlanChanged(tuple((shown(step), shown(state)) for step, state in _steps(self._tasks)), raw=raw)

    def _part(self, message: Message) -> Iterator[Event]:
        event = message.get("event") or {}
        delta = event.get("delta") or {}
        if event.get("type") == "content_block_start":
            self._parts = self._redactor.stream()
        elif delta.get("type") == "text_delta" and (shown := self._parts.feed(str(delta.get("text", "")))):
            yield Text(shown, final=False)

    def _held_back(self) -> Iterator[Event]:
        if rest := self._parts.flush():
            yield Text(rest, final=False)

    def _limit(self, limit: Mapping[str, Any]) -> None:
        if limit.get("status") == "rejected" and isinstance(limit.get("resetsAt"), int | float):
            self.reset_at = float(limit["resetsAt"])


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(block["text"]) for block in blocks if isinstance(block, dict) and "text" in block)


def _steps(tasks: Path) -> Iterator[tuple[str, str]]:
    """The agent's own list of steps, as it keeps it on disk, one file each."""
    for file in sorted(tasks.glob("*.json"), key=lambda file: (len(file.stem), file.stem)):
        try:
            step = orjson.loads(file.read_bytes())
            yield str(step["subject"]), str(step["status"])
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
            continue
