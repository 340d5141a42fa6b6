"""Files: uploaded first, then sent with a message. One that was never sent expires."""

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, literal_column, select, text

from clew.kernel import ThreadId
from clew.protocol.files import SentFile
from clew.store.engine.database import LostRace
from clew.store.engine.dialect import now, storable
from clew.store.engine.statement import Row, Statement
from clew.store.faults import FileElsewhere, NoSuchFile
from clew.store.schema.tables import UNSENT, files

EXPIRES = 24 * 3600.0
"""Seconds until a file that was not sent is removed."""

_FACTS = (files.c.id, files.c.name, files.c.kind, files.c.size)

_keep = Statement(
    lambda _: files.insert().values(
        {name: bindparam(name) for name in ("id", "name", "kind", "size", "digest", "content", "owner")}
        | {"created_at": now()}
    )
)
_found = Statement(lambda _: select(*_FACTS, files.c.owner, files.c.thread_id).where(files.c.id == bindparam("id")))
_content = Statement(lambda _: select(*_FACTS, files.c.content, files.c.thread_id).where(files.c.id == bindparam("id")))
_its_thread = bindparam("thread", type_=files.c.thread_id.type)
_send = Statement(
    lambda _: (
        files.update()
        .where(files.c.id == bindparam("id"), func.coalesce(files.c.thread_id, _its_thread) == _its_thread)
        .values(thread_id=_its_thread)
    )
)
_expire = Statement(
    lambda _: files.delete().where(text(f"files.{UNSENT}"), files.c.created_at < now() - literal_column(str(EXPIRES)))
)
_unsent = Statement(
    lambda _: select(func.count().label("count"), func.coalesce(func.sum(files.c.size), 0).label("size")).where(
        text(f"files.{UNSENT}"), files.c.owner == bindparam("owner")
    )
)


def keep_file(connection: Connection, id_: str, owner: str, name: str, kind: str, content: bytes) -> SentFile:
    """Store an upload. Safe to repeat. Uploads that have expired go."""
    _expire.count(connection)
    kept = SentFile(id_, name, kind, len(content))
    if _found.first(connection, id=id_) is None:
        digest = hashlib.sha256(content).hexdigest()
        said = {"name": name, "kind": kind, "size": len(content), "digest": digest, "content": content}
        _keep.count(connection, id=id_, owner=storable(owner), **said)
    return kept


def unsent_bytes(connection: Connection, owner: str) -> int:
    """The bytes of all that they uploaded and did not send."""
    row = _unsent.first(connection, owner=storable(owner))
    return 0 if row is None else int(row["size"])


def files_to_send(connection: Connection, thread: ThreadId, owner: str, ids: Sequence[str]) -> tuple[SentFile, ...]:
    """The uploads with these ids, which are their owner's, and were not sent in another thread."""
    return tuple(_one_to_send(connection, thread, owner, id_) for id_ in dict.fromkeys(ids))


def _one_to_send(connection: Connection, thread: ThreadId, owner: str, id_: str) -> SentFile:
    row = _found.first(connection, id=storable(id_))
    if row is None or row["owner"] != storable(owner):
        raise NoSuchFile(
            f"There is no uploaded file {id_[:60]}.", "Upload it again: what is not sent is kept for a day."
        )
    if row["thread_id"] not in (None, thread):
        raise FileElsewhere(f"{row['name']} was sent in another thread.", "Upload it again to send it here too.")
    return _file(row)


def mark_sent(connection: Connection, thread: ThreadId, sent: Sequence[SentFile]) -> None:
    """They are the thread's from now on, and stay."""
    for each in sent:
        if _send.count(connection, id=each.id, thread=thread) != 1:
            raise LostRace("an upload expired while it was being sent")


def read_content(connection: Connection, id_: str) -> tuple[SentFile, bytes, str | None]:
    """The file, its content, and the thread that it was sent in."""
    row = _content.first(connection, id=storable(id_))
    if row is None:
        raise NoSuchFile(f"There is no file {id_[:60]}.", "Files that were uploaded and not sent are kept for a day.")
    return _file(row), bytes(row["content"]), row["thread_id"]


def _file(row: Row) -> SentFile:
    return SentFile(row["id"], row["name"], row["kind"], row["size"])
