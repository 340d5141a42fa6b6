"""A backup: one moment of a database in one file. The file is always a SQLite database."""

from dataclasses import dataclass
from pathlib import Path

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
    """What a backup contains, and the promises that its rows break, as those of the database do. An older schema is not
    checked."""

    schema: int
    rows: int
    size: int
    broken: tuple[Violation, ...]


def backup(address: str, file: Path, force: bool = False, progress: Progress = silent) -> Kept:
    """Write the backup while servers keep running. An existing file is replaced only with `force`."""
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
        raise FileThere(f"{file} already exists.", "Name another file, or replace it with --force.")


def _copy_from_server(address: str, part: Path, progress: Progress) -> None:
    with snapshot(address) as source:
        found = recognise(source, show_address(address))
        refuse_newer(found, show_address(address))
        step = source.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
        with filling(part) as target:
            # The source's schema, which may be older than this program's: a backup is taken before an upgrade.
            migrate(target, step)
            tables = tables_of(target)
            empty_tables(target, tables)
            copy_rows(source, target, tables, progress)


def refuse_newer(found: SchemaVersion, name: object) -> None:
    if found.schema > PROGRAM:
        raise NewerThanProgram(
            f"{name} has schema {found.schema}; this program knows schemas up to {PROGRAM}.", "Use a newer Clew."
        )


def _kept(part: Path) -> Kept:
    size = part.stat().st_size
    with snapshot(str(part)) as connection:
        schema = recognise(connection, part).schema
        broken = check(connection) if schema == PROGRAM else ()
        return Kept(schema, rows_in(connection, tables_of(connection)), size, broken)
