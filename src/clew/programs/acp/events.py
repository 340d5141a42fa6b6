"""What an agent tells during a turn, in the words of the port."""

from collections.abc import Iterator, Mapping
from typing import Any

from clew.ports.events import ErrorCode, Event, Failed, PlanChanged, Raw, Text, Thought, ToolFinished, ToolStarted
from clew.programs.acp.tool_call import Tool, text_of
from clew.programs.rpc import CallRefused
from clew.programs.secrets import Redaction, Redactor


class Telling:
    """One turn's messages, one after the other. `reply` is the last that was whole."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._tools: dict[str, Tool] = {}
        self._message = _Parts(redactor)
        self._thought = _Parts(redactor)
        self.reply = ""

    def take(self, update: Mapping[str, Any]) -> Iterator[Event]:
        raw: Raw = self._redactor.value(dict(update))
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                if self._message.other(update):
                    yield from self.whole()
                for part in self._message.take(update):
                    yield Text(part, final=False, raw=_shown(raw, part))
            case "agent_thought_chunk":
                for part in self._thought.take(update):
                    yield Thought(part, raw=_shown(raw, part))
            case "tool_call" | "tool_call_update":
                yield from self.whole()
                yield from self._on_tool(update, raw)
            case "plan":
                entries = [each for each in raw.get("entries") or () if isinstance(each, Mapping)]
                yield PlanChanged(
                    tuple((str(each.get("content", "")), str(each.get("status", ""))) for each in entries), raw=raw
                )
            case _:
                return

    def whole(self) -> Iterator[Event]:
        """The message so far is whole: something else came, or nothing more will."""
        for part in self._thought.rest():
            yield Thought(part)
        for part in self._message.rest():
            yield Text(part, final=False)
        text = self._message.end()
        self._thought.end()
        if text:
            self.reply = text
            yield Text(text)

    def question(self, said: Mapping[str, Any]) -> tuple[Tool, list[Event]]:
        """The tool that a question is about; it has begun, if it had not been told so before."""
        tool = self._merged(said)
        return tool, [*self.whole(), *self._begin(tool, self._redactor.value(dict(said)))]

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
    """The parts of one message, with what may be the beginning of a secret held back."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._stream: Redaction = redactor.stream()
        self._told: list[str] = []
        self._id: object = None

    def other(self, update: Mapping[str, Any]) -> bool:
        """Whether this belongs to another message than the parts so far."""
        return bool(self._told) and update.get("messageId") != self._id

    def take(self, update: Mapping[str, Any]) -> Iterator[str]:
        self._id = update.get("messageId")
        yield from self._tell(self._stream.feed(text_of(update.get("content"))))

    def rest(self) -> Iterator[str]:
        yield from self._tell(self._stream.flush())

    def end(self) -> str:
        text, self._told = "".join(self._told), []
        return text

    def _tell(self, part: str) -> Iterator[str]:
        if part:
            self._told.append(part)
            yield part


def _shown(raw: Raw, part: str) -> Raw:
    """A part may hold half a secret where the whole would have been found."""
    return {**raw, "content": {"type": "text", "text": part}}


_LOGIN_NEEDED = -32000
_STATUS = ("status", "statusCode", "httpStatusCode", "http_status_code", "status_code")
_RESET = ("resetAt", "resetsAt", "reset_at", "resets_at")


def failure(refusal: CallRefused, redactor: Redactor) -> Failed:
    """Only a structured sign tells what it was; words alone leave it unknown, and unknown is not tried again."""
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
    """What is named anywhere in it, the outermost last so that it counts."""
    if isinstance(data, list):
        for each in data:
            yield from _fields(each)
    if isinstance(data, Mapping):
        for each in data.values():
            yield from _fields(each)
        yield from data.items()
