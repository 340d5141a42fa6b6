"""`clew db`: upgrade, backup, restore and check the database.

Each command imports `clew.app` when it runs, because that loads every part and `--help` must be fast.
"""

from dataclasses import asdict, dataclass
from typing import Annotated

from cyclopts import App, Parameter

from clew.cli.input import DEFAULT_DATA, DatabaseAddress, DataDirectory, FileName
from clew.cli.output import ExitStatus, counted, progress, tell, tell_answer, warn
from clew.server.data_dir import DataDirectory as Layout

app = App(name="db", help="Upgrade, back up, restore and check the database.", help_format="markdown")


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Which:
    """Chooses the database: by default the one that `clew up` uses."""

    data: DataDirectory = DEFAULT_DATA
    database: DatabaseAddress = None
    json: Annotated[bool, Parameter(help="Print the result as JSON.")] = False

    @property
    def address(self) -> str:
        return str(Layout(self.data).database) if self.database is None else self.database


_WHICH = Which()


@app.command
def upgrade(*, only_pre: bool = False, which: Which = _WHICH) -> None:
    """Upgrade the database to this version's schema, or create it.

    Stop the server first if the database is a SQLite file. On PostgreSQL, older servers keep working after --only-pre;
    run the upgrade again without it when the last of them has stopped.

    For example:

        clew db upgrade

        clew db upgrade --only-pre --database postgresql://clew@db.example/clew

    Parameters
    ----------
    only_pre
        Only add what the new schema needs, so that older servers can still use the database.
    """
    from clew.app.database import show_address, upgrade_database  # noqa: PLC0415

    version = upgrade_database(which.address, only_pre)
    shown = show_address(which.address)
    shared = (
        "" if version.oldest_program == version.schema else f", usable by versions from schema {version.oldest_program}"
    )
    result = {"database": shown, "schema": version.schema, "oldest_program": version.oldest_program}
    tell_answer(result, lambda: tell(f"{shown} has schema {version.schema}{shared}."), as_json=which.json)


@app.command
def backup(file: FileName, /, *, force: bool = False, which: Which = _WHICH) -> None:
    """Write a consistent snapshot of the database to a file, also while a server is using it.

    The file is always a SQLite database, and can be restored to SQLite and to PostgreSQL. It appears under its name
    only when it is complete.

    For example:

        clew db backup monday.db

        clew db backup latest.db --force --database postgresql://clew@db.example/clew

    Parameters
    ----------
    file
        The file to write.
    force
        Replace the file if it exists.
    """
    from clew.app.database import backup as take_backup  # noqa: PLC0415

    with progress("Backing up") as watch:
        kept = take_backup(which.address, file, force, watch)
    text = f"{file} contains {counted(kept.rows, 'row')} of schema {kept.schema}."
    tell_answer({"file": str(file), **asdict(kept)}, lambda: tell(text), as_json=which.json)
    if kept.broken:
        named = ", ".join(each.promise for each in kept.broken)
        warn(f"The database and this backup break promises: {named}. See `clew db check`.")


@app.command
def restore(file: FileName, /, *, force: bool = False, unchecked: bool = False, which: Which = _WHICH) -> None:
    """Restore a backup to a database that is empty or does not exist.

    The backup is read completely first. If it is damaged, not from Clew, or from a newer version, it is refused and
    nothing changes. A backup of an older schema is upgraded. Stop all servers first; a server that has the SQLite file
    open is named in the error.

    For example:

        clew db restore monday.db

        clew db restore monday.db --database postgresql://clew@db.example/clew

    Parameters
    ----------
    file
        The backup, or any SQLite database of Clew.
    force
        Replace a database that is not empty.
    unchecked
        Accept a backup that breaks promises; see `clew db check`.
    """
    from clew.app.database import restore as restore_backup  # noqa: PLC0415
    from clew.app.database import show_address  # noqa: PLC0415

    with progress("Restoring") as watch:
        restored = restore_backup(which.address, file, force, unchecked, watch)
    shown = show_address(which.address)
    came = "" if restored.was == restored.schema else f", upgraded from {restored.was}"
    text = f"{shown} contains {counted(restored.rows, 'row')} of schema {restored.schema}{came}."
    tell_answer({"database": shown, **asdict(restored)}, lambda: tell(text), as_json=which.json)


@app.command
def check(*, which: Which = _WHICH) -> ExitStatus:
    """Find rows that break a promise of the schema, also while a server is using the database.

    The exit status is 1 if there are any.

    For example:

        clew db check

        clew db check --database monday.db

    """
    from clew.app.database import check_database  # noqa: PLC0415

    checked = check_database(which.address)

    def show() -> None:
        for each in checked.broken:
            more = f", and {each.count - len(each.rows):,} more" if each.count > len(each.rows) else ""
            rows = f"{counted(each.count, 'row')}: {', '.join(each.rows)}{more}"
            tell(f"{each.promise}: {each.words}\n  broken by {rows}")
        if checked.broken:
            tell(f"{len(checked.broken)} of {checked.promises} promises are broken.")
        else:
            tell(f"{checked.promises} promises hold over {counted(checked.rows, 'row')}.")

    tell_answer(checked, show, as_json=which.json)
    return ExitStatus.FAILED if checked.broken else ExitStatus.DONE
