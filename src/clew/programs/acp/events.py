"""An agent's updates during a turn, turned into events of the port; and why a turn failed."""

from collections.abc import Iterator, Mapping
from typing import Any

from clew.ports.events import ErrorCode, Event, Failed, PlanChanged, Raw, Text, Thought, ToolFinished, ToolStarted
from clew.programs.acp.tool_call import Tool, text_of
from clew.programs.rpc import CallRefused
from clew.programs.secrets import Redaction, Redactor


class TurnEvents:
    """The events of one turn. `reply` is the last complete message."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._tools: dict[str, Tool] = {}
        self._message = _Parts(redactor)
        self._thought = _Parts(redactor)
        self.reply = ""

    def update(self, update: Mapping[str, Any]) -> Iterator[Event]:
        raw: Raw = self._redactor.value(dict(update))
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                if self._message.is_other(update):
                    yield from self.flush()
                for part in self._message.add(update):
                    yield Text(part, final=False, raw=_redacted(raw, part))
            case "agent_thought_chunk":
                for part in self._thought.add(update):
                    yield Thought(part, raw=_redacted(raw, part))
            case "tool_call" | "tool_call_update":
                yield from self.flush()
                yield from self._on_tool(update, raw)
            case "plan":
                entries = [each for each in raw.get("entries") or () if isinstance(each, Mapping)]
                yield PlanChanged(
                    tuple((str(each.get("content", "")), str(each.get("status", ""))) for each in entries), raw=raw
                )
            case _:
                return

    def flush(self) -> Iterator[Event]:
        """The message is complete: something else came, or nothing more will."""
        for part in self._thought.rest():
            yield Thought(part)
        for part in self._message.rest():
            yield Text(part, final=False)
        text = self._message.end()
        self._thought.end()
        if text:
            self.reply = text
            yield Text(text)

    def asked_about(self, said: Mapping[str, Any]) -> tuple[Tool, list[Event]]:
        """The tool that a permission request is about, with its start if that was not reported before."""
        tool = self._merged(said)
        return tool, [*self.flush(), *self._begin(tool, self._redactor.value(dict(said)))]

    def _on_tool(self, update: Mapping[str, Any], raw: Raw) -> Iterator[Event]:
        tool = self._merged(update)
        if tool.known:
            yield from self._begin(tool, raw)
        if tool.ended and not tool.finished:
            tool.finished = True
            yield ToolFinished(tool.id, tool.ok, self._redactor.text(tool.output), raw=raw)

    def _merged(self, said: Mapping[str, Any]) -> Tool:
        id_ = str(said.get("toolCallId", ""))
        tool = self._tools.setdefault(id_, Tool(id_))
        tool.merge(said)
        return tool

    def _begin(self, tool: Tool, raw: Raw) -> Iterator[Event]:
        if not tool.started:
            tool.started = True
            name, command, file = self._redactor.value([tool.name, tool.command, tool.file])
            yield ToolStarted(tool.id, name, command, file, raw=raw)


class _Parts:
    """The parts of one message. Text that may be the beginning of a secret is held back."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._stream: Redaction = redactor.stream()
        self._shown: list[str] = []
        self._id: object = None

    def is_other(self, update: Mapping[str, Any]) -> bool:
        """Whether the update belongs to another message than the parts so far."""
        return bool(self._shown) and update.get("messageId") != self._id

    def add(self, update: Mapping[str, Any]) -> Iterator[str]:
        self._id = update.get("messageId")
        yield from self._show(self._stream.feed(text_of(update.get("content"))))

    def rest(self) -> Iterator[str]:
        yield from self._show(self._stream.flush())

    def end(self) -> str:
        text, self._shown = "".join(self._shown), []
        return text

    def _show(self, part: str) -> Iterator[str]:
        if part:
            self._shown.append(part)
            yield part


def _redacted(raw: Raw, part: str) -> Raw:
    """The update with the redacted part: the raw one may hold half a secret, which is not recognised."""
    return {**raw, "content": {"type": "text", "text": part}}


_LOGIN_NEEDED = -32000
_STATUS = ("status", "statusCode", "httpStatusCode", "http_status_code", "status_code")
_RESET = ("resetAt", "resetsAt", "reset_at", "resets_at")


def failure(refusal: CallRefused, redactor: Redactor) -> Failed:
    """By the error's code and an HTTP status in its data. Text alone leaves it unknown, and unknown is not retried."""
    fields = dict(_fields(refusal.data))
    status = next((fields[name] for name in _STATUS if isinstance(fields.get(name), int)), None)
    reset = next((float(fields[name]) for name in _RESET if isinstance(fields.get(name), int | float)), None)
    details = fields.get("details")
    words = (
        f"{refusal.words} ({details})" if isinstance(details, str) and details not in refusal.words else refusal.words
    )
    code, retryable = _meaning(refusal.code, status)
    raw = redactor.value({"code": refusal.code, "message": refusal.words, "data": refusal.data})
    return Failed(code, redactor.text(words), retryable, reset, raw=raw)


def _meaning(code: int, status: int | None) -> tuple[ErrorCode, bool]:
    match status:
        case 401 | 403:
            return ErrorCode.NOT_ALLOWED, False
        case 429:
            return ErrorCode.USAGE_LIMIT, True
        case int() if status >= 500:
            return ErrorCode.MODEL_FAILED, True
        case int() if status >= 400:
            return ErrorCode.BAD_REQUEST, False
    return (ErrorCode.NOT_ALLOWED if code == _LOGIN_NEEDED else ErrorCode.UNKNOWN), False


def _fields(data: Any) -> Iterator[tuple[str, Any]]:
    """All named values at any depth, the outermost last so that they win."""
    if isinstance(data, list):
        for each in data:
            yield from _fields(each)
    if isinstance(data, Mapping):
        for each in data.values():
            yield from _fields(each)
        yield from data.items()
