"""Placing restored files in a home: all of them or none, and never over a history that went on differently."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clew.providers.codex.archiving import Copy
from clew.providers.codex.faults import Diverged, SessionArchived, SessionBusy
from clew.providers.codex.history import Broken, check, weighs, whole_lines
from clew.providers.codex.locks import held
from clew.providers.codex.names import Rollout
from clew.providers.codex.store import Index, Part


@dataclass(frozen=True, slots=True)
class Put:
    """One file to write. What is there is set aside for good when it is damaged."""

    thread: str
    target: Path
    data: bytes
    damaged: bool


@dataclass(frozen=True, slots=True)
class _Done:
    put: Put
    beside: Path | None
    """What was there before, under another name that Codex does not read."""


class Placed:
    """What was placed, and the way back as long as nobody has gone on with it. `threads` are those of which something
    was, and the copy's own as the last."""

    def __init__(self, root: Path, own: str) -> None:
        self._root, self._own = root, own
        self._done: list[_Done] = []

    @property
    def threads(self) -> list[str]:
        beneath = (done.put.thread for done in self._done)
        return [*dict.fromkeys(thread for thread in beneath if thread != self._own), self._own]

    def put(self, put: Put) -> None:
        """The file appears at once and whole."""
        put.target.parent.mkdir(parents=True, exist_ok=True)
        new = put.target.with_name(f"{put.target.name}.clew-new")
        with new.open("wb") as file:
            file.write(put.data)
            file.flush()
            os.fsync(file.fileno())
        beside = _beside(put) if put.target.exists() else None
        if beside is not None:
            os.link(put.target, beside)
        new.replace(put.target)
        self._done.append(_Done(put, beside))

    def keep(self) -> None:
        for done in self._done:
            if done.beside is not None and not done.put.damaged:
                done.beside.unlink(missing_ok=True)

    def take_back(self) -> None:
        # Somebody who has it open by now is not robbed of it.
        with contextlib.suppress(SessionBusy), held(self._root, [self._own, *(done.put.thread for done in self._done)]):
            self.undo()

    def undo(self) -> None:
        """Under the locks under which it was done."""
        for done in reversed(self._done):
            target = done.put.target
            if target.exists() and weighs(target.read_bytes()[len(done.put.data) :]):
                continue
            if done.beside is not None:
                done.beside.replace(target)
            else:
                target.unlink(missing_ok=True)


def _beside(put: Put) -> Path:
    word = "damaged" if put.damaged else "before"
    names = (put.target.with_name(f"{put.target.name}.{word}-{count}") for count in range(1, 1_000_000))
    return next(name for name in names if not name.exists())


def place(root: Path, copy: Copy) -> Placed:
    """Only what is missing or shorter is put; Codex has none of these threads loaded meanwhile."""
    expected = _plan(root, copy)
    threads = frozenset({copy.thread, *(put.thread for put in expected)})
    with held(root, threads):
        puts = _plan(root, copy)
        if not {put.thread for put in puts} <= threads:
            raise SessionBusy(f"The files of session {copy.thread} changed meanwhile.", "Try again.")
        placed = Placed(root, copy.thread)
        try:
            for put in puts:
                placed.put(put)
        except OSError:
            placed.undo()
            raise
    return placed


def _plan(root: Path, copy: Copy) -> list[Put]:
    index = Index(root)
    _must_be_the_same_line(index, copy)
    return [put for part in copy.parts for put in _put(index, part, own=part is copy.parts[-1])]


def _must_be_the_same_line(index: Index, copy: Copy) -> None:
    """A rewind goes on in a new file, and Codex remembers which; a file of another line would not be read."""
    here, own = index.current(copy.thread), copy.parts[-1].rollout
    if here is not None and here.segment != own.segment:
        raise _diverged(here, "was rewound on one side")
    if here is not None and here.set_away:
        raise SessionArchived(f"Session {copy.thread} was archived here.", f"First: codex unarchive {copy.thread}")


def _put(index: Index, part: Part, own: bool) -> Iterator[Put]:
    here = index.segment(part.rollout.segment)
    if here is None:
        yield Put(part.rollout.thread, index.root / part.rollout.name, part.data, damaged=False)
        return
    if here.packed:
        raise _diverged(here, "is compressed here")
    there = here.path.read_bytes()
    old = whole_lines(there)
    try:
        check(old, here.thread)
    except Broken:
        yield Put(here.thread, here.path, part.data, damaged=True)
        return
    common = _common(old, part.data)
    beyond = weighs(old[common:])
    if common == len(part.data):
        # All of the copy is here already. What is beneath another may go on as it likes.
        if own and beyond:
            raise _diverged(here, "has gone on here")
    elif beyond:
        raise _diverged(here, "went on differently here")
    else:
        yield Put(here.thread, here.path, part.data, damaged=False)


def _common(one: bytes, other: bytes) -> int:
    """How many bytes are the same from the beginning, in whole lines."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low if low in (len(one), len(other)) else one.rfind(b"\n", 0, low) + 1


def _diverged(here: Rollout, why: str) -> Diverged:
    return Diverged(
        f"Session {here.thread} {why}, so the archive is not put over it.", "Go on with the session that is here."
    )
