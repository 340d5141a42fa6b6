"""SQLite: one file, one server, one writer. Readers see the last commit and never wait for the writer."""

import errno
import fcntl
import json
import os
import socket
import sqlite3
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any, TypeVar

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import DatabaseError
from sqlalchemy.exc import TimeoutError as NoneFree
from sqlalchemy.pool import QueuePool

from clew.store.engine.database import Operation
from clew.store.engine.hints import Board, Pacer, Subscription, Topics, work
from clew.store.engine.writer import Writer
from clew.store.faults import Busy, DiskFull, HeldByAnother, NotADatabase, StoreFault, Unreachable

Result = TypeVar("Result")

READERS = 8

PATIENCE = 10.0
"""Seconds that another program may lock the file before an operation fails (busy_timeout)."""


class Holder:
    """An exclusive flock on a file beside the database: one server at a time. The system releases it when the process
    ends, however it ends. A second server is told which process has it."""

    def __init__(self, database: Path) -> None:
        # Beside the resolved file, so that every path to it meets the same lock.
        real = database.resolve()
        self._file: IO[str] = _taken(database, real.with_name(real.name + ".holder"))

    def release(self) -> None:
        self._file.close()


def _taken(database: Path, path: Path) -> IO[str]:
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with file:
            who = _read(file)
        raise HeldByAnother(
            f"{database} is held by {who}.",
            "Use that server, stop it first, or give this one a database of its own.",
        ) from None
    file.truncate()
    json.dump({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}, file)
    file.flush()
    return file


def _read(file: IO[str]) -> str:
    """The process that has the lock. It may be writing its name at this moment; then it is unnamed."""
    try:
        said = json.load(file)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(said["since"]))
        return f"process {said['pid']} on {said['host']}, since {since}"
    except (ValueError, KeyError, TypeError):
        return "another server"


_WORTH_IT = 4 * 1024 * 1024
"""Size of the log from which a checkpoint is worth its time."""

_BACKSTOP = 16_000
"""Pages of log at which the writer runs the checkpoint itself (wal_autocheckpoint), if this thread could not."""

_EVERY = 0.5


class _Checkpointer:
    """Copies commits from SQLite's log into its file on a thread of its own, so that no caller waits for it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="clew-checkpoints", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _serve(self) -> None:
        while not self._closing.wait(_EVERY):
            try:
                if self._log.stat().st_size >= _WORTH_IT:
                    self._move()
            except (OSError, sqlite3.Error):
                # The log stays as it is until the next attempt, or until the writer's own limit.
                continue

    def _move(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=1.0)
        try:
            # PASSIVE waits for no writer and no reader.
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        finally:
            connection.close()


class SqliteDatabase:
    def __init__(self, path: Path) -> None:
        self._path = path
        if path.is_dir():
            raise Unreachable(f"{path} is a directory.", "Name the database file in it.")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._holder = Holder(path)
            # Created before SQLite does it, with mode 0600: the journal is private.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as fault:
            if fault.errno in (errno.ENOSPC, errno.EDQUOT):
                raise _full(path, str(fault.strerror)) from fault
            raise Unreachable(
                f"{path} cannot be opened: {fault.strerror}.", "Choose a directory you may write to."
            ) from fault
        self._engine = create_engine(
            URL.create("sqlite", database=str(path)),
            isolation_level="AUTOCOMMIT",
            poolclass=QueuePool,
            pool_size=READERS + 1,
            max_overflow=0,
            connect_args={"check_same_thread": False},
        )
        event.listen(self._engine, "connect", _prepare)
        try:
            with self._engine.connect() as connection:
                connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
            writing = self._engine.connect()
        except DatabaseError as fault:
            self._engine.dispose()
            self._holder.release()
            raise fault_of(fault.orig or fault, path) from fault
        self._board = Board()
        self._pacer = Pacer(self._board.put)
        self._checkpointer = _Checkpointer(path)
        self._writer = Writer(writing, self._publish, self._explain)

    def write(self, operation: Operation[Result]) -> Future[Result]:
        return self._writer.submit(operation)

    def do(self, operation: Operation[Result]) -> Result:
        return self._writer.submit(operation).result()

    def read(self, operation: Operation[Result]) -> Result:
        with self._reading() as connection:
            raw: Any = connection.connection.driver_connection
            raw.execute("BEGIN")
            try:
                return operation(connection)
            except (sqlite3.Error, DatabaseError) as fault:
                raise self._explain(fault) from fault
            finally:
                raw.execute("ROLLBACK")

    def subscribe(self) -> Subscription:
        return self._board.subscribe()

    def unsubscribe(self, reader: Subscription) -> None:
        self._board.unsubscribe(reader)

    def close(self) -> None:
        self._writer.close()
        self._checkpointer.close()
        self._pacer.close()
        self._engine.dispose()
        self._holder.release()

    def _reading(self) -> Connection:
        """A free connection, or a new one; opening one fails while another program locks the file."""
        try:
            return self._engine.connect()
        except NoneFree as fault:
            raise Busy("Every connection for reading is in use.", "Try again.") from fault
        except DatabaseError as fault:
            raise self._explain(fault) from fault

    def _publish(self, topics: Topics) -> None:
        waits = work(topics)
        if waits:
            self._board.put(waits)
        self._pacer.put(topics - waits)

    def _explain(self, fault: Exception) -> Exception:
        """A fault with a remedy where the file failed; any other error is returned as it is."""
        said = fault.orig if isinstance(fault, DatabaseError) else fault
        name = getattr(said, "sqlite_errorname", "")
        return fault_of(said, self._path) if name.startswith(_OF_THE_FILE) and said is not None else fault


_OF_THE_FILE = (
    "SQLITE_BUSY",
    "SQLITE_CANTOPEN",
    "SQLITE_CORRUPT",
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_NOTADB",
    "SQLITE_READONLY",
)


def _prepare(raw: sqlite3.Connection, _record: Any) -> None:
    raw.execute(f"PRAGMA busy_timeout = {round(PATIENCE * 1000)}")
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("PRAGMA foreign_keys = ON")
    raw.execute(f"PRAGMA wal_autocheckpoint = {_BACKSTOP}")


def fault_of(error: BaseException, path: Path) -> StoreFault:
    """The driver's error as a fault with a remedy."""
    said = str(error)
    if "disk is full" in said or "disk I/O error" in said:
        return _full(path, said)
    if "not a database" in said or "malformed" in said:
        return NotADatabase(f"{path} is damaged or not a database: {said}.", "Restore a backup with `clew db restore`.")
    if "is locked" in said:
        remedy = "Wait for it to end, or stop it, and try again: nothing that was confirmed is lost."
        return Busy(f"Another program holds {path}: {said}.", remedy)
    return Unreachable(f"{path} cannot be used: {said}.", "Check that the file and its directory can be written.")


def _full(path: Path, said: str) -> DiskFull:
    return DiskFull(f"The disk of {path} is full: {said}.", "Free some space; nothing that was confirmed is lost.")
