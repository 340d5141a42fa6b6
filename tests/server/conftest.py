"""Both databases, as the store's tests have them."""

from tests.store.conftest import address, current, database, postgres, shelf

__all__ = ["address", "current", "database", "postgres", "shelf"]
