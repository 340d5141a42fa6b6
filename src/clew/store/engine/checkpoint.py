"""Checkpoints: what was committed goes from SQLite's log into its file beside the writer, not while callers wait."""

import sqlite3
import threading
from pathlib import Path

WORTH_IT = 4 * 1024 * 1024
"""From this size of the log on a checkpoint is worth its time."""

BACKSTOP = 16_000
"""Pages of log at which the writer does it itself, because nobody else could."""

_EVERY = 0.5


class Checkpointer:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="clew-checkpoints", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _serve(self) -> None:
        while not self._closing.wait(_EVERY):
            try:
                if self._log.stat().st_size >= WORTH_IT:
                    self._move()
            except (OSError, sqlite3.Error):
                # The log stays as it is, and the writer's own limit stands behind this.
                continue

    def _move(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=1.0)
        try:
            # Waits for nobody, neither a writer nor a reader.
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        finally:
            connection.close()
