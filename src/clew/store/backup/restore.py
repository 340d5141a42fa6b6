"""A restore: a backup replaces an empty database. It is read and checked in full before anything changes."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Connection, Table, create_engine, select, true
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from clew.store.backup.backup import refuse_newer
from clew.store.backup.copy import (
    Progress,
    cannot_write,
    copy_file,
    copy_rows,
    empty_tables,
    filling,
    silent,
    tables_of,
    whole_file,
)
from clew.store.backup.snapshot import NoDatabase, beside_server, recognise, snapshot
from clew.store.engine.address import read_address, show_url
from clew.store.engine.sqlite import Holder
from clew.store.faults import HeldByAnother, NotADatabase, StoreFault, Unreachable
from clew.store.operations.search_index import clear_index
from clew.store.schema.check import check, count_rows
from clew.store.schema.integrity import FILE
from clew.store.schema.tables import UNKNOWN_RUNTIME, metadata
from clew.store.schema.version import PROGRAM, SchemaVersion, read_version, upgrade


class BadBackup(StoreFault):
    code = "store:bad-backup"


class BrokenPromises(StoreFault):
    code = "store:broken-promises"


class NotEmpty(StoreFault):
    code = "store:not-empty"


class CannotHold(StoreFault):
    code = "store:cannot-hold"


_UNCHANGED = "Nothing was changed; use another backup."


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored. `was` is the schema of the backup; the database has the program's."""

    schema: int
    was: int
    rows: int


def restore(
    address: str, file: Path, force: bool = False, unchecked: bool = False, progress: Progress = silent
) -> Restored:
    """Replace an empty database by a backup, or with `force` any database.

    A backup with broken promises is restored only if `unchecked`; a damaged one never is.
    """
    where = read_address(address)
    if isinstance(where, Path) and file.exists() and where.exists() and file.samefile(where):
        raise BadBackup(f"{file} is the database itself.", "Name another file as the backup.")
    was = _look_at(file)
    if isinstance(where, Path):
        rows = _into_file(where, file, force, unchecked, progress)
    else:
        rows = _into_server(where, file, force, unchecked, progress)
    return Restored(PROGRAM, was, rows)


def _look_at(file: Path) -> int:
    if not file.is_file():
        raise NoDatabase(f"There is no file {file}.", "Name a backup that exists.")
    try:
        with snapshot(str(file)) as connection:
            damage = tuple(FILE.broken(connection))
            if damage:
                raise BadBackup(f"{file} is damaged: {damage[0]}.", _UNCHANGED)
            found = recognise(connection, file)
    except NotADatabase as fault:
        raise BadBackup(fault.words, _UNCHANGED) from fault
    refuse_newer(found, file)
    return found.schema


def _prepared(file: Path, part: Path, unchecked: bool, progress: Progress) -> int:
    """Copy the backup to `part`, upgrade it to the program's schema, and check its promises. How many rows it has."""
    copy_file(file, part, progress)
    with filling(part) as connection:
        if read_version(connection) != SchemaVersion(PROGRAM, PROGRAM):
            upgrade(connection)
    with snapshot(str(part)) as connection:
        broken = () if unchecked else check(connection)
        if broken:
            named = ", ".join(each.promise for each in broken)
            raise BrokenPromises(
                f"{file} breaks these promises: {named}.",
                f"See `clew db check --database {file}`, or restore it anyway with --unchecked.",
            )
        return count_rows(connection)


def _into_file(path: Path, file: Path, force: bool, unchecked: bool, progress: Progress) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        holder = Holder(path)
    except OSError as fault:
        raise cannot_write(path, fault) from fault
    try:
        if path.exists() and not force:
            _refuse_rows_of_file(path)
        # Replace the file that a link leads to, not the link: SQLite's log is beside that file.
        real = path.resolve()
        with whole_file(real) as part:
            rows = _prepared(file, part, unchecked, progress)
            _retire(real)
        return rows
    finally:
        holder.release()


def _refuse_rows_of_file(path: Path) -> None:
    try:
        with snapshot(str(path)) as connection:
            _refuse_rows(connection, tables_of(connection), path)
    except NotADatabase as fault:
        raise NotEmpty(fault.words, "Replace it with --force.") from fault


def _retire(path: Path) -> None:
    """Empty and remove the old file's log: SQLite would apply it to the new file."""
    if path.exists():
        try:
            with beside_server(path) as connection:
                # Wait 1 s for short readers, but not for a backup.
                connection.exec_driver_sql("PRAGMA busy_timeout = 1000")
                busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
        except StoreFault:
            # The old file is damaged; that is why it is replaced.
            busy = 0
        if busy:
            raise HeldByAnother(f"{path} is being read by another process.", "Let it finish, then try again.")
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _into_server(url: URL, file: Path, force: bool, unchecked: bool, progress: Progress) -> int:
    name = show_url(url)
    with tempfile.TemporaryDirectory(prefix="clew-") as directory:
        part = Path(directory) / "clew.db"
        rows = _prepared(file, part, unchecked, progress)
        with snapshot(str(part)) as source, _one_transaction(url, name) as target:
            target.exec_driver_sql("SET LOCAL lock_timeout = '10s'")
            refuse_newer(read_version(target), name)
            upgrade(target)
            tables = metadata.sorted_tables
            # EXCLUSIVE lock: servers that are still running can read, but not write, until the commit.
            target.exec_driver_sql(f"LOCK TABLE {', '.join(table.name for table in tables)} IN EXCLUSIVE MODE")
            if not force:
                _refuse_rows(target, tables, name)
            empty_tables(target, tables)
            clear_index(target)
            copy_rows(source, target, tables, progress)
            # The next run's number follows the last one that was copied.
            target.exec_driver_sql(
                "SELECT setval(pg_get_serial_sequence('runs', 'number'), coalesce(max(number), 0) + 1, false) FROM runs"
            )
        return rows


def _refuse_rows(connection: Connection, tables: Sequence[Table], name: object) -> None:
    """Refuse a database that has rows besides those that every new database has."""
    for table in tables:
        if table.name == "meta":
            continue
        born_with = table.name in ("machines", "runtimes") and "id" in table.c
        own = table.c.id != UNKNOWN_RUNTIME if born_with else true()
        if connection.execute(select(table).where(own).limit(1)).first() is not None:
            raise NotEmpty(
                f"{name} is not empty: it has {table.name}.", "Name another database, or replace it with --force."
            )


@contextmanager
def _one_transaction(url: URL, name: str) -> Iterator[Connection]:
    # Imported only here: psycopg is slow to import, and most servers use SQLite.
    import psycopg  # noqa: PLC0415

    engine = create_engine(url, poolclass=NullPool)
    try:
        with engine.begin() as connection:
            yield connection
    except (DatabaseError, psycopg.Error) as fault:
        error = fault.orig if isinstance(fault, DatabaseError) else fault
        if not isinstance(error, psycopg.Error):
            raise
        said = str(error).strip().splitlines()[0]
        if isinstance(error, psycopg.OperationalError):
            raise Unreachable(
                f"{name} cannot be reached or used: {said}.", "Stop its servers, then try again."
            ) from fault
        raise CannotHold(
            f"{name} refuses a value of the backup: {said}.",
            "Nothing was changed; fix it in the backup, or restore to SQLite.",
        ) from fault
