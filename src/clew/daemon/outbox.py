"""The outbox: reports and ends of runs, on disk from before they are sent until the server has them.

A commit does not wait for the disk (synchronous = NORMAL): it survives any end of this process, which is its purpose.
The letters are JSON that a later Clew can read.
"""

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.kernel import RunId
from clew.ports.fault import Fault
from clew.protocol.codec import decode, encode
from clew.protocol.reports import Finish, Report

REPORT, FINISH = "report", "finish"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS said (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, attempt INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS unread (
    letter INTEGER PRIMARY KEY REFERENCES said (id) ON DELETE CASCADE, why TEXT NOT NULL
);
"""
_VERSION = 1

_log = logging.getLogger("clew.daemon")


class OutboxUnusable(Fault):
    code = "daemon:outbox-unusable"


@dataclass(frozen=True, slots=True)
class Letter:
    """A report or an end of a run, as text. `id` is its place in the outbox; 0 until it has one."""

    run: RunId
    attempt: int
    kind: str
    body: str
    id: int = 0


@dataclass(frozen=True, slots=True)
class Stored:
    """The ids of letters; `safe` is done once they are on disk."""

    ids: tuple[int, ...]
    safe: "asyncio.Future[None]"


@dataclass(frozen=True, slots=True)
class _Write:
    """A statement for the writer thread, once for each row. `done` gets the fault, or None."""

    statement: str
    rows: Sequence[tuple[Any, ...]]
    done: Callable[[Exception | None], None] = lambda _: None


class Outbox:
    """One thread writes the file, and everything that waits for it goes into one transaction."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600, exist_ok=True)
            self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.execute("PRAGMA foreign_keys = ON")
            self._file.executescript(_SCHEMA)
            (version,) = self._file.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise OutboxUnusable(f"{path} was written by a newer Clew.", "Use that version, or move the file away.")
            self._file.execute(f"PRAGMA user_version = {_VERSION}")
            (self._last,) = self._file.execute("SELECT coalesce(max(id), 0) FROM said").fetchone()
        except (OSError, sqlite3.Error) as fault:
            words = f"{path} cannot be used: {fault}."
            raise OutboxUnusable(words, "Make it writable, or move it away if it is damaged.") from fault
        self._writes: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="clew-outbox", daemon=True)
        self._thread.start()

    def left(self) -> list[Letter]:
        """All letters, in order: at a start, those that an earlier process could not deliver."""
        rows = self._file.execute("SELECT run, attempt, kind, body, id FROM said ORDER BY id").fetchall()
        return [Letter(RunId(run), attempt, kind, body, id_) for run, attempt, kind, body, id_ in rows]

    def unread(self) -> frozenset[int]:
        """The ids of the letters that an earlier process set aside."""
        return frozenset(letter for (letter,) in self._file.execute("SELECT letter FROM unread").fetchall())

    def set_aside(self, letter: Letter, why: str) -> None:
        """Keep a letter that this version of Clew cannot read. It is tried again at each start: another may read it."""
        self._writes.put(_Write("INSERT OR REPLACE INTO unread (letter, why) VALUES (?, ?)", [(letter.id, why)]))

    def put(self, letters: Sequence[Letter]) -> Stored:
        """Store letters, in the order of the calls. If the disk fails, they are still sent while this process lives."""
        loop = asyncio.get_running_loop()
        safe: asyncio.Future[None] = loop.create_future()
        ids = tuple(range(self._last + 1, self._last + 1 + len(letters)))
        self._last += len(letters)
        rows = [(id_, each.run, each.attempt, each.kind, each.body) for id_, each in zip(ids, letters, strict=True)]

        def done(fault: Exception | None) -> None:
            if fault is not None:
                _log.warning("a report could not be stored in the outbox; it is sent all the same: %s", fault)
            # The loop may be closed by now.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: None if safe.done() else safe.set_result(None))

        self._writes.put(_Write("INSERT INTO said (id, run, attempt, kind, body) VALUES (?, ?, ?, ?, ?)", rows, done))
        return Stored(ids, safe)

    def drop(self, ids: Sequence[int]) -> None:
        """The server has them. Nothing waits for this: a letter that stays is sent again, and the server knows it."""
        self._writes.put(_Write("DELETE FROM said WHERE id = ?", [(id_,) for id_ in ids]))

    def drop_attempt(self, run: RunId, attempt: int) -> None:
        """Letters of earlier attempts stay: they may be of another version of Clew."""
        self._writes.put(_Write("DELETE FROM said WHERE run = ? AND attempt = ?", [(run, attempt)]))

    def close(self) -> None:
        """Write what waits, then close. Safe to repeat."""
        self._writes.put(None)
        self._thread.join()
        self._file.close()

    def _serve(self) -> None:
        """Until None comes, which `close` puts."""
        going = True
        while going:
            waiting = [self._writes.get()]
            while not self._writes.empty():
                waiting.append(self._writes.get())
            writes = [each for each in waiting if each is not None]
            going = len(writes) == len(waiting)
            fault = self._in_one_transaction(writes)
            for each in writes:
                each.done(fault)

    def _in_one_transaction(self, writes: Sequence[_Write]) -> Exception | None:
        try:
            self._file.execute("BEGIN IMMEDIATE")
            for write in writes:
                self._file.executemany(write.statement, write.rows)
            self._file.execute("COMMIT")
        except sqlite3.Error as fault:
            with contextlib.suppress(sqlite3.Error):
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
            return fault
        return None


def letter_of(said: Report | Finish) -> Letter:
    if isinstance(said, Finish):
        return Letter(said.run, said.attempt, FINISH, encode(said))
    if (
        said.opens
        or said.settled
        or said.landed is not None
        or said.told is not None
        or said.prompted is not None
        or said.reopens
    ):
        raise ValueError("a report that decides whether a prompt goes out is never sent later")
    return Letter(said.run, said.attempt, REPORT, encode(said))


def read_letter(letter: Letter) -> Report | Finish:
    """Raises ValueError where it cannot be read."""
    if letter.kind == FINISH:
        return decode(letter.body, Finish)
    if letter.kind != REPORT:
        raise ValueError(f"unknown kind of letter {letter.kind!r}")
    return decode(letter.body, Report)
