"""A database that another program holds for a while: Clew waits for it, and says so once."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from clew.store.engine.open import upgrade_database
from tests.up.kit import Up, until, up


@contextmanager
def held(database: Path) -> Iterator[None]:
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


def waited(clew: Up) -> None:
    until(lambda: "discovering agents failed, retrying" in clew.err, "a word about the wait")


def ended_well(clew: Up) -> None:
    assert clew.stop() == 0
    assert clew.err.count("discovering agents failed, retrying") == 1
    assert "discovery failed" not in clew.log
    assert "bug" not in clew.log


def test_the_first_agent_comes_when_the_database_is_free(tmp_path: Path) -> None:
    data = tmp_path / "data"
    upgrade_database(str(data / "clew.db"))
    with ExitStack() as lock:
        lock.enter_context(held(data / "clew.db"))
        with up(data) as clew:
            waited(clew)
            lock.close()
            clew.guide()
            ended_well(clew)


def test_agents_that_are_there_work_when_the_database_is_free(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as clew:
        clew.guide()
        assert clew.stop() == 0
    with ExitStack() as lock:
        lock.enter_context(held(data / "clew.db"))
        with up(data) as clew:
            waited(clew)
            lock.close()
            wake = clew.ask("POST", "/wakes", {"agent": "guide", "text": "go"})
            assert clew.ran(wake)["state"] == "succeeded"
            ended_well(clew)
