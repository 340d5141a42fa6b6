"""What keeps `clew up` from starting: each is named in one line, with what to do, and nothing is changed."""

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from clew.app.http_server import NotLoopback
from clew.app.run_server import ServerSettings, run_server
from tests.up.kit import environment, refused, up


def test_a_second_one_is_told_who_holds_the_data(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as clew:
        told = refused(data, "--port", "0")
        assert f"process {clew.process.pid}" in told
        assert clew.address in told
        assert "[data:in-use]" in told
        # The first one was not disturbed, and is still found.
        assert clew.ask("GET", "/threads") is not None
        assert clew.stop() == 0


def test_a_second_one_on_the_same_database_is_told_who_holds_it(tmp_path: Path) -> None:
    with up(tmp_path / "one") as clew:
        told = refused(tmp_path / "two", "--port", "0", "--database", str(tmp_path / "one" / "clew.db"))
        assert f"process {clew.process.pid}" in told
        assert "[store:held-by-another]" in told
        assert not (tmp_path / "two" / "address").exists()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = refused(tmp_path / "data", "--port", str(port))
    assert f"Port {port} of 127.0.0.1" in told
    assert "--port" in told
    assert "[server:port-taken]" in told


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.example.org", ""])
def test_it_is_for_this_machine_alone(tmp_path: Path, host: str) -> None:
    told = refused(tmp_path / "data", "--port", "0", "--host", host)
    assert "[server:not-loopback]" in told


def test_a_port_that_is_none_is_refused(tmp_path: Path) -> None:
    assert "[server:cannot-listen]" in refused(tmp_path / "data", "--port", "70000")


@pytest.mark.parametrize(
    ("content", "code"), [(b"no database at all" * 100, "store:not-a-database"), (b"", "")], ids=["garbage", "empty"]
)
def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path, content: bytes, code: str) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "clew.db").write_bytes(content)
    if not code:
        with up(data) as clew:
            assert clew.stop() == 0
        return
    told = refused(data, "--port", "0")
    assert f"[{code}]" in told
    assert "clew db restore" in told
    assert (data / "clew.db").read_bytes() == content


def test_a_database_of_a_newer_clew_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as clew:
        assert clew.stop() == 0
    with sqlite3.connect(data / "clew.db") as database:
        database.execute("UPDATE meta SET value = '99'")
    database.close()
    assert "[store:newer-than-program]" in refused(data, "--port", "0")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("CREATE TABLE meta (x)", "store:not-clew"),
        (
            "CREATE TABLE meta (key TEXT, value TEXT); INSERT INTO meta VALUES ('schema', 'banana')",
            "store:not-clew",
        ),
        (
            "CREATE TABLE alembic_version (version_num TEXT); INSERT INTO alembic_version VALUES ('deadbeef')",
            "store:cannot-upgrade",
        ),
    ],
)
def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path, script: str, code: str) -> None:
    file = tmp_path / "theirs.db"
    with closing(sqlite3.connect(file)) as theirs:
        theirs.executescript(script)
        before = list(theirs.iterdump())
    told = refused(tmp_path / "data", "--port", "0", "--database", str(file))
    assert str(file) in told
    assert f"[{code}]" in told
    with closing(sqlite3.connect(file)) as theirs:
        assert list(theirs.iterdump()) == before


def test_a_database_that_somebody_else_locks_is_named(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as clew:
        assert clew.stop() == 0
    locking = sqlite3.connect(data / "clew.db", isolation_level=None)
    try:
        locking.execute("PRAGMA locking_mode = EXCLUSIVE")
        locking.execute("BEGIN EXCLUSIVE")
        told = refused(data, "--port", "0")
    finally:
        locking.close()
    assert str(data / "clew.db") in told
    assert "Another program holds" in told
    assert "[store:busy]" in told


def test_a_data_directory_that_is_a_file_or_below_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "data"):
        assert "[data:cannot-use]" in refused_at(place, tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_data_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "[data:cannot-use]" in refused_at(closed, tmp_path)


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as clew:
        assert clew.stop() == 0
    token = (data / "token").read_text().strip()
    (data / "token").chmod(0o644)
    told = refused(data, "--port", "0")
    assert "[server:token]" in told
    assert token not in told


@pytest.mark.parametrize(
    ("size", "code"), [(0, "data:disk-full]"), (10, "data:disk-full]"), (2_000, "store:"), (20_000, "store:")]
)
def test_a_full_disk_is_named(tmp_path: Path, size: int, code: str) -> None:
    """No file may grow past a size: what is said of it is what is said of a disk without room."""
    limited = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}));"
        "from clew.cli import main; main()"
    )
    words = ["up", "--data", str(tmp_path / "data"), "--port", "0"]
    done = subprocess.run(
        [sys.executable, "-c", limited, *words],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done
    assert f"[{code}" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def refused_at(place: Path, beside: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "clew", "up", "--data", str(place), "--port", "0"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=beside,
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_a_server_that_ran_in_a_process_leaves_its_children_to_other_event_loops(tmp_path: Path) -> None:
    async def child() -> int:
        started = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
        return await asyncio.wait_for(started.wait(), 30)

    with asyncio.Runner() as earlier:
        assert earlier.run(child()) == 0
        with pytest.raises(NotLoopback):
            asyncio.run(run_server(ServerSettings(tmp_path / "data", host="192.0.2.1", port=0), lambda _: None))
        assert earlier.run(child()) == 0
