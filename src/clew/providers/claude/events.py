"""Claude Code's messages of a turn as events of the port: text, tools, plans, usage and failures."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson

from clew.kernel import Instant
from clew.ports.events import ErrorCode, Event, Failed, PlanChanged, Text, Thought, ToolFinished, ToolStarted, Used
from clew.programs.rpc import Message
from clew.programs.secrets import Redaction, Redactor

_FILES = ("file_path", "notebook_path", "path")
_PLANS = frozenset({"TaskCreate", "TaskUpdate"})


class EventReader:
    """Reads the messages of one turn. `reply` is the last whole message, `last` the uuid of its line.

    `error_kind` is the program's name for an error. `allowed` are the seconds that the model gave the running tools:
    the program is silent until they end.
    """

    def __init__(self, redactor: Redactor, tasks: Path) -> None:
        self._redactor = redactor
        self._tasks = tasks
        self._parts: Redaction = redactor.stream()
        self._plans: set[str] = set()
        self._running: dict[str, float] = {}
        self.reply = ""
        self.last: str | None = None
        self.error_kind: str | None = None
        self.reset_at: Instant | None = None

    @property
    def allowed(self) -> float:
        return max(self._running.values(), default=0.0)

    def read(self, message: Message) -> Iterator[Event]:
        """Of side threads, tools become events and text does not."""
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
            self.error_kind = str(message["error"])
        if not side:
            self.last = str(message["uuid"]) if message.get("uuid") else self.last
        if inner.get("model") == "<synthetic>":
            # Written by the program itself, mostly about a failure; the end of the turn reports that.
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
    """The agent's list of tasks, which it keeps on disk, one file each."""
    for file in sorted(tasks.glob("*.json"), key=lambda file: (len(file.stem), file.stem)):
        try:
            step = orjson.loads(file.read_bytes())
            yield str(step["subject"]), str(step["status"])
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
            continue


# ---------------------------------------------------------------- usage

_COUNTS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "costUSD")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far. Claude Code sums over its process, so a turn's share is the difference."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0

    @classmethod
    def _sum(cls, models: Mapping[str, Mapping[str, Any]]) -> Self:
        """Over all models: side threads may use another."""
        read, written, kept, made, cost = (sum(each.get(count) or 0 for each in models.values()) for count in _COUNTS)
        return cls(int(read + made), int(written), int(kept), float(cost))

    @classmethod
    def of_turn(cls, result: Mapping[str, Any], before: "Usage") -> tuple[Used, Self]:
        """The usage of the turn that `result` ends, and the sum so far."""
        total = cls._sum(result.get("modelUsage") or {})
        # Later versions also sum over resumed processes, and report the difference themselves.
        new = result.get("model_usage_since_last_result")
        return (cls._sum(new).since(Usage()) if isinstance(new, dict) else total.since(before)), total

    def since(self, before: "Usage") -> Used:
        """A smaller sum means that the program began to count anew."""
        if self.input < before.input or self.output < before.output:
            before = Usage()
        return Used(
            self.input - before.input,
            self.output - before.output,
            self.cached - before.cached,
            round(self.cost - before.cost, 9),
        )


# ---------------------------------------------------------------- failures

# Without an answer from the model there is no status, only the kind of error.
_BY_KIND: Mapping[str, ErrorCode] = {
    "authentication_failed": ErrorCode.NOT_ALLOWED,
    "billing_error": ErrorCode.NOT_ALLOWED,
    "invalid_request": ErrorCode.BAD_REQUEST,
    "model_not_found": ErrorCode.BAD_REQUEST,
    "rate_limit": ErrorCode.USAGE_LIMIT,
    "server_error": ErrorCode.MODEL_UNREACHABLE,
}


def failure(
    code: ErrorCode, words: str, reset_at: Instant | None = None, raw: Mapping[str, Any] | None = None
) -> Failed:
    return Failed(code, words, code.is_passing, reset_at, raw=raw or {})


def failure_in(result: Mapping[str, Any], kind: str | None, reset_at: Instant | None) -> Failed | None:
    """The failure in the program's last line, or None. `subtype` is "success" also for failures; `is_error` is not."""
    if not result.get("is_error"):
        return None
    code = code_of(result.get("api_error_status"), kind, ErrorCode.UNKNOWN)
    errors = "; ".join(str(each) for each in result.get("errors") or ())
    words = str(result.get("result") or errors or result.get("subtype") or "The turn failed.")
    return failure(code, words, reset_at if code is ErrorCode.USAGE_LIMIT else None, result)


def code_of(status: object, kind: str | None, otherwise: ErrorCode) -> ErrorCode:
    if isinstance(status, int):
        return ErrorCode.of_status(status)
    return _BY_KIND.get(kind or "", otherwise)
