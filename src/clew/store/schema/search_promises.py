"""Promises about the search index: nothing is missing in it, and every document can be found."""

from collections.abc import Iterator

from sqlalchemy import Connection

from clew.store.schema.promises import Promise, by_sql

_ANY_KIND = ("=entry", "=title", "=log")
"""The marks of the kinds (`store.search.query`): every document has one of them."""


def _lost(connection: Connection) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        kinds = " OR ".join(f'"{kind}"' for kind in _ANY_KIND)
        known = f"SELECT rowid FROM search_words WHERE search_words MATCH '{kinds}'"
        sql = f"SELECT id FROM search_documents EXCEPT {known} ORDER BY 1"
    else:
        kinds = " | ".join(f"''{kind}''" for kind in _ANY_KIND)
        sql = f"SELECT id FROM search_documents WHERE NOT words @@ CAST('{kinds}' AS tsquery) ORDER BY id"
    yield from (f"document {row[0]}" for row in connection.exec_driver_sql(sql))


SEARCH = (
    by_sql(
        "search-complete",
        "Every entry, every title and the log of every live run is in the search index, or waits to be.",
        """
        SELECT thread_id || '/' || seq FROM (
            SELECT thread_id, seq FROM journal
            EXCEPT SELECT source, seq FROM search_documents WHERE kind = 'entry'
            EXCEPT SELECT source, seq FROM search_due WHERE kind = 'entry'
        ) entries
        UNION ALL SELECT id FROM (
            SELECT id FROM threads
            EXCEPT SELECT source FROM search_documents WHERE kind = 'title'
            EXCEPT SELECT source FROM search_due WHERE kind = 'title'
        ) titles
        UNION ALL SELECT id FROM (
            SELECT id FROM runs WHERE started_at IS NOT NULL AND ended_at IS NULL
            EXCEPT SELECT run_id FROM search_logs
            EXCEPT SELECT source FROM search_due WHERE kind = 'log'
        ) logs
        """,
    ),
    Promise("search-words", "Every document of the search can be found by its words.", _lost),
)
