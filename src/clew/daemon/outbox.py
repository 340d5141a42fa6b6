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

from clew.kernel import RunId
from clew.ports.fault import Fault
from clew.protocol.codec import decode, encode
from clew.protocol.reports import Finish, Report

_SCHEMA = """
CREATE TABLE IF NOT EXISTS said (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, attempt INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL
)
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


_Work = Callable[[sqlite3.Connection], None]


class Outbox:
    """One thread writes the file, and everything that waits for it goes into one transaction."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600, exist_ok=True)
            self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.execute(_SCHEMA)
            (version,) = self._file.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise OutboxUnusable(f"{path} was written by a newer Clew.", "Use that version, or move the file away.")
            self._file.execute(f"PRAGMA user_version = {_VERSION}")
            (self._last,) = self._file.execute("SELECT coalesce(max(id), 0) FROM said").fetchone()
        except (OSError, sqlite3.Error) as fault:
            words = f"{path} cannot be used: {fault}."
            raise OutboxUnusable(words, "Make it writable, or move it away if it is damaged.") from fault
        self._work: queue.SimpleQueue[tuple[_Work, Callable[[Exception | None], None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="clew-outbox", daemon=True)
        self._thread.start()

    def left(self) -> list[Letter]:
        """All letters, in order: at a start, those that an earlier process could not deliver."""
        rows = self._file.execute("SELECT run, attempt, kind, body, id FROM said ORDER BY id").fetchall()
        return [Letter(RunId(run), attempt, kind, body, id_) for run, attempt, kind, body, id_ in rows]

    def put(self, letters: Sequence[Letter]) -> Stored:
        """Store letters, in the order of the calls. If the disk fails, they are still sent while this process lives."""
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[None] = loop.create_future()
        ids = [self._last + number for number in range(1, len(letters) + 1)]
        self._last += len(letters)
        rows = [(id_, each.run, each.attempt, each.kind, each.body) for id_, each in zip(ids, letters, strict=True)]

        def answer(fault: Exception | None) -> None:
            if fault is not None:
                _log.warning("a report could not be stored in the outbox; it is sent all the same: %s", fault)
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_set, kept)

        self._work.put((lambda file: _insert(file, rows), answer))
        return Stored(tuple(ids), kept)

    def drop(self, ids: Sequence[int]) -> None:
        """The server has them. Nothing waits for this: a letter that stays is sent again, and the server knows it."""
        if ids:
            self._work.put((lambda file: _delete(file, ids), _nothing))

    def drop_run(self, run: RunId) -> None:
        self._work.put((lambda file: _delete_run(file, run), _nothing))

    def close(self) -> None:
        """Write what waits, then close. Safe to repeat."""
        self._work.put(None)
        self._thread.join()
        self._file.close()

    def _serve(self) -> None:
        while (first := self._work.get()) is not None:
            waiting, stop = [first], False
            while not stop:
                try:
                    more = self._work.get_nowait()
                except queue.Empty:
                    break
                stop = more is None
                if more is not None:
                    waiting.append(more)
            fault = self._in_one_transaction([work for work, _ in waiting])
            for _, answer in waiting:
                answer(fault)
            if stop:
                return

    def _in_one_transaction(self, works: Sequence[_Work]) -> Exception | None:
        try:
            self._file.execute("BEGIN IMMEDIATE")
            for work in works:
                work(self._file)
            self._file.execute("COMMIT")
        except sqlite3.Error as fault:
            with contextlib.suppress(sqlite3.Error):
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
            return fault
        return None


def _set(kept: "asyncio.Future[None]") -> None:
    if not kept.done():
        kept.set_result(None)


def _nothing(_: Exception | None) -> None:
    pass


def _insert(file: sqlite3.Connection, rows: Sequence[tuple[int, str, int, str, str]]) -> None:
    file.executemany("INSERT INTO said (id, run, attempt, kind, body) VALUES (?, ?, ?, ?, ?)", rows)


def _delete(file: sqlite3.Connection, ids: Sequence[int]) -> None:
    file.executemany("DELETE FROM said WHERE id = ?", [(id_,) for id_ in ids])


def _delete_run(file: sqlite3.Connection, run: RunId) -> None:
    file.execute("DELETE FROM said WHERE run = ?", (run,))


REPORT, FINISH = "report", "finish"


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
