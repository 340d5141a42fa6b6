"""The old database before, between and after the two steps."""

from collections.abc import Iterator

import pytest

from clew.store.engine.database import Database
from clew.store.engine.open import open_database
from tests.store.two_steps.kit import load_old, pre, upgrade_to_2


@pytest.fixture
def old(address: str) -> Iterator[Database]:
    """The database of schema 1."""
    database = open_database(address)
    try:
        database.write(load_old).result(30)
        yield database
    finally:
        database.close()


@pytest.fixture
def shared(old: Database) -> Database:
    """After the pre step: programs 1 and 2 can both use it."""
    old.write(pre).result(30)
    return old


@pytest.fixture
def upgraded(old: Database) -> Database:
    """After both steps."""
    old.write(upgrade_to_2).result(30)
    return old
