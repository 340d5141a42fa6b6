"""`clew db`, run for real: what it says, what it leaves, and how it ends."""

import json
import os
import pty
import re
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, make_url, update
from sqlalchemy.pool import NullPool

from clew.store.engine.open import open_database
from clew.store.schema.tables import runs
from clew.store.schema.version import PROGRAM, upgrade
from tests.cli.kit import PROGRAM as COMMAND
from tests.cli.kit import Said, clew, environment, here, names_in, ok, within
from tests.store.next_version import NEXT, become_next_version
from tests.store.specimen import fill, put_wake

Cap = pytest.CaptureFixture[str]


@contextmanager
def held(address: str) -> Iterator[None]:
    """A server is using it: this process."""
    database = open_database(address)
    try:
        yield
    finally:
        database.close()


@pytest.fixture
def filled(address: str) -> str:
    database = open_database(address)
    database.write(upgrade).result(60)
    database.write(fill).result(60)
    database.close()
    return address


def failed(said: Said, code: str) -> str:
    """One line on stderr: what, what to do, and the code. Nothing else, and never a traceback."""
    assert (said.status, said.out) == (1, "")
    told = re.fullmatch(rf"clew: (.+\. [A-Z].+\.) \[{code}\]\n", said.err)
    assert told, said.err
    return told[1]


def shown(address: str) -> str:
    """As it may be shown: without a driver's name, and with no password, not even an empty one."""
    return address.replace("+psycopg", "").replace(":@", ":***@")


def test_a_database_is_made_checked_kept_and_put_back(filled: str, tmp_path: Path, capfd: Cap) -> None:
    rows = re.search(r"over (\d+) rows", ok(here(capfd, "db", "check", "--database", filled)))
    assert rows
    file, again = tmp_path / "kept.db", tmp_path / "again.db"
    assert (
        ok(clew("db", "backup", file, "--database", filled)) == f"{file} contains {rows[1]} rows of schema {PROGRAM}.\n"
    )
    said = ok(clew("db", "restore", file, "--database", again))
    assert said == f"{again} contains {rows[1]} rows of schema {PROGRAM}.\n"
    for database in (file, again):
        assert rows[0] in ok(here(capfd, "db", "check", "--database", database))


def test_an_upgrade_makes_the_database_and_can_be_repeated(address: str, capfd: Cap) -> None:
    for _ in range(2):
        assert ok(here(capfd, "db", "upgrade", "--database", address)) == f"{shown(address)} has schema {PROGRAM}.\n"


