"""Search in the tests of the store: index what is due, then look."""

from typing import Any

from clew.protocol.search import FoundPage
from clew.store.engine.database import Database
from clew.store.operations.search_index import index_next
from clew.store.queries.search import NEWEST, SearchFor, search
from clew.store.search.query import read_query

MOST_BATCHES = 1000


def index(database: Database) -> int:
    """Index everything; how many batches that took."""
    for batch in range(1, MOST_BATCHES):
        if not database.write(index_next).result(30).more:
            return batch
    raise AssertionError("the index is never done")


def page(database: Database, query: str, most: int = 50, before: int = NEWEST, **where: Any) -> FoundPage:
    asked = SearchFor(read_query(query), **where)
    return database.read(lambda connection: search(connection, asked, most, before))


def found(database: Database, query: str, **where: Any) -> list[tuple[str, str, int]]:
    """Kind, thread and number of what is found, the newest first."""
    return [(each.kind, each.thread, each.seq) for each in page(database, query, **where).found]
