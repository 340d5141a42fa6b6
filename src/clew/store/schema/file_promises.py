"""Promises about files that were sent: each is there, in its thread, and as it was uploaded."""

import hashlib
from collections.abc import Iterator

from sqlalchemy import Connection, select

from clew.protocol.files import read_files
from clew.store.schema.promises import Promise
from clew.store.schema.tables import files, journal


def _missing(connection: Connection) -> Iterator[str]:
    known = {(row.id, row.thread_id) for row in connection.execute(select(files.c.id, files.c.thread_id))}
    listed = select(journal.c.thread_id, journal.c.seq, journal.c.files).where(journal.c.files.is_not(None))
    for thread, seq, stored in connection.execute(listed):
        try:
            whole = all((each.id, thread) in known for each in read_files(stored))
        except ValueError:
            whole = False
        if not whole:
            yield f"{thread}/{seq}"


def _changed(connection: Connection) -> Iterator[str]:
    # One after the other: together they may not fit into memory.
    for id_, digest in connection.execute(select(files.c.id, files.c.digest).order_by(files.c.id)).all():
        content = connection.execute(select(files.c.content).where(files.c.id == id_)).scalar_one()
        if not isinstance(content, bytes) or hashlib.sha256(content).hexdigest() != digest:
            yield id_


FILES = (
    Promise("entry-files", "Every file that was sent with an entry is there, in the same thread.", _missing),
    Promise("file-content", "A file has the content that was uploaded.", _changed),
)