def test_an_upgrade_can_leave_the_database_open_to_older_servers(
    address: str, tmp_path: Path, capfd: Cap, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok(within("db", "upgrade", "--only-pre", CLEW_DATABASE=address))
    become_next_version(monkeypatch, tmp_path)
    said = ok(here(capfd, "db", "upgrade", "--only-pre", "--database", address))
    assert said.startswith(f"{shown(address)} has schema {NEXT}")
    assert f"usable by versions from schema {PROGRAM}" in said
    assert ok(here(capfd, "db", "upgrade", "--database", address)) == f"{shown(address)} has schema {NEXT}.\n"


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
def test_a_user_who_may_not_make_tables_is_told_so(address: str) -> None:
    name = f"clew_{uuid.uuid4().hex}"
    admin = create_engine(make_url(address), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {name} LOGIN")
        connection.exec_driver_sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    try:
        theirs = make_url(address).set(username=name).render_as_string(hide_password=False)
        told = failed(within("db", "upgrade", "--database", theirs), "store:cannot-upgrade")
    finally:
        with admin.connect() as connection:
            connection.exec_driver_sql(f"DROP ROLE {name}")
    assert "permission denied for schema public" in told


def test_the_database_is_in_the_users_data_directory_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    home, data, named, told = (tmp_path / name for name in ("home", "data", "named.db", "told.db"))
    ok(clew("db", "upgrade", HOME=str(home)))
    ok(clew("db", "upgrade", HOME=str(home), XDG_DATA_HOME=str(data)))
    ok(clew("db", "upgrade", HOME=str(home), XDG_DATA_HOME=str(data), CLEW_DATABASE=str(named)))
    ok(clew("db", "upgrade", "--database", told, HOME=str(home), CLEW_DATABASE=str(named)))
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.db"))
    assert made == ["data/clew/clew.db", "home/.local/share/clew/clew.db", "named.db", "told.db"]
    # A relative one is to be ignored.
    ok(clew("db", "check", HOME=str(home), XDG_DATA_HOME="data"))


def test_the_database_is_the_one_that_clew_up_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Cap
) -> None:
    set_, given, named = (tmp_path / name for name in ("set", "given", "named.db"))
    monkeypatch.delenv("CLEW_DATABASE", raising=False)
    monkeypatch.setenv("CLEW_DATA", str(set_))
    assert ok(here(capfd, "db", "upgrade")).startswith(f"{set_}/clew.db has schema ")
    assert ok(here(capfd, "db", "upgrade", "--data", given)).startswith(f"{given}/clew.db has schema ")
    ok(here(capfd, "db", "check"))
    ok(here(capfd, "db", "backup", tmp_path / "kept.db", "--data", given))
    ok(here(capfd, "db", "restore", tmp_path / "kept.db", "--force"))
    monkeypatch.setenv("CLEW_DATABASE", str(named))
    assert ok(here(capfd, "db", "upgrade", "--data", given)).startswith(f"{named} has schema ")
    assert ok(here(capfd, "db", "upgrade", "--database", given / "clew.db")).startswith(f"{given}/clew.db has ")


def test_results_are_told_to_programs(filled: str, tmp_path: Path, capfd: Cap) -> None:
    file, again = tmp_path / "kept.db", tmp_path / "again.db"

    def result(*words: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(ok(here(capfd, "db", *words, "--json")))
        return found

    made = result("upgrade", "--database", filled)
    assert made == {"database": shown(filled), "schema": PROGRAM, "oldest_program": PROGRAM}
    checked = result("check", "--database", filled)
    assert checked["broken"] == []
    kept = result("backup", file, "--database", filled)
    assert kept == {"file": str(file), "schema": PROGRAM, "rows": checked["rows"], "size": kept["size"], "broken": []}
    restored = result("restore", file, "--database", again)
    assert restored == {"database": str(again), "was": PROGRAM, "schema": PROGRAM, "rows": checked["rows"]}


def test_broken_promises_are_told_to_programs(filled: str, capfd: Cap) -> None:
    database = open_database(filled)
    database.write(_break_two_promises).result(60)
    database.close()
    said = here(capfd, "db", "check", "--database", filled, "--json")
    assert (said.status, said.err) == (1, "")
    broken = json.loads(said.out)["broken"]
    assert [(each["promise"], each["count"]) for each in broken] == [("wake-pending", 12), ("run-end", 1)]


def test_broken_promises_are_told_with_their_rows(filled: str, capfd: Cap) -> None:
    database = open_database(filled)
    database.write(_break_two_promises).result(60)
    database.close()
    said = here(capfd, "db", "check", "--database", filled)
    assert (said.status, said.err) == (1, "")
    wakes, wakes_rows, end, end_rows, total = said.out.splitlines()
    assert wakes.startswith("wake-pending: A pending wake has a run")
    assert re.fullmatch(r"  broken by 12 rows: (w-\d+, ){9}w-\d+, and 2 more", wakes_rows)
    assert end.startswith("run-end: ")
    assert end_rows == "  broken by 1 row: r-failed"
    assert re.fullmatch(r"2 of \d+ promises are broken\.", total)


def _break_two_promises(connection: Connection) -> None:
    for number in range(12):
        put_wake(connection, f"w-{number}", "idle", "pending")
    connection.execute(update(runs).where(runs.c.id == "r-failed").values(outcome=None))


def test_a_backup_of_broken_promises_warns(filled: str, tmp_path: Path, capfd: Cap) -> None:
    database = open_database(filled)
    database.write(lambda connection: put_wake(connection, "w-x", "idle", "pending")).result(60)
    database.close()
    said = here(capfd, "db", "backup", tmp_path / "kept.db", "--database", filled)
    assert said.status == 0
    assert said.err == "clew: The database and this backup break promises: wake-pending. See `clew db check`.\n"
    refused = here(capfd, "db", "restore", tmp_path / "kept.db", "--database", tmp_path / "again.db")
    assert "wake-pending" in failed(refused, "store:broken-promises")
    ok(here(capfd, "db", "restore", tmp_path / "kept.db", "--unchecked", "--database", tmp_path / "again.db"))


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
def test_beside_a_server_one_can_look_and_keep_but_not_change(filled: str, tmp_path: Path) -> None:
    with held(filled):
        ok(clew("db", "check", "--database", filled))
        ok(clew("db", "backup", tmp_path / "kept.db", "--database", filled))
        for words in (("upgrade",), ("restore", tmp_path / "kept.db", "--force")):
            told = failed(clew("db", *words, "--database", filled), "store:held-by-another")
            assert told.startswith(f"{filled} is held by process {os.getpid()} on ")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("check",), "store:no-database"),
        (("backup", "kept.db"), "store:no-database"),
        (("restore", "gone.db"), "store:no-database"),
        (("restore", "notes.txt"), "store:bad-backup"),
        (("check", "--database", "notes.txt"), "store:not-a-database"),
        (("check", "--database", "mysql://here/there"), "store:bad-address"),
        (("check", "--database", "postgresql://clew:secret@127.0.0.1:1/clew"), "store:unreachable"),
        (("upgrade", "--database", "notes.txt/clew.db"), "store:unreachable"),
    ],
)
def test_what_goes_wrong_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Cap, words: tuple[str, ...], code: str
) -> None:
    (tmp_path / "notes.txt").write_text("no database" * 1000, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    if "--database" in words:
        said = here(capfd, "db", *words)
    else:
        said = clew("db", *words, XDG_DATA_HOME=str(tmp_path / "data"))
    assert "secret" not in failed(said, code)
    assert names_in(tmp_path) == ["notes.txt"]


def test_a_backup_replaces_nothing_unless_told_to(filled: str, tmp_path: Path, capfd: Cap) -> None:
    file = tmp_path / "kept.db"
    file.write_text("mine", encoding="utf-8")
    failed(here(capfd, "db", "backup", file, "--database", filled), "store:file-there")
    ok(here(capfd, "db", "backup", file, "--force", "--database", filled))
    failed(here(capfd, "db", "restore", file, "--database", filled), "store:not-empty")
    ok(here(capfd, "db", "restore", file, "--force", "--database", filled))


def test_progress_is_shown_to_whoever_watches(filled: str, tmp_path: Path) -> None:
    reader, terminal = pty.openpty()
    words = ("db", "backup", str(tmp_path / "kept.db"), "--database", filled)
    with subprocess.Popen(
        [*COMMAND, *words], env=environment(TERM="xterm"), stdout=subprocess.PIPE, stderr=terminal, text=True
    ) as running:
        os.close(terminal)
        seen = b"".join(_until_closed(reader))
        assert running.stdout is not None
        assert "contains" in running.stdout.read()
    assert running.returncode == 0
    assert b"Backing up" in seen
    assert re.search(rb"[\d,]+ of [\d,]+ (rows|bytes)", seen)


def _until_closed(reader: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(reader, 4096)
        except OSError:
            part = b""
        if not part:
            os.close(reader)
            return
        yield part


@pytest.mark.parametrize("where", ["127.0.0.1:1", "nobody.invalid"])
def test_a_server_that_is_not_there_is_told_in_sentences(capfd: Cap, where: str) -> None:
    told = failed(here(capfd, "db", "upgrade", "--database", f"postgresql://me:secret@{where}/x"), "store:unreachable")
    assert told.startswith(f"postgresql://me:***@{where}/x cannot be reached: ")
    assert told.endswith(". Check the address and that it runs.")
