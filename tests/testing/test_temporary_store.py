"""The store for users' own tests: it is real, empty, current, and gone afterwards."""

from pathlib import Path

import pytest
from sqlalchemy import insert, select

from clew.store.faults import Closed
from clew.store.schema.check import check
from clew.store.schema.tables import machines
from clew.store.schema.version import require
from clew.testing import Database, temporary_store
from clew.testing.fixtures import clew_store

__all__ = ["clew_store"]


def test_a_store_is_current_and_can_be_written(clew_store: Database) -> None:
    clew_store.read(require)
    row = insert(machines).values(id="laptop", name="laptop")
    assert clew_store.write(lambda connection: connection.execute(row).rowcount).result(30) == 1
    names = clew_store.read(lambda connection: connection.execute(select(machines.c.name)).scalars().all())
    assert sorted(names) == ["laptop", "unknown"]
    assert clew_store.read(check) == ()


def test_stores_know_nothing_of_one_another() -> None:
    with temporary_store() as one, temporary_store() as other:
        row = insert(machines).values(id="laptop", name="laptop")
        one.write(lambda connection: connection.execute(row).rowcount).result(30)
        assert other.read(lambda connection: len(connection.execute(select(machines)).all())) == 1


@pytest.mark.parametrize("fault", [None, ValueError("in the test")])
def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception | None) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def use() -> Database:
        with temporary_store() as store:
            assert len(list(tmp_path.rglob("clew.db"))) == 1
            if fault is not None:
                raise fault
            return store

    if fault is None:
        with pytest.raises(Closed):
            use().write(lambda connection: connection.execute(select(machines)).all())
    else:
        with pytest.raises(ValueError, match="in the test"):
            use()
    assert list(tmp_path.iterdir()) == []
