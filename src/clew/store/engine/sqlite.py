"""SQLite: one file, one server, one writer; readers see the last commit and wait for nobody."""

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
"""Seconds that somebody else may hold the file before whoever waits is told."""


class SqliteDatabase:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._holder = Holder(path)
            # Before SQLite makes it: what agents say is nobody else's to read.
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
        self._checkpointer = Checkpointer(path)
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
        """One that is free, or a new one; to open it, the file must not be held by anybody."""
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
        """What went wrong in words, where it is the file that failed; everything else goes through as it is."""
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
    raw.execute(f"PRAGMA wal_autocheckpoint = {BACKSTOP}")


def fault_of(error: BaseException, path: Path) -> StoreFault:
    """What the driver says, in words and with what to do."""
    said = str(error)
    if "disk is full" in said or "disk I/O error" in said:
        return _full(path, said)
    if "not a database" in said or "malformed" in said:
        return NotADatabase(f"{path} is damaged or no database: {said}.", "Restore a backup with `clew db restore`.")
    if "is locked" in said:
        remedy = "Wait for it to end, or end it, and try again: nothing that was answered is lost."
        return Busy(f"Another program holds {path}: {said}.", remedy)
    return Unreachable(f"{path} cannot be used: {said}.", "Check that the file and its directory can be written.")


def _full(path: Path, said: str) -> DiskFull:
    return DiskFull(f"The disk of {path} is full: {said}.", "Free some space; nothing that was answered is lost.")


class Holder:
    """An exclusive lock beside the file. The system lets go of it when its process ends, however it ends."""

    def __init__(self, database: Path) -> None:
        # By the file itself, whatever path led to it.
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
    """The holder in words; it may be writing its name at this very moment."""
    try:
        said = json.load(file)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(said["since"]))
        return f"process {said['pid']} on {said['host']}, since {since}"
    except (ValueError, KeyError, TypeError):
        return "another server"


WORTH_IT = 4 * 1024 * 1024
"""From this size of the log on a checkpoint is worth its time."""

BACKSTOP = 16_000
"""Pages of log at which the writer does it itself, because nobody else could."""

_EVERY = 0.5


class Checkpointer:
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
                if self._log.stat().st_size >= WORTH_IT:
                    self._move()
            except (OSError, sqlite3.Error):
                # The log stays as it is, and the writer's own limit stands behind this.
                continue

    def _move(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=1.0)
        try:
            # Waits for nobody, neither a writer nor a reader.
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        finally:
            connection.close()
