"""Both databases, as the store's tests have them."""

from tests.store.conftest import address, database, postgres

__all__ = ["address", "database", "postgres"]
