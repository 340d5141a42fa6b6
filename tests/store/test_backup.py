"""Backup and restore: one moment in one file, whole or not at all, back into either database or not at all."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, func, insert, select, update
from sqlalchemy.engine import URL

from clew.kernel import AgentId, LaneId
from clew.ports.fault import Fault
from clew.store.backup.backup import FileThere, backup
from clew.store.backup.copy import CannotWrite, rows_in
from clew.store.backup.restore import BadBackup, BrokenPromises, CannotHold, NotEmpty, restore
from clew.store.backup.snapshot import NoDatabase, snapshot
from clew.store.engine.database import Database
from clew.store.engine.open import open_database
from clew.store.faults import HeldByAnother, NewerThanProgram, NotADatabase, NotClew, Unreachable
from clew.store.operations.queue import queue_run
from clew.store.schema.check import check
from clew.store.schema.tables import journal, machines, meta, metadata, runs, runtimes
from clew.store.schema.version import PROGRAM, SchemaVersion, read_version, upgrade
from tests.store.next_version import NEXT, become_next_version
from tests.store.specimen import fill, put_wake

Rows = dict[str, list[tuple[object, ...]]]


def rows_of(address: str) -> Rows:
    with snapshot(address) as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr)
            for table in metadata.sorted_tables
        }


@contextmanager
def opened(address: str) -> Iterator[Database]:
    database = open_database(address)
    try:
        yield database
    finally:
        database.close()


def it_has(database: Database) -> int:
    """The number of its newest run."""
    newest: int = database.read(lambda it: it.execute(select(func.max(runs.c.number))).scalar_one())
    return newest


def filled(address: str) -> str:
    with opened(address) as database:
        database.write(upgrade).result(60)
        database.write(fill).result(60)
    return address


@pytest.fixture
def source(address: str) -> str:
    """A database of each kind in which everything occurs."""
    return filled(address)


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where nothing is yet."""
    if request.param == "sqlite":
        yield str(tmp_path / "target" / "clew.db")
        return
    server: URL = request.getfixturevalue("postgres")
    name = f"clew_{uuid.uuid4().hex}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield server.set(database=name).render_as_string(hide_password=False)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    admin.dispose()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A backup of a SQLite database in which everything occurs."""
    file = tmp_path / "kept.db"
    backup(filled(str(tmp_path / "origin" / "clew.db")), file)
    return file


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def is_absent(address: str) -> bool:
    """Whether nothing was made there."""
    if "://" not in address:
        return not Path(address).exists()
    with snapshot(address) as connection:
        return read_version(connection) == SchemaVersion(0, 0)


# ---------------------------------------------------------------- there and back


def test_what_is_restored_is_what_was_there(source: str, target: str, tmp_path: Path) -> None:
    held = backup(source, tmp_path / "kept.db")
    before = rows_of(source)
    assert (held.schema, held.rows, held.broken) == (PROGRAM, sum(map(len, before.values())), ())
    put_back = restore(target, tmp_path / "kept.db")
    assert (put_back.schema, put_back.was, put_back.rows) == (PROGRAM, PROGRAM, held.rows)
    assert rows_of(target) == before == rows_of(str(tmp_path / "kept.db"))
    with snapshot(target) as connection:
        assert check(connection) == ()
    with opened(target) as database:
        assert database.write(upgrade).result(60) == SchemaVersion(PROGRAM, PROGRAM)
        # The next run gets the next number.
        count = it_has(database)
        database.write(lambda it: queue_run(it, LaneId("idle"), AgentId("bob"), None, 1.0)).result(60)
        assert it_has(database) == count + 1


