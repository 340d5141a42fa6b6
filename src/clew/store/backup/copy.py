"""Copies: a SQLite file as a whole, rows from one database to another, and a file that appears whole or not at all."""

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, LargeBinary, MetaData, Table, create_engine, func, select
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from clew.store.backup.snapshot import beside_server
from clew.store.engine.sqlite import fault_of
from clew.store.faults import StoreFault

Progress = Callable[[int, int, str], None]
"""Called now and then with how much is done, the total, and the unit: bytes or rows."""

AT_ONCE = 1_000
"""Rows in one batch."""
_FILES_AT_ONCE = 4
"""The same of a table of files, whose rows have up to 10 MB each."""

_STEPS = 100_000
"""Instructions of SQLite's virtual machine between two calls of the progress handler: some hundredths of a second."""


def silent(_done: int, _total: int, _unit: str) -> None:
    """Progress that is not shown."""


def copy_file(source: Path, target: Path, progress: Progress = silent) -> None:
    """A consistent copy of a SQLite file without its free pages (VACUUM INTO). The target must be empty or absent."""
    with beside_server(source) as connection:
        pages, size = (
            connection.exec_driver_sql(f"PRAGMA {each}").scalar_one() for each in ("page_count", "page_size")
        )
        total = pages * size
        with _watched(connection, lambda: progress(min(_size(target), total), total, "bytes")):
            try:
                connection.exec_driver_sql("VACUUM INTO ?", (str(target),))
            except DatabaseError as fault:
                raise fault_of(fault.orig or fault, target if "full" in str(fault.orig) else source) from fault
        progress(total, total, "bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextmanager
def _watched(connection: Connection, look: Callable[[], None]) -> Iterator[None]:
    """Call `look` now and then while SQLite works. What it raises stops the work and is raised from here: SQLite itself
    would swallow it."""
    raw = connection.connection.driver_connection
    assert raw is not None
    raised: list[BaseException] = []

    def stops() -> bool:
        try:
            look()
        except BaseException as fault:  # noqa: BLE001 - Ctrl-C arrives here too
            raised.append(fault)
        return bool(raised)

    raw.set_progress_handler(stops, _STEPS)
    try:
        yield
    except StoreFault:
        if raised:
            raise raised[0] from None
        raise
    finally:
        raw.set_progress_handler(None, 0)


def copy_rows(source: Connection, target: Connection, tables: Sequence[Table], progress: Progress = silent) -> None:
    """Every row of these tables. They are in an order in which a row is copied after the rows that it refers to."""
    total = rows_in(source, tables)
    done = 0
    progress(done, total, "rows")
    for table in tables:
        # Streamed, so that a table of any size fits into memory.
        most = _FILES_AT_ONCE if any(isinstance(column.type, LargeBinary) for column in table.columns) else AT_ONCE
        rows = source.execute(select(table), execution_options={"stream_results": True, "yield_per": most})
        with _sender(target, table) as send:
            for batch in rows.partitions():
                send([tuple(row) for row in batch])
                done += len(batch)
                progress(done, total, "rows")


@contextmanager
def _sender(target: Connection, table: Table) -> Iterator[Callable[[Sequence[tuple[object, ...]]], object]]:
    """The driver's own bulk insert (executemany, COPY): ten times as fast as single statements."""
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    raw: Any = target.connection.driver_connection
    if target.dialect.name == "sqlite":
        statement = f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' * len(table.columns))})"
        yield lambda rows: raw.executemany(statement, rows)
        return
    with raw.cursor() as cursor, cursor.copy(f"COPY {table.name} ({names}) FROM STDIN") as stream:
        yield lambda rows: [stream.write_row(row) for row in rows]


def empty_tables(connection: Connection, tables: Sequence[Table]) -> None:
    for table in reversed(tables):
        connection.execute(table.delete())


def rows_in(connection: Connection, tables: Sequence[Table]) -> int:
    return sum(connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables)


def tables_of(connection: Connection) -> Sequence[Table]:
    """The tables that the database has, whatever its schema, without Alembic's and those of the search: triggers make
    what is copied due to be indexed."""
    there = MetaData()
    there.reflect(connection, only=lambda name, _: name != "alembic_version" and not name.startswith("search_"))
    return there.sorted_tables


@contextmanager
def filling(path: Path) -> Iterator[Connection]:
    """One transaction on a SQLite file that no other process uses. It does not sync; `whole_file` does."""
    engine = create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(path), isolation_level="AUTOCOMMIT", poolclass=NullPool
    )
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = MEMORY")
            connection.exec_driver_sql("PRAGMA synchronous = OFF")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.exec_driver_sql("COMMIT")
    except (DatabaseError, sqlite3.Error) as fault:
        error = fault.orig if isinstance(fault, DatabaseError) else fault
        if not isinstance(error, sqlite3.Error):
            raise
        raise fault_of(error, path) from fault


class CannotWrite(StoreFault):
    code = "store:cannot-write"


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """An empty file beside the target, to be filled. When the block ends without an error it is synced and replaces the
    target."""
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as fault:
        raise cannot_write(target, fault) from fault
    os.close(handle)
    part = Path(name)
    try:
        yield part
        if target.exists():
            # An existing file keeps its mode; a new one has 0600.
            part.chmod(target.stat().st_mode)
        _sync(part)
        part.replace(target)
        _sync(target.parent)
    except OSError as fault:
        raise cannot_write(target, fault) from fault
    finally:
        part.unlink(missing_ok=True)


def cannot_write(target: Path, fault: OSError) -> CannotWrite:
    return CannotWrite(
        f"{target} cannot be written: {fault.strerror or fault}.",
        "Choose a directory that has room and that you may write to.",
    )


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
