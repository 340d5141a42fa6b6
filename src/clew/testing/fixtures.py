"""For tests with pytest: `from clew.testing.fixtures import clew_store` in a conftest.py makes it a fixture there."""

from collections.abc import Iterator

import pytest

from clew.testing import Database, temporary_store


@pytest.fixture
def clew_store() -> Iterator[Database]:
    """An empty store for one test."""
    with temporary_store() as store:
        yield store
