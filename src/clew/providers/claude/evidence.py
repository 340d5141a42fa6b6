"""Whether a session took a prompt, read from its transcript. Nothing here changes one.

A prompt is found by the id that it was sent with, and by nothing else. Claude Code writes it as the uuid of the
prompt's line, before it asks its model (`CLAUDE_CODE_EAGER_FLUSH`). Words sent within a turn are an attachment that
names the id they came with. A prompt that the gate refused, or that only waits in the program's queue, is in neither
place.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.kernel import Attestation, Evidence, NativeId, PromptId
from clew.programs import json_lines
from clew.providers.claude import locks
from clew.providers.claude.home import Home
from clew.providers.claude.transcript import Line, prompt_in

_INTERRUPTED = "[Request interrupted by user"
_NOT_YET = "Stop hook feedback"
"""How the program's message to the model begins when a hook of the user's does not let the turn end."""

# Of several copies of one transcript, the one with the most evidence counts.
_MOST = (Evidence.FINISHED, Evidence.CUT_OFF, Evidence.TAKEN, Evidence.UNKNOWN, Evidence.UNSENT)


def attestation(home: Home, native_id: NativeId, prompt: PromptId, idle: Collection[int]) -> Attestation:
    """What the home says about that prompt. Raises `OSError` where it cannot be read.

    `idle` are processes of this provider without a turn: what they have not written by now, they never will. While any
    other process has the session open, only a finished turn is certain.
    """
    if not home.is_there:
        return Attestation(Evidence.UNKNOWN, f"the home {home.root} is not there")
    # Before the transcript is read: a process that ends in between has written everything by then.
    holder = locks.driven_in(home, native_id, idle)
    absent = Attestation(Evidence.UNSENT, f"there is no transcript of the session in {home.projects}")
    copies = [_attestation_in(path, prompt) for path in home.copies(native_id)]
    found = min(copies, key=lambda each: _MOST.index(each.evidence), default=absent)
    if holder is not None and found.evidence is not Evidence.FINISHED:
        return Attestation(Evidence.UNKNOWN, f"the session is still open in {holder}, which may write more")
    return found


def _attestation_in(path: Path, prompt: PromptId) -> Attestation:
    before = _state(path)
    data = path.read_bytes()
    if _state(path) != before:
        return Attestation(Evidence.UNKNOWN, f"{path} is being written")
    read = _read(data, prompt)
    at = next((at for at, line in enumerate(read.lines) if _is(line, prompt)), None)
    if at is not None:
        evidence, reply = _came_of(read, at)
        return Attestation(evidence, _DETAILS[evidence].format(path=path), reply)
    if read.damaged or any(line.get("parentUuid") == prompt for line in read.lines):
        # On a full disk the program still asks its model, so the missing part may be this prompt.
        return Attestation(Evidence.UNKNOWN, f"{path} is damaged: a line was not written to its end")
    return Attestation(Evidence.UNSENT, f"the prompt is not in {path}, which is whole")


_DETAILS = {
    Evidence.TAKEN: "the prompt is in {path}, and nothing of the agent's follows it",
    Evidence.CUT_OFF: "the prompt is in {path}, with a turn that did not come to its end",
    Evidence.FINISHED: "the prompt is in {path}, with a finished reply",
}


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class _Read:
    """The lines from the first that names the prompt. `damaged`: the last line, or one that names it, is not whole."""

    lines: list[Line]
    damaged: bool


def _read(data: bytes, prompt: PromptId) -> _Read:
    """Lines before the prompt are not parsed: they say nothing about it."""
    name = f'"{prompt}"'.encode()
    at = data.find(name)
    start = data.rfind(b"\n", 0, at if at >= 0 else len(data)) + 1
    found: list[Line] = []
    damaged = False
    *whole, last = data[start:].split(b"\n")
    for text in whole:
        there, rest = _objects(text)
        found += there
        damaged = damaged or name in rest
    # A last line that lacks only its newline counts for the program when it goes on.
    there, rest = _objects(last)
    return _Read([*found, *there], damaged or bool(rest))


def _objects(text: bytes) -> tuple[list[Line], bytes]:
    """The objects in a line, and the unreadable rest. There is one object, unless a line was cut off and the program
    appended the next to it; it reads both then, if the first lacks only its newline."""
    try:
        one = json_lines.loads(text) if text else None
    except ValueError:
        return _several(text)
    return ([one] if isinstance(one, dict) else []), b""


def _several(text: bytes) -> tuple[list[Line], bytes]:
    rest, found = text.decode("utf-8", "replace"), []
    while rest:
        try:
            one, end = json.JSONDecoder().raw_decode(rest)
        except (ValueError, RecursionError):
            break
        found += [json_lines.without_surrogates(one)] if isinstance(one, dict) else []
        rest = rest[end:].lstrip()
    return found, rest.encode("utf-8", "replace")


def _is(line: Line, prompt: PromptId) -> bool:
    match line:
        case {"type": "user", "uuid": uuid}:
            return bool(uuid == prompt)
        case {"type": "attachment", "uuid": str(), "attachment": {"type": "queued_command", "source_uuid": uuid}}:
            return bool(uuid == prompt)
        case _:
            return False


def _state(path: Path) -> tuple[int, int, int]:
    state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


# ---------------------------------------------------------------- what follows the prompt


def _came_of(read: _Read, at: int) -> tuple[Evidence, str]:
    """How far the turn came, and its reply if it ended."""
    last: Line | None = None
    spoke = False
    for line in _turn(read.lines[at], read.lines[at + 1 :]):
        if line.get("type") == "assistant":
            if _by_model(line):
                last, spoke = line, True
        elif line.get("type") == "user":
            words = _words(line)
            if words.startswith(_INTERRUPTED):
                return Evidence.CUT_OFF, ""
            if _ends(last) and not words.startswith(_NOT_YET):
                # This line begins another turn.
                break
            last = line
    if last is not None and _ends(last):
        reply = _reply(last)
        # A thought is a line of its own, before the answer.
        if reply or not read.damaged:
            return Evidence.FINISHED, reply
    return (Evidence.CUT_OFF if spoke else Evidence.TAKEN), ""


def _turn(prompt: Line, after: Iterable[Line]) -> Iterator[Line]:
    """The lines on the branch below a prompt, up to the next prompt on it, without side threads."""
    branch = {prompt["uuid"]}
    for line in after:
        # A compaction begins a new branch and names the line that it follows.
        parent = line.get("parentUuid") or line.get("logicalParentUuid")
        if isinstance(parent, str) and parent in branch and not line.get("isSidechain") and prompt_in(line) is None:
            if isinstance(line.get("uuid"), str):
                branch.add(line["uuid"])
            yield line


def _by_model(line: Line) -> bool:
    """False for a message of the program itself, mostly about a failure: that is no reply."""
    return not line.get("isApiErrorMessage") and _message(line).get("model") != "<synthetic>"


def _ends(line: Line | None) -> bool:
    if line is None or line.get("type") != "assistant" or _message(line).get("stop_reason") != "end_turn":
        return False
    return all(block.get("type") != "tool_use" for block in _blocks(line))


def _reply(line: Line) -> str:
    """The last block, if it is text, as in the program's own last line."""
    blocks = _blocks(line)
    return str(blocks[-1].get("text", "")) if blocks and blocks[-1].get("type") == "text" else ""


def _words(line: Line) -> str:
    content = _message(line).get("content")
    return content if isinstance(content, str) else "\n".join(str(block.get("text", "")) for block in _blocks(line))


def _blocks(line: Line) -> list[dict[str, Any]]:
    content = _message(line).get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _message(line: Line) -> dict[str, Any]:
    message = line.get("message")
    return message if isinstance(message, dict) else {}
