"""`clew db`: what a person does with the database itself.

Wiring loads every part there is; a command imports it when it runs, so that help comes at once.
"""

from pathlib import Path

from cyclopts import App

from clew.cli.ending import Ending
from clew.cli.place import DatabaseAddress, usual_place
from clew.cli.telling import counted, progress, tell, warn

app = App(name="db", help="Upgrade, back up, restore and check the database.", help_format="markdown")

_USUAL = usual_place()


@app.command
def upgrade(*, only_pre: bool = False, database: DatabaseAddress = _USUAL) -> None:
    """Bring the database to this program's schema, or make it if there is none.

    Stop the server of a SQLite file first. On PostgreSQL older servers keep working after --only-pre; upgrade
    once more, without it, when the last of them is gone.

    For example:

        clew db upgrade

        clew db upgrade --only-pre --database postgresql://clew@db.example/clew

    Parameters
    ----------
    only_pre
        Only add what the new schema needs, so that older servers can share the database.
    """
    from clew.wiring import show_address, upgrade_database  # noqa: PLC0415

    version = upgrade_database(database, only_pre)
    shared = "" if version.oldest_program == version.schema else f", shared with programs of {version.oldest_program}"
    tell(f"{show_address(database)} has schema {version.schema}{shared}.")


@app.command
def backup(file: Path, /, *, force: bool = False, database: DatabaseAddress = _USUAL) -> None:
    """Write one moment of the database to a file, also while a server is using it.

    The file is a SQLite database whatever it was taken from, so it can be restored to SQLite and to PostgreSQL. It
    appears under its name when it is complete, never before.

    For example:

        clew db backup monday.db

        clew db backup latest.db --force --database postgresql://clew@db.example/clew

    Parameters
    ----------
    file
        The file to write.
    force
        Replace the file if it is there.
    """
    from clew.wiring import backup as take  # noqa: PLC0415

    with progress("Backing up") as watch:
        kept = take(database, file, force, watch)
    tell(f"{file} holds {counted(kept.rows, 'row')} of schema {kept.schema}.")
    if kept.broken:
        named = ", ".join(each.promise for each in kept.broken)
        warn(f"It breaks promises, as the database does: {named}. See `clew db check`.")


@app.command
def restore(file: Path, /, *, force: bool = False, unchecked: bool = False, database: DatabaseAddress = _USUAL) -> None:
    """Put a backup in the place of a database that is empty or absent.

    The backup is read in full first: one that is damaged, of another program or of a newer Clew is refused, and
    nothing is changed. One of an older schema is upgraded on the way. Stop the servers first; one that holds a SQLite
    file is named.

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
        Take a backup in which promises are broken; see `clew db check`.
    """
    from clew.wiring import restore as put_back  # noqa: PLC0415
    from clew.wiring import show_address  # noqa: PLC0415

    with progress("Restoring") as watch:
        restored = put_back(database, file, force, unchecked, watch)
    came = "" if restored.was == restored.schema else f", upgraded from {restored.was}"
    tell(f"{show_address(database)} holds {counted(restored.rows, 'row')} of schema {restored.schema}{came}.")


@app.command
def check(*, database: DatabaseAddress = _USUAL) -> Ending:
    """Ask the database for every row that breaks a promise, also while a server is using it.

    The exit status is 1 when there is any.

    For example:

        clew db check

        clew db check --database monday.db

    """
    from clew.wiring import check_database  # noqa: PLC0415

    checked = check_database(database)
    for each in checked.broken:
        more = f", and {each.count - len(each.rows):,} more" if each.count > len(each.rows) else ""
        tell(f"{each.promise}: {each.words}\n  broken by {counted(each.count, 'row')}: {', '.join(each.rows)}{more}")
    if checked.broken:
        tell(f"{len(checked.broken)} of {checked.promises} promises are broken.")
        return Ending.FAILED
    tell(f"{checked.promises} promises hold over {counted(checked.rows, 'row')}.")
    return Ending.DONE
