"""Codex's items, usage and errors as events of the port."""

import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from clew.kernel import Instant
from clew.ports.events import ErrorCode, Event, Failed, Text, Thought, ToolFinished, ToolStarted, Used

Json = Mapping[str, Any]

# Items that are no tools: messages, thoughts, and items about the conversation itself.
_NO_TOOLS = frozenset(
    {
        "userMessage",
        "hookPrompt",
        "agentMessage",
        "functionCallOutput",
        "plan",
        "reasoning",
        "enteredReviewMode",
        "exitedReviewMode",
        "contextCompaction",
        "subAgentActivity",
    }
)
_WELL = frozenset({"completed", None})


def started_events(item: Json, raw: Json) -> Iterator[Event]:
    kind = item.get("type")
    if kind not in _NO_TOOLS:
        command = item.get("command") if kind == "commandExecution" else None
        yield ToolStarted(str(item.get("id")), _name(item), command, files(item) or None, raw=raw)


def finished_events(item: Json, raw: Json) -> Iterator[Event]:
    kind = item.get("type")
    if kind == "agentMessage":
        yield Text(str(item.get("text", "")), final=True, raw=raw)
    elif kind == "reasoning":
        thought = "\n".join((*item.get("summary", ()), *item.get("content", ())))
        if thought:
            yield Thought(thought, raw=raw)
    elif kind not in _NO_TOOLS:
        yield ToolFinished(str(item.get("id")), item.get("status") in _WELL, _output(item), raw=raw)


def files(item: Json) -> str:
    """The files that an item touches, one per line."""
    if item.get("type") == "imageView":
        return str(item.get("path", ""))
    changes = item.get("changes") or ()
    return "\n".join(str(change.get("path")) for change in changes if isinstance(change, Mapping))


def _name(item: Json) -> str:
    tool = item.get("tool")
    if tool is None:
        return str(item.get("type"))
    return ".".join(str(part) for part in (item.get("server") or item.get("namespace"), tool) if part)


def _output(item: Json) -> str:
    for name in ("aggregatedOutput", "error", "result", "contentItems", "results"):
        found = item.get(name)
        if found:
            return found if isinstance(found, str) else str(found)
    return "\n".join(str(change.get("diff", "")) for change in item.get("changes") or () if isinstance(change, Mapping))


# ---------------------------------------------------------------- usage


class _Sum(NamedTuple):
    input: int
    output: int
    cached: int


class Meter:
    """Usage of a session's turns. Codex reports sums over the whole thread; a turn's share is the difference."""

    def __init__(self) -> None:
        self._total: _Sum | None = None
        self._before: _Sum | None = None

    def next_turn(self) -> None:
        self._before = self._total

    def used(self, usage: Mapping[str, Any], raw: Mapping[str, Any]) -> Used:
        total, last = _sum(usage.get("total")), _sum(usage.get("last"))
        if self._before is None:
            # The first report of an opened thread: everything but the last request came before this turn.
            self._before = _less(total, last)
        self._total = total
        turn = _less(total, self._before)
        return Used(turn.input, turn.output, turn.cached, raw=raw)


def _less(total: _Sum, part: _Sum) -> _Sum:
    return _Sum(*(max(0, whole - taken) for whole, taken in zip(total, part, strict=True)))


def _sum(reported: Any) -> _Sum:
    counts = reported if isinstance(reported, Mapping) else {}
    return _Sum(*(int(counts.get(name) or 0) for name in ("inputTokens", "outputTokens", "cachedInputTokens")))


# ---------------------------------------------------------------- failures

_SPENT = "sessionBudgetExceeded"
"""The one usage limit that does not end with time."""

