"""An agent's updates during a turn, turned into events of the port; and why a turn failed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.ports.events import ErrorCode, Event, Failed, PlanChanged, Raw, Text, Thought, ToolFinished, ToolStarted
from clew.programs.acp.connection import LOGIN_NEEDED
from clew.programs.rpc import CallRefused
from clew.programs.secrets import Redaction, Redactor


@dataclass
class Tool:
    """A tool call, merged from its updates: a later one holds only what changed."""

    id: str
    said: dict[str, Any] = field(default_factory=dict)
    started: bool = False
    finished: bool = False

    def merge(self, said: Mapping[str, Any]) -> None:
        self.said.update({key: value for key, value in said.items() if value not in (None, "", [], {})})

    @property
    def kind(self) -> str:
        return str(self.said.get("kind") or "other")

    @property
    def name(self) -> str:
        return str(self.said.get("title") or self.kind)

    @property
    def known(self) -> bool:
        """Whether its arguments are known. Some agents report a tool, and where it will run, before they have them."""
        given = self.said.get("rawInput")
        has_arguments = bool(given) and (self.kind != "execute" or (isinstance(given, Mapping) and "command" in given))
        return has_arguments or self.said.get("status") == "in_progress" or self.ended

    @property
    def ended(self) -> bool:
        return self.said.get("status") in ("completed", "failed")

    @property
    def ok(self) -> bool:
        return self.said.get("status") == "completed"

    @property
    def command(self) -> str | None:
        given = self.said.get("rawInput")
        command = given.get("command") if isinstance(given, Mapping) else None
        if isinstance(command, list):
            return " ".join(map(str, command))
        if isinstance(command, str):
            return command
        return self.name if self.kind == "execute" else None

    @property
    def files(self) -> tuple[str, ...]:
        places = self.said.get("locations") or ()
        return tuple(str(place["path"]) for place in places if isinstance(place, Mapping) and "path" in place)

    @property
    def places(self) -> Iterator[str]:
        """Every path in the request, wherever it is: not all agents give them as locations."""
        yield from self.files
        for part in self.said.get("content") or ():
            if isinstance(part, Mapping) and part.get("type") == "diff":
                yield str(part.get("path") or "")
        yield from _paths_in(self.said.get("rawInput"))

    @property
    def file(self) -> str | None:
        return next(iter(self.files), None)

    @property
    def output(self) -> str:
        parts = [part for part in self.said.get("content") or () if isinstance(part, Mapping)]
        text = "\n".join(filter(None, (text_of(part.get("content")) for part in parts)))
        raw = self.said.get("rawOutput")
        if isinstance(raw, Mapping):
            raw = next((raw[name] for name in ("formatted_output", "output", "stdout") if name in raw), "")
        return text or (raw if isinstance(raw, str) else "")


def _paths_in(given: object) -> Iterator[str]:
    """Values whose name ends in path or destination, at any depth, and the keys of `changes`, which are paths."""
    if isinstance(given, list):
        for each in given:
            yield from _paths_in(each)
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name == "changes" and isinstance(value, Mapping):
                yield from map(str, value)
            if isinstance(value, str):
                yield from (value,) if value and str(name).casefold().endswith(("path", "destination")) else ()
            else:
                yield from _paths_in(value)


def text_of(content: object) -> str:
    """The text of a content block; empty if it is of another kind."""
    text = content.get("text") if isinstance(content, Mapping) else None
    return text if isinstance(text, str) else ""


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
    if status is not None and status >= 400:
        code = ErrorCode.of_status(status)
    else:
        code = ErrorCode.NOT_ALLOWED if refusal.code == LOGIN_NEEDED else ErrorCode.UNKNOWN
    raw = redactor.value({"code": refusal.code, "message": refusal.words, "data": refusal.data})
    return Failed(code, redactor.text(words), code.is_passing, reset, raw=raw)


def _fields(data: Any) -> Iterator[tuple[str, Any]]:
    """All named values at any depth, the outermost last so that they win."""
    if isinstance(data, list):
        for each in data:
            yield from _fields(each)
    if isinstance(data, Mapping):
        for each in data.values():
            yield from _fields(each)
        yield from data.items()
