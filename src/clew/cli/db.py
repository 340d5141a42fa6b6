"""`clew db`: what a person does with the database itself.

Wiring loads every part there is; a command imports it when it runs, so that help comes at once.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from clew.cli.ending import Ending
from clew.cli.place import DatabaseAddress, DataDirectory, usual_data
from clew.cli.telling import counted, progress, tell, tell_as_is, warn
from clew.server.datadir import DataDirectory as Layout

app = App(name="db", help="Upgrade, back up, restore and check the database.", help_format="markdown")

_USUAL = usual_data()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Which:
    """The database that is meant: the one that `clew up` would take."""

    data: DataDirectory = _USUAL
    database: DatabaseAddress = None
    json: Annotated[bool, Parameter(help="Print the result as JSON.")] = False

    @property
    def address(self) -> str:
        return str(Layout(self.data).database) if self.database is None else self.database


_WHICH = Which()


@app.command
def upgrade(*, only_pre: bool = False, which: Which = _WHICH) -> None:
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
    from clew.app import show_address, upgrade_database  # noqa: PLC0415

    version = upgrade_database(which.address, only_pre)
    shown = show_address(which.address)
    if which.json:
        return _tell_json(database=shown, schema=version.schema, oldest_program=version.oldest_program)
    shared = "" if version.oldest_program == version.schema else f", shared with programs of {version.oldest_program}"
    return tell(f"{shown} has schema {version.schema}{shared}.")


@app.command
def backup(file: Path, /, *, force: bool = False, which: Which = _WHICH) -> None:
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
    from clew.app import backup as take  # noqa: PLC0415

    with progress("Backing up") as watch:
        kept = take(which.address, file, force, watch)
    if which.json:
        _tell_json(file=str(file), **asdict(kept))
    else:
        tell(f"{file} holds {counted(kept.rows, 'row')} of schema {kept.schema}.")
    if kept.broken:
        named = ", ".join(each.promise for each in kept.broken)
        warn(f"It breaks promises, as the database does: {named}. See `clew db check`.")


@app.command
def restore(file: Path, /, *, force: bool = False, unchecked: bool = False, which: Which = _WHICH) -> None:
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
    from clew.app import restore as put_back  # noqa: PLC0415
    from clew.app import show_address  # noqa: PLC0415

    with progress("Restoring") as watch:
        restored = put_back(which.address, file, force, unchecked, watch)
    shown = show_address(which.address)
    if which.json:
        return _tell_json(database=shown, **asdict(restored))
    came = "" if restored.was == restored.schema else f", upgraded from {restored.was}"
    return tell(f"{shown} holds {counted(restored.rows, 'row')} of schema {restored.schema}{came}.")


@app.command
def check(*, which: Which = _WHICH) -> Ending:
    """Ask the database for every row that breaks a promise, also while a server is using it.

    The exit status is 1 when there is any.

    For example:

        clew db check

        clew db check --database monday.db

    """
    from clew.app import check_database  # noqa: PLC0415

    checked = check_database(which.address)
    if which.json:
        _tell_json(**asdict(checked))
        return Ending.FAILED if checked.broken else Ending.DONE
    for each in checked.broken:
        more = f", and {each.count - len(each.rows):,} more" if each.count > len(each.rows) else ""
        tell(f"{each.promise}: {each.words}\n  broken by {counted(each.count, 'row')}: {', '.join(each.rows)}{more}")
    if checked.broken:
        tell(f"{len(checked.broken)} of {checked.promises} promises are broken.")
        return Ending.FAILED
    tell(f"{checked.promises} promises hold over {counted(checked.rows, 'row')}.")
    return Ending.DONE


def _tell_json(**result: object) -> None:
    tell_as_is(json.dumps(result, ensure_ascii=False))