_NAMED: Mapping[str, ErrorCode] = {
    "usageLimitExceeded": ErrorCode.USAGE_LIMIT,
    "rateLimitExceeded": ErrorCode.USAGE_LIMIT,
    _SPENT: ErrorCode.USAGE_LIMIT,
    "internalServerError": ErrorCode.MODEL_FAILED,
    "serverOverloaded": ErrorCode.MODEL_FAILED,
    "flexUnavailable": ErrorCode.MODEL_FAILED,
    "policyCapacityUnavailable": ErrorCode.MODEL_FAILED,
    "unauthorized": ErrorCode.NOT_ALLOWED,
    "cyberPolicy": ErrorCode.NOT_ALLOWED,
    "misalignmentPolicyViolation": ErrorCode.NOT_ALLOWED,
    "tooManyDenials": ErrorCode.NOT_ALLOWED,
    "badRequest": ErrorCode.BAD_REQUEST,
    "contextWindowExceeded": ErrorCode.BAD_REQUEST,
    "modelNotFound": ErrorCode.BAD_REQUEST,
    "activeTurnNotSteerable": ErrorCode.BAD_REQUEST,
}
_BY_STATUS = frozenset(
    {
        "httpConnectionFailed",
        "responseStreamConnectionFailed",
        "responseStreamDisconnected",
        "responseTooManyFailedAttempts",
    }
)
_WORTH_ANOTHER_TRY = frozenset({408, 409, 425})
_RESET = re.compile(
    r"try again at (?:(?P<date>[A-Z][a-z]{2} \d{1,2})(?:st|nd|rd|th), (?P<year>\d{4}) )?"
    r"(?P<hour>\d{1,2}:\d{2} [AP]M)\b"
)


def failed(error: Mapping[str, Any], retried: bool, windows: Mapping[str, Any], raw: Mapping[str, Any]) -> Failed:
    """`retried`: Codex itself had retried. `windows` are the last usage limits that it reported."""
    words = str(error.get("message") or "Codex did not say why.")
    info = error.get("codexErrorInfo")
    code = _code(info, words, retried)
    retryable = code.is_passing and _SPENT not in str(info)
    ends = reset_at(words, windows, time.time()) if code is ErrorCode.USAGE_LIMIT else None
    return Failed(code, words, retryable, ends, raw=raw)


def _code(info: Any, words: str, retried: bool) -> ErrorCode:
    match info:
        case "other" | None if retried:
            # Codex says no more when a stream breaks; it does not retry a request that is refused.
            return ErrorCode.MODEL_UNREACHABLE
        case "other" | None if _is_error_body(words):
            return ErrorCode.BAD_REQUEST
        case str():
            return _NAMED.get(info, ErrorCode.UNKNOWN)
        case dict() if info:
            name, about = next(iter(info.items()))
            status = about.get("httpStatusCode") if isinstance(about, Mapping) else None
            return _by_status(status) if name in _BY_STATUS else _NAMED.get(str(name), ErrorCode.UNKNOWN)
        case _:
            return ErrorCode.UNKNOWN


def _by_status(status: Any) -> ErrorCode:
    if not isinstance(status, int):
        return ErrorCode.MODEL_UNREACHABLE
    return ErrorCode.MODEL_FAILED if status in _WORTH_ANOTHER_TRY else ErrorCode.of_status(status)


def _is_error_body(words: str) -> bool:
    """When the model refuses a request, the message is the body of its answer."""
    try:
        body = orjson.loads(words)
    except orjson.JSONDecodeError:
        return False
    return isinstance(body, dict) and "error" in body


def reset_at(words: str, windows: Mapping[str, Any], now: Instant) -> Instant | None:
    """When the limit ends: by the windows that are used up, else by the sentence, in the machine's time zone."""
    kept = (windows.get(name) for name in ("primary", "secondary"))
    full = [each for each in kept if isinstance(each, Mapping) and each.get("usedPercent", 0) >= 100]
    ends = [float(each["resetsAt"]) for each in full if each.get("resetsAt")]
    return max(ends) if ends else _time_in(words, now)


def _time_in(words: str, now: Instant) -> Instant | None:
    found = _RESET.search(words)
    if found is None:
        return None
    today = datetime.fromtimestamp(now).astimezone()
    day = f"{found['date']} {found['year']}" if found["date"] else today.strftime("%b %d %Y")
    try:
        # The time zone is applied last: its offset may change between now and then.
        said = datetime.strptime(f"{day} {found['hour']}", "%b %d %Y %I:%M %p").astimezone()
    except ValueError:
        return None
    return said.timestamp()
