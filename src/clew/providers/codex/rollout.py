"""Rollouts: the files of a thread's history, how they are named, and what their lines hold.

A line has an ordinal, one more than the line before. A torn line, left by a program that was killed while it wrote, is
followed by a whole one with the same ordinal; so a line that cannot be read does no harm while no ordinal is missing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from clew.programs.cursor import CursorForm

_ID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
CURSORS = CursorForm("Codex", _ID)
_FILE = re.compile(
    rf"rollout-(?P<day>\d{{4}}-\d{{2}}-\d{{2}})T\d{{2}}-\d{{2}}-\d{{2}}-(?P<thread>{_ID})(?:_(?P<segment>{_ID}))?"
    r"\.jsonl(?P<packed>\.zst)?"
)

# As Codex writes them, without spaces. Within a text the quotes are escaped, so no prompt matches.
_TURN = b'"type":"task_started"'
_PLACES = (b'"type":"turn_context"', b'"type":"thread_settings_applied"')
_PROMPTS = (b'"type":"UserMessage"', b'"type":"user_message"')
_ENDS = (b'"type":"task_complete"', b'"type":"turn_aborted"')
_TITLE = 120


@dataclass(frozen=True, slots=True)
class Rollout:
    """A file of a thread's history. The first one's segment is the thread's own id; a rewind begins another segment."""

    path: Path
    thread: str
    segment: str
    day: str
    packed: bool

    @property
    def name(self) -> str:
        """Its path below a home."""
        return f"sessions/{self.day.replace('-', '/')}/{self.path.name}"

    @property
    def is_archived(self) -> bool:
        """Whether the user archived it in Codex."""
        return "archived_sessions" in self.path.parts


def rollout_at(path: Path) -> Rollout | None:
    found = _FILE.fullmatch(path.name)
    if found is None:
        return None
    segment = found["segment"] or found["thread"]
    return Rollout(path, found["thread"], segment, found["day"], found["packed"] is not None)


# ---------------------------------------------------------------- lines


@dataclass(frozen=True, slots=True)
class Base:
    """The history that this one rests on: another segment, up to that byte and ordinal; all of it if they are None."""

    segment: str
    ordinal: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class Head:
    """The first line. `side`: a sub-agent's thread, which belongs to another conversation."""

    thread: str
    directory: str | None
    base: Base | None
    version: str
    side: bool
    ordinal: int | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line that can be read. `event` is the type of its event, if it is one."""

    type: str
    payload: dict[str, Any]
    ordinal: int | None

    @property
    def event(self) -> str | None:
        return self.payload.get("type") if self.type == "event_msg" else None


class Broken(Exception):
    """The history is not whole; the message says why."""


def head_of(line: bytes) -> Head:
    first = _line(line)
    payload = first.get("payload") if first is not None else None
    if first is None or first.get("type") != "session_meta" or not isinstance(payload, dict):
        raise Broken("its first line does not say whose history it is")
    source = payload.get("source")
    side = bool(payload.get("parent_thread_id")) or (isinstance(source, dict) and "subagent" in source)
    cwd = payload.get("cwd")
    return Head(
        thread=str(payload.get("id")),
        directory=cwd if isinstance(cwd, str) and cwd.startswith("/") else None,
        base=_base(payload),
        version=str(payload.get("cli_version", "")),
        side=side or payload.get("thread_source") == "subagent",
        ordinal=_ordinal(first),
    )


def _base(payload: dict[str, Any]) -> Base | None:
    base, forked = payload.get("history_base"), payload.get("forked_from_ordinal_exclusive")
    if isinstance(base, dict):
        return Base(str(base.get("thread_id")), base.get("end_ordinal_exclusive"), base.get("end_byte_offset"))
    if isinstance(forked, int):
        return Base(str(payload.get("forked_from_id")), forked, None)
    return None


def check(data: bytes, thread: str) -> Head:
    """Raise `Broken` unless every line is there."""
    if not data.endswith(b"\n"):
        raise Broken("its last line is cut" if data else "it is empty")
    head = head_of(data[: data.index(b"\n")])
    check_lines(lines_of(data), head, thread)
    return head


def check_lines(lines: Sequence[Line | None], head: Head, thread: str) -> None:
    if head.thread != thread:
        raise Broken(f"it is the history of {head.thread}, not of {thread}")
    if head.ordinal is None:
        if any(line is None for line in lines):
            raise Broken("a line cannot be read")
        return
    begins = head.base.ordinal if head.base is not None else 0
    if head.ordinal != begins:
        raise Broken(f"it begins with line {head.ordinal}, not with {begins}")
    for expected, line in enumerate((line for line in lines if line is not None), head.ordinal):
        if line.ordinal != expected:
            raise Broken(f"line {expected} is missing")


def lost_prompt(data: bytes) -> bool:
    """Whether a turn has no readable prompt because a line of it was torn. The prompt is lost, and the ordinals do not
    show it: a program that goes on reuses the ordinal of the torn line."""
    going = torn = said = False
    for line in data.split(b"\n"):
        if not line:
            continue
        if _line(line) is None:
            torn = going
        elif _TURN in line or any(mark in line for mark in _ENDS):
            if going and torn and not said:
                return True
            going, torn, said = _TURN in line, False, False
        elif any(mark in line for mark in _PROMPTS):
            said = True
    return going and torn and not said


def written(path: Path, start: int, turn: str) -> bool:
    """Whether the file names the turn after byte `start`, and ends with a whole line."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            added = file.read()
    except OSError:
        return False
    return added.endswith(b"\n") and turn.encode() in added


