"""A transcript: the file of lines in which Claude Code keeps a session. Nothing here changes one."""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from clew.programs import json_lines as lines
from clew.providers.claude.home import project_name

_TAIL = 4 * 1024 * 1024
# What the program itself puts into a user's mouth.
_ITS_OWN = ("<command-name>", "<local-command", "<bash-", "[Request interrupted by user")
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
_TITLE_LENGTH = 80
_BOUND = "clew-bound"
"""A line of ours, which the program passes over as it does all that it does not know: the session was put there."""

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a transcript tells. `talks` when it has something that the program would resume; `bound` when its directory
    is one for which the program would look where it lies."""

    turns: int
    directory: str | None
    title: str
    talks: bool
    bound: bool = True

    def is_of(self, place: str) -> bool:
        """Whether it belongs to that directory, which the program may spell with other code points."""
        told = self.directory
        return told is not None and unicodedata.normalize("NFC", told) == unicodedata.normalize("NFC", place)


def lines_of(data: bytes, kinds: Iterable[str] = ()) -> Iterator[Line | None]:
    """Each line, None where it is not one. A last line without its end is not there yet.

    With `kinds`, lines of other kinds may be passed over: most of a long transcript need not be read.
    """
    whole, _, _ = data.rpartition(b"\n")
    signs = [f'"type":"{kind}"'.encode() for kind in kinds]
    for text in whole.split(b"\n") if whole else ():
        if signs and not any(sign in text for sign in signs):
            continue
        try:
            line = lines.loads(text)
        except ValueError:
            line = None
        yield line if isinstance(line, dict) else None


def summary_of(path: Path) -> Summary:
    """Read once for as long as the file stays the same."""
    state = path.stat()
    return _summary_of(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _summary_of(path: Path, _changed: int, _size: int) -> Summary:
    return summary_in(path.read_bytes(), path.parent.name)


def summary_in(data: bytes, project: str) -> Summary:
    """A project's name is cut from a path and does not lead back, and two paths may have one name. A line that names a
    path with that name tells, the last of them."""
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
            # A compaction may write earlier lines once more.
            prompts[line["uuid"]] = prompt
    talks = talks or any(_talks(line) for line in lines_of(data, ("assistant",)) if line is not None)
    title = next((titles[kind] for kind in _TITLES if kind in titles), None) or next(filter(None, prompts.values()), "")
    title = " ".join(title.split())[:_TITLE_LENGTH]
    return Summary(len(prompts), bound or first, title, talks, bound is not None)


def binding(native_id: str, place: str) -> bytes:
    """The line by which a transcript says that it belongs there."""
    return lines.dumps({"type": _BOUND, "sessionId": native_id, "cwd": place}) + b"\n"


def _talks(line: Line) -> bool:
    spoken = line.get("type") in ("user", "assistant") and isinstance(line.get("message"), dict)
    return spoken and isinstance(line.get("uuid"), str) and not line.get("isSidechain")


def prompt_in(line: Line) -> str | None:
    """What was asked, when the line is a prompt; None when the program, a tool or a side thread speaks."""
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
    """Whether the line of that uuid has been written, whole; or the one that holds the words told under it."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            whole, _, _ = file.read().rpartition(b"\n")
    except OSError:
        return False
    return any(f'"{name}":"{uuid}"'.encode() in whole for name in ("uuid", "source_uuid"))


def damage(data: bytes, native_id: str) -> str | None:
    """Why these bytes are not that session whole, and None when they are. The program itself would not notice."""
    if not data.endswith(b"\n"):
        return "its last line is cut off"
    talks = False
    for number, line in enumerate(lines_of(data), 1):
        if line is None:
            return f"line {number} is no line of a transcript"
        if line.get("sessionId", native_id) != native_id:
            return f"line {number} belongs to session {line['sessionId']}"
        talks = talks or line.get("type") in ("user", "assistant")
    return None if talks else "nothing was said in it"
