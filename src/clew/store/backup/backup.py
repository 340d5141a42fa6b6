"""Backing up: one moment of a database in one file, which is always a SQLite database, whatever it was taken from."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from clew.store.backup.copy import (
    Progress,
    copy_file,
    copy_rows,
    empty_tables,
    filling,
    rows_in,
    silent,
    tables_of,
    whole_file,
)
from clew.store.backup.snapshot import recognise, snapshot
from clew.store.engine.address import read_address, show_address
from clew.store.faults import NewerThanProgram, StoreFault
from clew.store.schema.check import Violation, check
from clew.store.schema.version import PROGRAM, SchemaVersion, migrate


class FileThere(StoreFault):
    code = "store:file-there"


@dataclass(frozen=True, slots=True)
class Kept:
    """What a backup holds, and the promises that are broken in it as in the database. An older schema is not asked."""

    schema: int
    rows: int
    size: int
    broken: tuple[Violation, ...]


def backup(address: str, file: Path, force: bool = False, progress: Progress = silent) -> Kept:
    """Write the file whole, beside whatever server is running. An existing file is replaced only by `force`."""
    where = read_address(address)
    _refuse_what_is_there(where, file, force)
    with whole_file(file) as part:
        if isinstance(where, Path):
            with snapshot(address) as connection:
                recognise(connection, where)
            copy_file(where, part, progress)
        else:
            _copy_from_server(address, part, progress)
        return _kept(part)


def _refuse_what_is_there(where: object, file: Path, force: bool) -> None:
    if isinstance(where, Path) and file.exists() and where.exists() and file.samefile(where):
        raise FileThere(f"{file} is the database itself.", "Name another file for the backup.")
    if file.exists() and not force:
        raise FileThere(f"{file} is there already.", "Name another file, or replace it with --force.")


def _copy_from_server(address: str, part: Path, progress: Progress) -> None:
    with snapshot(address) as source:
        found = recognise(source, show_address(address))
        refuse_newer(found, show_address(address))
        step = source.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
        with filling(part) as target:
            # The same tables as there, which need not be those of this program: a backup is taken before an upgrade.
            migrate(target, step)
            tables = tables_of(target)
            empty_tables(target, tables)
            copy_rows(source, target, tables, progress)


def refuse_newer(found: SchemaVersion, name: object) -> None:
    if found.schema > PROGRAM:
        raise NewerThanProgram(
            f"{name} has schema {found.schema}; this program knows those up to {PROGRAM}.", "Use a newer Clew."
        )


def _kept(part: Path) -> Kept:
    size = part.stat().st_size
    with snapshot(str(part)) as connection:
        schema = recognise(connection, part).schema
        return Kept(schema, rows_in(connection, tables_of(connection)), size, _broken(connection, schema))


def _broken(connection: Connection, schema: int) -> tuple[Violation, ...]:
    return check(connection) if schema == PROGRAM else ()