def test_a_backup_is_one_file_that_any_tool_can_read(source: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / "kept.db"
    backup(source, file)
    assert names_in(file.parent) == ["kept.db"]
    assert file.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as plain:
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert plain.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone() == (str(PROGRAM),)


def test_a_backup_is_taken_before_an_upgrade_and_restored_after_it(
    address: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(address) as database:
        database.write(upgrade).result(60)
        plain = "INSERT INTO machines (id, name) VALUES ('laptop', 'laptop')"
        database.write(lambda connection: connection.exec_driver_sql(plain).rowcount).result(60)
    become_next_version(monkeypatch, tmp_path)
    held = backup(address, tmp_path / "kept.db")
    assert (held.schema, held.broken) == (PROGRAM, ())
    with snapshot(str(tmp_path / "kept.db")) as connection:
        assert read_version(connection) == SchemaVersion(PROGRAM, PROGRAM)
    put_back = restore(target, tmp_path / "kept.db")
    assert (put_back.was, put_back.schema) == (PROGRAM, NEXT)
    with snapshot(target) as connection:
        assert read_version(connection) == SchemaVersion(NEXT, NEXT)
    assert [row[0] for row in rows_of(target)["machines"]] == ["laptop", "unknown"]


def test_rows_are_copied_in_many_parts_and_progress_is_told(source: str, target: str, tmp_path: Path) -> None:
    with opened(source) as database:
        said = {"thread_id": "idle", "author_kind": "human", "author_name": "x", "body": "x" * 50, "at": 1.0}
        many = [{**said, "seq": seq} for seq in range(4, 5_004)]
        database.write(lambda connection: connection.execute(insert(journal), many).rowcount).result(60)
    told: list[tuple[int, int, str]] = []
    backup(source, tmp_path / "kept.db", progress=lambda *step: told.append(step))
    restore(target, tmp_path / "kept.db", progress=lambda *step: told.append(step))
    assert all(0 <= done <= total for done, total, _ in told)
    for unit in {unit for _, _, unit in told}:
        assert any(done == total for done, total, each in told if each == unit)
    expected = {"bytes"} | ({"rows"} if "://" in source + target else set())
    assert {unit for _, _, unit in told} == expected
    assert len(rows_of(target)["journal"]) == 5_012


# ---------------------------------------------------------------- beside a server


def test_a_backup_is_one_moment_while_a_server_goes_on_writing(source: str, tmp_path: Path) -> None:
    stop, failed = threading.Event(), []

    def add(connection: Connection, number: int) -> None:
        """Two rows that belong together, in two tables."""
        connection.execute(insert(machines).values(id=f"m-{number}", name="x"))
        connection.execute(insert(runtimes).values(id=f"m-{number}", machine_id=f"m-{number}", provider="x", home="x"))

    def goes_on(database: Database) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                database.write(partial(add, number=number)).result(60)
            except Exception as fault:  # noqa: BLE001 - told below
                failed.append(fault)
                return

    with opened(source) as database:
        writer = threading.Thread(target=goes_on, args=(database,))
        writer.start()
        try:
            counts = []
            for number in range(4):
                held = backup(source, tmp_path / f"kept-{number}.db")
                assert held.broken == ()
                with snapshot(str(tmp_path / f"kept-{number}.db")) as connection:
                    counts.append([rows_in(connection, [table]) for table in (machines, runtimes)])
        finally:
            stop.set()
            writer.join(60)
    assert failed == []
    assert all(made == had for made, had in counts)
    assert counts[0] < counts[-1], "the server did go on"


def test_a_file_that_a_server_holds_is_not_replaced(kept: Path, tmp_path: Path) -> None:
    target = filled(str(tmp_path / "clew.db"))
    before = rows_of(target)
    with opened(target):
        for force in (False, True):
            with pytest.raises(HeldByAnother, match=f"held by process {os.getpid()}"):
                restore(target, kept, force=force)
    assert rows_of(target) == before


# ---------------------------------------------------------------- files


def test_an_existing_file_is_replaced_only_by_force(source: str, tmp_path: Path) -> None:
    file = tmp_path / "kept.db"
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(FileThere, match="already exists"):
        backup(source, file)
    assert file.read_text(encoding="utf-8") == "mine"
    file.chmod(0o640)
    backup(source, file, force=True)
    assert rows_of(str(file)) == rows_of(source)
    assert file.stat().st_mode & 0o777 == 0o640


def test_the_database_itself_is_never_its_own_backup(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    source = filled(str(path))
    (tmp_path / "link.db").symlink_to(path)
    for file in (path, tmp_path / "link.db"):
        with pytest.raises(FileThere, match="the database itself"):
            backup(source, file, force=True)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_backup_that_is_cut_short_leaves_nothing(source: str, tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / "kept.db"

    def cut(_done: int, _total: int, _unit: str) -> None:
        raise error

    with pytest.raises(error):
        backup(source, file, progress=cut)
    assert names_in(file.parent) == []
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(error):
        backup(source, file, force=True, progress=cut)
    assert file.read_text(encoding="utf-8") == "mine"
    assert names_in(file.parent) == ["kept.db"]


def test_a_person_may_stop_a_long_copy(tmp_path: Path) -> None:
    source = filled(str(tmp_path / "clew.db"))
    with opened(source) as database:
        many = [{"id": f"m-{number}", "name": "x"} for number in range(20_000)]
        database.write(lambda connection: connection.execute(insert(machines), many).rowcount).result(60)
    told = []

    def stop(done: int, total: int, _unit: str) -> None:
        told.append((done, total))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backup(source, tmp_path / "kept.db", progress=stop)
    assert len(told) == 1
    assert told[0][0] < told[0][1], "it was stopped on the way"
    assert not (tmp_path / "kept.db").exists()


def test_a_place_that_cannot_be_written_is_named(source: str, tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="cannot be written"):
        backup(source, tmp_path / "nowhere" / "kept.db")


def test_a_database_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoDatabase, match="no database at"):
        backup(str(tmp_path / "clew.db"), tmp_path / "kept.db")
    with pytest.raises(Unreachable) as refused:
        backup("postgresql://clew:secret@127.0.0.1:1/clew", tmp_path / "kept.db")
    assert "secret" not in str(refused.value)
    assert names_in(tmp_path) == []


def test_a_database_that_is_damaged_is_named_and_not_its_backup(tmp_path: Path) -> None:
    source = tmp_path / "clew.db"
    filled(str(source))
    damaged(source)
    with pytest.raises(NotADatabase, match=rf"^{source} is damaged"):
        backup(str(source), tmp_path / "kept.db")


def test_a_backup_leaves_no_file_open(tmp_path: Path) -> None:
    source = filled(str(tmp_path / "clew.db"))

    def opened_by_a_backup() -> int:
        before = len([*Path("/dev/fd").iterdir()])
        backup(source, tmp_path / "kept.db", force=True)
        return len([*Path("/dev/fd").iterdir()]) - before

    opened_by_a_backup()
    assert opened_by_a_backup() <= 0


def test_a_database_of_something_else_is_not_backed_up(address: str, tmp_path: Path) -> None:
    with opened(address) as database:
        foreign = "CREATE TABLE meta (id INTEGER)"
        database.write(lambda connection: connection.exec_driver_sql(foreign).rowcount).result(60)
    with pytest.raises(NotClew, match="not a database of Clew"):
        backup(address, tmp_path / "kept.db")
    assert not (tmp_path / "kept.db").exists()


def test_a_backup_of_a_database_with_broken_promises_is_taken_and_says_so(source: str, tmp_path: Path) -> None:
    with opened(source) as database:
        database.write(lambda connection: put_wake(connection, "w-x", "idle", "pending")).result(60)
    held = backup(source, tmp_path / "kept.db")
    assert [each.promise for each in held.broken] == ["wake-pending"]


# ---------------------------------------------------------------- what is refused


def damaged(kept: Path) -> None:
    with closing(sqlite3.connect(kept)) as plain:
        (page,) = plain.execute("SELECT rootpage FROM sqlite_master WHERE name = 'journal'").fetchone()
        (size,) = plain.execute("PRAGMA page_size").fetchone()
    with kept.open("r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(b"\xff" * size)


def truncated(kept: Path) -> None:
    os.truncate(kept, kept.stat().st_size // 2)


def cut_after_the_header(kept: Path) -> None:
    os.truncate(kept, 100)


def of_no_kind(kept: Path) -> None:
    kept.write_bytes(b"this is no database, whatever its name says" * 100)


def empty(kept: Path) -> None:
    os.truncate(kept, 0)


def of_another_program(kept: Path) -> None:
    kept.unlink()
    with closing(sqlite3.connect(kept)) as plain:
        plain.executescript("CREATE TABLE notes (body TEXT); CREATE TABLE meta (id INTEGER)")


def of_a_later_clew(kept: Path) -> None:
    with closing(sqlite3.connect(kept)) as plain:
        plain.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (str(PROGRAM + 1),))
        plain.commit()


def gone(kept: Path) -> None:
    kept.unlink()


def with_a_lost_wake(kept: Path) -> None:
    with closing(sqlite3.connect(kept)) as plain:
        plain.execute("DELETE FROM wakes WHERE id = 'w-claimed'")
        plain.commit()


REFUSED: list[tuple[Callable[[Path], None], type[Fault]]] = [
    (damaged, BadBackup),
    (truncated, BadBackup),
    (cut_after_the_header, BadBackup),
    (of_no_kind, BadBackup),
    (empty, NotClew),
    (of_another_program, NotClew),
    (of_a_later_clew, NewerThanProgram),
    (gone, NoDatabase),
    (with_a_lost_wake, BrokenPromises),
]


@pytest.mark.parametrize(("spoil", "fault"), [pytest.param(*each, id=each[0].__name__) for each in REFUSED])
def test_a_bad_backup_is_refused_and_nothing_is_made(
    kept: Path, target: str, spoil: Callable[[Path], None], fault: type[Fault]
) -> None:
    spoil(kept)
    with pytest.raises(fault):
        restore(target, kept)
    assert is_absent(target)


@pytest.mark.parametrize("spoil", [truncated, of_a_later_clew, with_a_lost_wake])
def test_a_bad_backup_is_refused_and_what_was_there_stays(
    kept: Path, target: str, spoil: Callable[[Path], None]
) -> None:
    before = rows_of(filled(target))
    spoil(kept)
    with pytest.raises(Fault):
        restore(target, kept, force=True)
    assert rows_of(target) == before


def test_broken_promises_are_named_and_can_be_taken_all_the_same(kept: Path, target: str) -> None:
    with_a_lost_wake(kept)
    with pytest.raises(BrokenPromises, match="breaks these promises: run-carries"):
        restore(target, kept)
    restore(target, kept, unchecked=True)
    assert rows_of(target) == rows_of(str(kept))


# ---------------------------------------------------------------- what is replaced


def test_a_database_with_rows_is_replaced_only_by_force(kept: Path, target: str) -> None:
    with opened(target) as database:
        database.write(upgrade).result(60)
        row = insert(machines).values(id="m", name="m")
        database.write(lambda connection: connection.execute(row).rowcount).result(60)
    before = rows_of(target)
    with pytest.raises(NotEmpty, match="is not empty: it has machines"):
        restore(target, kept)
    assert rows_of(target) == before
    restore(target, kept, force=True)
    assert rows_of(target) == rows_of(str(kept))


def test_a_database_that_is_new_counts_as_empty(kept: Path, target: str) -> None:
    with opened(target) as database:
        database.write(upgrade).result(60)
    restore(target, kept)
    assert rows_of(target) == rows_of(str(kept))


def test_what_is_no_database_is_replaced_only_by_force(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    of_no_kind(path)
    with pytest.raises(NotEmpty, match="damaged or not a database"):
        restore(str(path), kept)
    restore(str(path), kept, force=True)
    assert rows_of(str(path)) == rows_of(str(kept))


def test_the_log_of_the_old_file_is_not_played_into_the_new_one(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    # A server that is killed leaves what it wrote in the log beside the file.
    dies = "import os, sys; from pathlib import Path; from clew.store.engine.sqlite import SqliteDatabase\n"
    dies += "from clew.store.schema.version import upgrade\n"
    dies += "SqliteDatabase(Path(sys.argv[1])).write(upgrade).result(60); os._exit(0)"
    subprocess.run([sys.executable, "-c", dies, str(path)], check=True, timeout=60)
    assert (tmp_path / "clew.db-wal").stat().st_size > 0
    restore(str(path), kept, force=True)
    assert not (tmp_path / "clew.db-wal").exists()
    assert rows_of(str(path)) == rows_of(str(kept))


def test_a_file_that_is_being_read_is_not_replaced(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    filled(str(path))
    with snapshot(str(path)) as reader:
        with opened(str(path)) as database:
            changed = update(machines).values(name="another")
            database.write(lambda connection: connection.execute(changed).rowcount).result(60)
        before = rows_of(str(path))
        with pytest.raises(HeldByAnother, match="is being read"):
            restore(str(path), kept, force=True)
        assert reader.execute(select(meta)).first() is not None
    assert rows_of(str(path)) == before


def test_where_a_link_leads_is_replaced_and_not_the_link(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "clew.db").symlink_to(tmp_path / "there" / "real.db")
    restore(str(tmp_path / "clew.db"), kept)
    assert (tmp_path / "clew.db").is_symlink()
    assert rows_of(str(tmp_path / "there" / "real.db")) == rows_of(str(kept))


def test_a_restore_that_is_cut_short_changes_nothing(kept: Path, target: str) -> None:
    before = rows_of(filled(target))

    def cut(done: int, total: int, _unit: str) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(target, kept, force=True, progress=cut)
    assert rows_of(target) == before
    if "://" not in target:
        assert [name for name in names_in(Path(target).parent) if name.endswith(".part")] == []


@pytest.mark.parametrize("target", ["postgresql"], indirect=True)
def test_what_postgresql_cannot_hold_is_refused_whole(kept: Path, target: str) -> None:
    with closing(sqlite3.connect(kept)) as plain:
        plain.execute("UPDATE journal SET body = 'a' || char(0) || 'b' WHERE thread_id = 'idle' AND seq = 1")
        plain.commit()
    with pytest.raises(CannotHold, match="refuses a value of the backup"):
        restore(target, kept)
    assert is_absent(target)


@pytest.mark.parametrize("target", ["postgresql"], indirect=True)
def test_a_database_of_a_later_clew_is_not_replaced(kept: Path, target: str) -> None:
    filled(target)
    with opened(target) as database:
        ahead = update(meta).where(meta.c.key == "schema").values(value=str(PROGRAM + 1))
        database.write(lambda connection: connection.execute(ahead).rowcount).result(60)
    with pytest.raises(NewerThanProgram):
        restore(target, kept, force=True)
    with pytest.raises(NewerThanProgram):
        backup(target, kept, force=True)


def test_a_backup_can_be_read_where_nothing_can_be_written(kept: Path, tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    shutil.copy(kept, shelf)
    shelf.chmod(0o500)
    try:
        restore(str(tmp_path / "clew.db"), shelf / kept.name)
    finally:
        shelf.chmod(0o700)
    assert names_in(shelf) == [kept.name]
