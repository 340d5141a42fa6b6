"""The lines of a run's log: an agent's events as they are stored and shown."""

import json
from collections.abc import Mapping
from typing import Any

from clew.kernel import ApprovalId
from clew.ports.events import (
    ApprovalAsked,
    Done,
    Event,
    Failed,
    PlanChanged,
    QuestionAsked,
    Retrying,
    SessionNamed,
    Text,
    Thought,
    ToolFinished,
    ToolStarted,
    Used,
)
from clew.protocol.reports import Steer

LONGEST = 64 * 1024
"""Characters of one text in the log. The agent's own store has the whole text."""

TEXT, THOUGHT, STEP, STEER, RETRYING = "text", "thought", "step", "steer", "retrying"


def line_of(event: Event, asked_as: ApprovalId | None = None) -> tuple[str, dict[str, Any]]:
    """The kind and the body of its line. `asked_as` is the id by which people know a question."""
    match event:
        case Text(text, final):
            return TEXT, {"text": clipped(text), "final": final}
        case Thought(text):
            return THOUGHT, {"text": clipped(text)}
        case ToolStarted(id_, name, command, file):
            return "tool-started", {"id": id_, "name": name, "command": _may(command), "file": file}
        case ToolFinished(id_, ok, output):
            return "tool-finished", {"id": id_, "ok": ok, "output": clipped(output)}
        case PlanChanged(steps):
            return "plan", {"steps": [list(step) for step in steps]}
        case Used(read, written, cached, cost):
            return "used", {"input": read, "output": written, "cached": cached, "cost": cost}
        case ApprovalAsked() | QuestionAsked():
            return _asked_line(event, asked_as or event.id)
        case SessionNamed(native_id, durable):
            return "session", {"native_id": native_id, "durable": durable}
        case Retrying(words):
            return RETRYING, {"words": clipped(words)}
        case Failed(code, words, retryable):
            return "failed", {"code": code.value, "words": clipped(words), "retryable": retryable}
        case Done(ending, reply):
            return "done", {"ending": ending.value, "reply": clipped(reply)}


def _asked_line(event: ApprovalAsked | QuestionAsked, known_as: ApprovalId) -> tuple[str, dict[str, Any]]:
    if isinstance(event, QuestionAsked):
        return "question", {"id": known_as, "words": clipped(event.words), "choices": list(event.choices)}
    body = {"id": known_as, "tool": event.tool, "words": clipped(event.words), "command": _may(event.command)}
    return "approval", {**body, "file": event.file}


def line_of_steer(steer: Steer, taken: bool) -> tuple[str, dict[str, Any]]:
    """A message for the agent within its turn: its text, its wakes, and whether the agent took it."""
    asked = {seq for wake in steer.wakes for seq in wake.entries}
    text = "\n\n".join(entry.body for entry in steer.entries if entry.seq in asked)
    wakes = [wake.id for wake in steer.wakes]
    return STEER, {"taken": taken, "wakes": wakes, "entries": sorted(asked), "text": clipped(text)}


def question_of(event: ApprovalAsked | QuestionAsked) -> str:
    """A question for a person, as the server stores it."""
    asked: dict[str, Any] = {"kind": "question", "words": event.words, "tool": None, "command": None, "file": None}
    if isinstance(event, ApprovalAsked):
        asked |= {"kind": "approval", "tool": event.tool, "command": event.command, "file": event.file, "choices": []}
    else:
        asked["choices"] = list(event.choices)
    return written(asked)


def in_short(event: Event) -> str:
    """The event in one line: the last that was seen of a run that has gone silent."""
    match event:
        case Text(text) | Thought(text):
            return _one_line(text)
        case ToolStarted(_, name, command, file):
            return _one_line(f"it started {name}: {command or file or ''}")
        case ToolFinished(id_, ok):
            return f"tool {id_} {'finished' if ok else 'failed'}"
        case ApprovalAsked(_, _, words) | QuestionAsked(_, words):
            return _one_line(f"it asked: {words}")
        case Failed(_, words):
            return _one_line(words)
        case PlanChanged() | Used() | SessionNamed() | Retrying() | Done():
            return ""


def clipped(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n… {len(text) - LONGEST} characters are left out …\n{text[-half:]}"


def written(body: Mapping[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False)


def _may(text: str | None) -> str | None:
    return None if text is None else clipped(text)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:200]} …"
