"""Whether a thread took a prompt, read from its files. No program is started, and nothing is changed.

Codex writes a prompt before it asks its model, as two lines, and waits for each to be written: a response item, which
is what the model is shown, now and after every resume; and an event with the id that the client chose. The model's
answers and actions follow, each line before Codex acts on it. So a prompt that is in no line was shown to no model,
unless the disk was full: then Codex goes on without writing. Codex skips a line that it cannot read; that may be the
prompt's, so the answer is then unknown.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.kernel import Attestation, Evidence, Sent, digest_of
from clew.programs.secrets import Redactor
from clew.providers.codex.locks import CLAIMS
from clew.providers.codex.rollout import Broken, Head, Line, Rollout, check_lines, head_of, lines_of, turns_in
from clew.providers.codex.store import Index, rollouts_of

_ROOM = 64 * 1024
"""Bytes. With less room than this, a missing line may be one that could not be written."""

_INPUT_ROLES = frozenset({"user", "developer", "system"})
"""The roles of what a model is shown; everything else it said or did itself."""


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt in a history. `turn` counts the turns begun by then, with its own; `first` if it began that turn.

    `client` is the id that its sender chose; None if it was cut off before that was written, or if that version of
    Codex keeps none. `shown`: a model is shown it when the thread is resumed.
    """

    at: int
    began: int
    turn: int
    first: bool
    client: str | None
    digest: str
    shown: bool = True


@dataclass(frozen=True, slots=True)
class _Followed:
    """What follows a prompt. `reply` is the agent's last message in that turn."""

    anything: bool
    completed: bool
    reply: str
    failure: str


class _Unknown(Exception):
    """The message says why the files do not tell."""


def attestation(root: Path, thread: str, sent: Sent, redactor: Redactor, busy: Callable[[], bool]) -> Attestation:
    """`busy` tells whether a program may be writing to the thread at that moment."""
    try:
        _check_idle(busy, thread)
        found = _read(root, thread, sent, redactor)
        _check_idle(busy, thread)
    except _Unknown as why:
        return Attestation(Evidence.UNKNOWN, str(why))
    return found


def _check_idle(busy: Callable[[], bool], thread: str) -> None:
    if busy():
        raise _Unknown(f"Session {thread} is open in another program, which may still write to it.")


def _read(root: Path, thread: str, sent: Sent, redactor: Redactor) -> Attestation:
    if not root.is_dir() or not {entry.name for entry in root.iterdir()} - {CLAIMS}:
        raise _Unknown(f"The home {root} is not there, or is empty: is it mounted?")
    files = rollouts_of(root, thread)
    if not files:
        return _unsent(root, files, sent, f"There is no file of session {thread} in {root}, archived ones included.")
    current = files[0]
    if current.packed:
        raise _Unknown(f"{current.path.name} is compressed, and Clew does not read that. Open it in Codex once.")
    data = current.path.read_bytes()
    if not data:
        # Codex never opens an empty file again.
        return _unsent(root, files, sent, f"{current.path.name} was begun, and nothing was written to it.")
    head = _head(current, data)
    beneath = Index(root).lineage(current)[:-1] if head.base is not None else ()
    before = sum(turns_in(part.data) for part in beneath)
    turns = before + turns_in(data)
    own = lines = lines_of(data)
    if any(sent.id.encode() in part.data for part in beneath):
        lines = [line for part in beneath for line in lines_of(part.data)] + own
        found = _found(_prompts_in(lines), sent, turns)
    else:
        found = _found(_prompts_in(own, before), sent, turns)
    if found is None:
        _check_whole(current, head, own, before, min(sent.turns or 0, turns))
        return _unsent(root, files, sent, f"{current.path.name} is whole, and does not hold the prompt.")
    if not found.shown:
        raise _Unknown(f"{current.path.name} names the prompt, and does not hold its text: was the disk full?")
    return _outcome(lines, found, current, redactor)


def _head(current: Rollout, data: bytes) -> Head:
    try:
        return head_of(data.partition(b"\n")[0])
    except Broken as fault:
        raise _Unknown(f"{current.path.name} is damaged: {fault}.") from fault


def _found(prompts: Sequence[_Prompt], sent: Sent, turns: int) -> _Prompt | None:
    """Find the prompt by its id. If its id was not written, because it was cut off or that version of Codex keeps none,
    find it by its text and its place: after the turns that there had been."""
    for prompt in prompts:
        if prompt.client == sent.id:
            return prompt
    alike = [prompt for prompt in prompts if prompt.client is None and prompt.digest == sent.digest]
    if alike and (sent.turns is None or sent.turns > turns):
        raise _Unknown("The session holds the same text without an id, and where it belongs is not known.")
    # Words sent within a turn are in the last of those turns.
    return next((prompt for prompt in alike if prompt.turn + (not prompt.first) > (sent.turns or 0)), None)


