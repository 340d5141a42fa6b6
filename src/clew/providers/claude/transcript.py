"""Transcripts: the JSON-lines files in which Claude Code keeps its sessions. Nothing here changes one."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from clew.kernel import Directory, NativeId
from clew.ports.provider import FoundSession
from clew.programs import json_lines
from clew.providers.claude.home import CURSORS, Home, project_name, real

_TAIL = 4 * 1024 * 1024
# User messages that the program itself writes begin with one of these.
_ITS_OWN = ("<command-name>", "<local-command", "<bash-", "[Request interrupted by user")
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
_TITLE_LENGTH = 80
_BOUND = "clew-bound"
"""A line of Clew's own that binds a restored session to its directory. Claude Code skips unknown types of lines."""

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """`talks`: there is something that the program would resume. `bound`: the transcript is where the program looks for
    sessions of its directory."""

    turns: int
    directory: str | None
    title: str
    talks: bool
    bound: bool = True

    def is_of(self, place: str) -> bool:
        """Whether it belongs to that directory, which the program may spell with other Unicode code points."""
        own = self.directory
        return own is not None and unicodedata.normalize("NFC", own) == unicodedata.normalize("NFC", place)


def lines_of(data: bytes, kinds: Iterable[str] = ()) -> Iterator[Line | None]:
    """Each line as an object, None where it is not one. A last line without its newline is left out.

    With `kinds`, lines of other types may be skipped, so that most of a long transcript is not parsed.
    """
    whole, _, _ = data.rpartition(b"\n")
    signs = [f'"type":"{kind}"'.encode() for kind in kinds]
    for text in whole.split(b"\n") if whole else ():
        if signs and not any(sign in text for sign in signs):
            continue
        try:
            line = json_lines.loads(text)
        except ValueError:
            line = None
        yield line if isinstance(line, dict) else None


def summary_of(path: Path) -> Summary:
    """Cached by the file's time and size."""
    state = path.stat()
    return _summary_of(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _summary_of(path: Path, _changed: int, _size: int) -> Summary:
    return summary_in(path.read_bytes(), path.parent.name)


def summary_in(data: bytes, project: str) -> Summary:
    """The directory is the last `cwd` whose project name is `project`: a project's name does not lead back to its path,
    and two paths may have the same name."""
    prompts: dict[str, str] = {}
    titles: dict[str, str] = {}
    first = bound = None
    talks = False
    names: dict[str, bool] = {}
    for line in filter(None, lines_of(data, ("user", _BOUND, *_TITLES))):
        kind, place = line.get("type"), line.get("cwd")
        if isinstance(place, str):
            first = first or place
            if names.setdefault(place, project_name(place) == project):
                bound = place
        if kind in _TITLES and isinstance(line.get(_TITLES[kind]), str):
            titles[kind] = line[_TITLES[kind]]
        talks = talks or _talks(line)
        if (prompt := prompt_in(line)) is not None:
            # A compaction may repeat earlier lines.
            prompts[line["uuid"]] = prompt
    talks = talks or any(_talks(line) for line in lines_of(data, ("assistant",)) if line is not None)
    title = next((titles[kind] for kind in _TITLES if kind in titles), None) or next(filter(None, prompts.values()), "")
    title = " ".join(title.split())[:_TITLE_LENGTH]
    return Summary(len(prompts), bound or first, title, talks, bound is not None)


def binding(native_id: str, place: str) -> bytes:
    """The line that binds a transcript to a directory."""
    return json_lines.dumps({"type": _BOUND, "sessionId": native_id, "cwd": place}) + b"\n"


def _talks(line: Line) -> bool:
    spoken = line.get("type") in ("user", "assistant") and isinstance(line.get("message"), dict)
    return spoken and isinstance(line.get("uuid"), str) and not line.get("isSidechain")


def prompt_in(line: Line) -> str | None:
    """The prompt's text; None for a line of the program, a tool or a side thread."""
    if line.get("type") != "user" or not isinstance(line.get("uuid"), str):
        return None
    if any(line.get(sign) for sign in ("isMeta", "isSidechain", "isCompactSummary", "toolUseResult")):
        return None
    origin = line.get("origin")
    if isinstance(origin, dict) and origin.get("kind") != "human":
        return None
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        blocks = [block for block in content if isinstance(block, dict)]
        if any(block.get("type") == "tool_result" for block in blocks):
            return None
        content = "\n".join(str(block.get("text", "")) for block in blocks)
    if not isinstance(content, str) or content.startswith(_ITS_OWN):
        return None
    return content


def holds(path: Path, uuid: str) -> bool:
    """Whether a whole line has that uuid, or holds words that were sent with it."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            whole, _, _ = file.read().rpartition(b"\n")
    except OSError:
        return False
    return any(f'"{name}":"{uuid}"'.encode() in whole for name in ("uuid", "source_uuid"))


def damage(data: bytes, native_id: str) -> str | None:
    """Why these bytes are not that whole session; None when they are. The program itself does not check."""
    if not data.endswith(b"\n"):
        return "its last line is cut off"
    talks = False
    for number, line in enumerate(lines_of(data), 1):
        if line is None:
            return f"line {number} is not a line of a transcript"
        if line.get("sessionId", native_id) != native_id:
            return f"line {number} belongs to session {line['sessionId']}"
        talks = talks or line.get("type") in ("user", "assistant")
    return None if talks else "nothing was said in it"


# ---------------------------------------------------------------- sessions in a home


@dataclass(frozen=True, slots=True)
class Stored:
    """A session in the home. `here` when it belongs to the directory that was asked for."""

    path: Path
    summary: Summary
    directory: Directory | None
    here: bool


def find(home: Home, native_id: NativeId, directory: Directory) -> Stored | None:
    """Of several copies: the one of that directory, or else the one that was used last."""
    project = home.project(directory)
    copies = sorted(home.copies(native_id), key=lambda path: (path.parent == project, path.stat().st_mtime))
    if not copies:
        return None
    path = copies[-1]
    summary = summary_of(path)
    place = _place(summary)
    # One that was copied there by hand is meant to be there; one that names no directory can go on anywhere.
    copied = path.parent == project and not summary.bound
    here = copied or place is None or summary.is_of(real(directory))
    return Stored(path, summary, place, here)


def sessions(home: Home) -> Sequence[FoundSession]:
    found: dict[str, FoundSession] = {}
    for path in home.transcripts():
        if re.fullmatch(CURSORS.shape, path.stem) is None:
            continue
        try:
            updated, summary = path.stat().st_mtime, summary_of(path)
        except FileNotFoundError:
            continue
        before = found.get(path.stem)
        if not summary.talks or (before is not None and (before.updated_at or 0) >= updated):
            continue
        cursor = CURSORS.cursor(path.stem)
        found[path.stem] = FoundSession(cursor, _place(summary), summary.title, updated, summary.turns)
    return sorted(found.values(), key=lambda session: session.updated_at or 0.0, reverse=True)


def _place(summary: Summary) -> Directory | None:
    path = summary.directory
    return Directory(path, path) if path is not None and path.startswith("/") else None
