"""Hearing: whether a thread took a prompt, read from its files. No program is started, and nothing is changed.

Codex writes a prompt down before it asks its model, as two lines, and waits for each to be written: a response item,
which is what the model is shown, now and after every resume; and an event with the id that the client chose. What the
model answers and does comes behind them, each line before Codex acts on it. So a prompt that is in no line was shown to
no model, unless the disk was full: then Codex goes on without writing. A line that cannot be read is passed over by
Codex; it may have been the prompt's, so nothing is said then.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from clew.kernel import Attestation, Evidence, Sent
from clew.programs.secrets import Redactor
from clew.providers.codex.history import Broken, Head, Line, check_lines, head_of, lines_of, turns_in
from clew.providers.codex.names import Rollout
from clew.providers.codex.prompts import Prompt, followed, prompts_in
from clew.providers.codex.store import Index, rollouts_of

_ROOM = 64 * 1024
"""Bytes. With less than this left, what is missing in a file may be what could not be written."""

_OURS = frozenset({"clew-locks"})


class _CannotSay(Exception):
    """Why nothing is known."""


def hear(root: Path, thread: str, sent: Sent, redactor: Redactor, busy: Callable[[], bool]) -> Attestation:
    """`busy` tells whether somebody may be writing to the thread at that moment."""
    try:
        _must_be_still(busy, thread)
        said = _read(root, thread, sent, redactor)
        _must_be_still(busy, thread)
    except _CannotSay as why:
        return Attestation(Evidence.UNKNOWN, str(why))
    return said


def _must_be_still(busy: Callable[[], bool], thread: str) -> None:
    if busy():
        raise _CannotSay(f"Session {thread} is open in another program, which may still write to it.")


def _read(root: Path, thread: str, sent: Sent, redactor: Redactor) -> Attestation:
    if not root.is_dir() or not {entry.name for entry in root.iterdir()} - _OURS:
        raise _CannotSay(f"The home {root} is not there, or is empty: is it mounted?")
    files = rollouts_of(root, thread)
    if not files:
        return _unsent(root, files, sent, f"There is no file of session {thread} in {root}, archived ones included.")
    current = files[0]
    if current.packed:
        raise _CannotSay(f"{current.path.name} is compressed, and Clew does not read that. Open it in Codex once.")
    data = current.path.read_bytes()
    if not data:
        # Codex never opens it again.
        return _unsent(root, files, sent, f"{current.path.name} was begun, and nothing was written to it.")
    head = _head(current, data)
    beneath = Index(root).lineage(current)[:-1] if head.base is not None else ()
    before = sum(turns_in(part.data) for part in beneath)
    turns = before + turns_in(data)
    own = lines = lines_of(data)
    if any(sent.id.encode() in part.data for part in beneath):
        lines = [line for part in beneath for line in lines_of(part.data)] + own
        found = _found(prompts_in(lines), sent, turns)
    else:
        found = _found(prompts_in(own, before), sent, turns)
    if found is None:
        _must_be_whole(current, head, own, before, min(sent.turns or 0, turns))
        return _unsent(root, files, sent, f"{current.path.name} is whole, and does not hold the prompt.")
    if not found.shown:
        raise _CannotSay(f"{current.path.name} names the prompt, and does not hold its text: was the disk full?")
    return _told(lines, found, current, redactor)


def _head(current: Rollout, data: bytes) -> Head:
    try:
        return head_of(data.partition(b"\n")[0])
    except Broken as fault:
        raise _CannotSay(f"{current.path.name} is damaged: {fault}.") from fault


def _found(prompts: Sequence[Prompt], sent: Sent, turns: int) -> Prompt | None:
    """By its id. One that was cut off before its id was written, or went to a version of Codex that keeps none, is
    known by its text and its place: later than the turns that there had been."""
    for prompt in prompts:
        if prompt.client == sent.id:
            return prompt
    alike = [prompt for prompt in prompts if prompt.client is None and prompt.digest == sent.digest]
    if alike and (sent.turns is None or sent.turns > turns):
        raise _CannotSay("The session holds the same text without an id, and where it belongs is not known.")
    # Words for a turn that is going are in the last of those turns.
    return next((prompt for prompt in alike if prompt.turn + (not prompt.first) > (sent.turns or 0)), None)


def _must_be_whole(current: Rollout, head: Head, lines: Sequence[Line | None], turns: int, since: int) -> None:
    """`turns` there were before these lines. One that cannot be read matters from so many turns on."""
    try:
        check_lines(lines, head, current.thread)
    except Broken as fault:
        raise _CannotSay(f"{current.path.name} is damaged: {fault}.") from fault
    for line in lines:
        if line is None and turns >= since:
            raise _CannotSay(f"A line of {current.path.name} cannot be read, and may be that of the prompt.")
        turns += line is not None and line.event == "task_started"


def _unsent(root: Path, files: Sequence[Rollout], sent: Sent, why: str) -> Attestation:
    for file in files[1:]:
        if file.packed:
            raise _CannotSay(f"{file.path.name} is compressed, and may hold the prompt from before a rewind.")
        if sent.id.encode() in file.path.read_bytes():
            raise _CannotSay(f"{file.path.name} holds the prompt, and the session was rewound in Codex since.")
    room = os.statvfs(root)
    if room.f_blocks and room.f_bavail * room.f_frsize < _ROOM:
        raise _CannotSay(f"The disk of {root} is full, and Codex goes on without writing down what it was told.")
    return Attestation(Evidence.UNSENT, why)


def _told(lines: Sequence[Line | None], found: Prompt, current: Rollout, redactor: Redactor) -> Attestation:
    after = followed(lines, found)
    name = current.path.name
    if after.completed:
        return Attestation(
            Evidence.FINISHED, f"{name} holds the prompt and the end of its turn.", redactor.text(after.reply)
        )
    if after.anything:
        return Attestation(Evidence.CUT_OFF, f"{name} holds the prompt and a part of its turn, which did not complete.")
    why = f", and the turn's failure: {redactor.text(after.failure)}" if after.failure else ", and nothing behind it"
    return Attestation(Evidence.TAKEN, f"{name} holds the prompt{why}.")