def _check_whole(current: Rollout, head: Head, lines: Sequence[Line | None], turns: int, since: int) -> None:
    """`turns` came before these lines. A line that cannot be read matters from turn `since` on."""
    try:
        check_lines(lines, head, current.thread)
    except Broken as fault:
        raise _Unknown(f"{current.path.name} is damaged: {fault}.") from fault
    for line in lines:
        if line is None and turns >= since:
            raise _Unknown(f"A line of {current.path.name} cannot be read, and may be the prompt's.")
        turns += line is not None and line.event == "task_started"


def _unsent(root: Path, files: Sequence[Rollout], sent: Sent, why: str) -> Attestation:
    for file in files[1:]:
        if file.packed:
            raise _Unknown(f"{file.path.name} is compressed, and may hold the prompt from before a rewind.")
        if sent.id.encode() in file.path.read_bytes():
            raise _Unknown(f"{file.path.name} holds the prompt, and the session was rewound in Codex since.")
    room = os.statvfs(root)
    if room.f_blocks and room.f_bavail * room.f_frsize < _ROOM:
        raise _Unknown(f"The disk of {root} is full, and Codex goes on without writing.")
    return Attestation(Evidence.UNSENT, why)


def _outcome(lines: Sequence[Line | None], found: _Prompt, current: Rollout, redactor: Redactor) -> Attestation:
    after = _followed(lines, found)
    name = current.path.name
    if after.completed:
        return Attestation(
            Evidence.FINISHED, f"{name} holds the prompt and the end of its turn.", redactor.text(after.reply)
        )
    if after.anything:
        return Attestation(Evidence.CUT_OFF, f"{name} holds the prompt and a part of its turn, which did not complete.")
    why = f", and the turn's failure: {redactor.text(after.failure)}" if after.failure else ", and nothing behind it"
    return Attestation(Evidence.TAKEN, f"{name} holds the prompt{why}.")


# ---------------------------------------------------------------- prompts in the lines


def _prompts_in(lines: Sequence[Line | None], before: int = 0) -> Sequence[_Prompt]:
    """In order. `before` is the number of turns before these lines."""
    reading = _Reading(before)
    for at, line in enumerate(lines):
        if line is not None:
            reading.add(at, line)
    return reading.end()


class _Reading:
    def __init__(self, before: int) -> None:
        self._turn, self._began, self._first = before, 0, True
        self._found: list[_Prompt] = []
        self._unnamed: list[tuple[int, str]] = []
        """User messages to the model in this turn that no event has named yet: line number and digest."""

    def add(self, at: int, line: Line) -> None:
        if line.event == "task_started":
            self._close()
            self._turn, self._began = self._turn + 1, at
        elif line.type == "response_item" and line.payload.get("role") == "user":
            self._unnamed.append((at, _digest(line.payload.get("content"))))
        elif (said := _prompt_event(line)) is not None:
            digest, client = said
            match = next((each for each in self._unnamed if each[1] == digest), None)
            if match is not None:
                self._unnamed.remove(match)
            self._found.append(_Prompt(at, self._began, self._turn, self._first, client, digest, match is not None))
            self._first = False

    def end(self) -> Sequence[_Prompt]:
        self._close()
        return sorted(self._found, key=lambda prompt: prompt.at)

    def _close(self) -> None:
        """A message without an event was cut off before it, or is of an older version, or is Codex's own."""
        for at, digest in self._unnamed:
            self._found.append(_Prompt(at, self._began, self._turn, self._first, None, digest))
        self._unnamed, self._first = [], True


def _followed(lines: Sequence[Line | None], prompt: _Prompt) -> _Followed:
    began = lines[prompt.began]
    turn = began.payload.get("turn_id") if began is not None else None
    anything, completed, reply, failure = False, False, "", ""
    for at, line in enumerate(lines[prompt.began + 1 :], prompt.began + 1):
        if line is not None and line.event == "task_started":
            break
        if line is None or _turn_of(line) not in (None, turn):
            # The end of a command that an earlier turn left running is written in a later turn.
            continue
        item = _item(line)
        if item.get("type") == "AgentMessage":
            reply = _text(item.get("content"))
        anything = anything or (at > prompt.at and _is_by_agent(line))
        if line.event == "task_complete":
            error = line.payload.get("error")
            failure = str(error.get("message") or error) if isinstance(error, Mapping) else ""
            completed = error is None
    return _Followed(anything, completed, reply, failure)


def _is_by_agent(line: Line) -> bool:
    if line.type == "response_item":
        return line.payload.get("role") not in _INPUT_ROLES
    return _item(line).get("type") not in (None, "UserMessage", "HookPrompt")


def _turn_of(line: Line) -> Any:
    kept = line.payload.get("internal_chat_message_metadata_passthrough")
    return line.payload.get("turn_id") or (kept.get("turn_id") if isinstance(kept, Mapping) else None)


def _prompt_event(line: Line) -> tuple[str, str | None] | None:
    """The digest and the client's id in a prompt's event."""
    item = _item(line)
    return (_digest(item.get("content")), item.get("client_id")) if item.get("type") == "UserMessage" else None


def _item(line: Line) -> Mapping[str, Any]:
    item = line.payload.get("item") if line.event == "item_completed" else None
    return item if isinstance(item, Mapping) else {}


def _digest(content: Any) -> str:
    return digest_of(_text(content))


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else ()
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))
