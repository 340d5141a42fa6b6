"""For users' own tests: a real store that lasts as long as a test does."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clew.store.engine.database import Database
from clew.store.engine.open import open_database
from clew.store.schema.version import upgrade

__all__ = ["Database", "temporary_store"]


@contextmanager
def temporary_store() -> Iterator[Database]:
    """An empty database with the current schema, in a file that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="clew-test-") as directory:
        store = open_database(str(Path(directory) / "clew.db"))
        try:
            store.do(upgrade)
            yield store
        finally:
            store.close()
