"""The same databases as the store's tests have."""

from tests.store.conftest import address, postgres

__all__ = ["address", "postgres"]