def lines_of(data: bytes) -> list[Line | None]:
    """None for a line that cannot be read. A last line that lacks only its newline counts, as it does for Codex."""
    return [_known(_line(line)) for line in data.split(b"\n") if line]


def _known(line: dict[str, Any] | None) -> Line | None:
    if line is None:
        return None
    payload = line.get("payload")
    return Line(str(line.get("type")), payload if isinstance(payload, dict) else {}, _ordinal(line))


def whole_lines(data: bytes) -> bytes:
    """Without a last line that is being written."""
    return data[: data.rfind(b"\n") + 1]


def turns_in(data: bytes) -> int:
    return data.count(_TURN)


def holds_conversation(data: bytes) -> bool:
    """Whether these lines hold more than a change of settings, which is no part of a conversation."""
    return any(line and b'"type":"thread_settings_applied"' not in line for line in data.split(b"\n"))


def place_in(data: bytes) -> str | None:
    """The directory that the thread last worked in."""
    at = max(data.rfind(mark) for mark in _PLACES)
    if at < 0:
        return None
    payload = (_line(_around(data, at)) or {}).get("payload", {})
    found = payload.get("thread_settings", payload).get("cwd")
    return found if isinstance(found, str) and found.startswith("/") else None


def title_in(data: bytes) -> str:
    """The first prompt, cut to a line."""
    found = [at for mark in _PROMPTS if (at := data.find(mark)) >= 0]
    if not found:
        return ""
    payload = (_line(_around(data, min(found))) or {}).get("payload", {})
    return " ".join(_text(payload).split())[:_TITLE]


def _text(payload: dict[str, Any]) -> str:
    if isinstance(payload.get("message"), str):
        return str(payload["message"])
    content = payload.get("item", {}).get("content", [])
    return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def _around(data: bytes, at: int) -> bytes:
    end = data.find(b"\n", at)
    return data[data.rfind(b"\n", 0, at) + 1 : end if end >= 0 else len(data)]


def _line(line: bytes) -> dict[str, Any] | None:
    try:
        read = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return read if isinstance(read, dict) else None


def _ordinal(line: dict[str, Any]) -> int | None:
    ordinal = line.get("ordinal")
    return ordinal if isinstance(ordinal, int) else None
