"""Marks of threads: what a reader has read and pinned, and which threads are archived.

What was read and pinned is one reader's own; an archived thread is archived for everyone. It comes back by itself:
triggers of the schema clear `archived` with the next entry, and with anything that needs a person.
"""

from sqlalchemy import Connection, bindparam, func, literal_column, null, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import ThreadId
from clew.store.engine.dialect import insert_in, now, storable
from clew.store.engine.hints import hint_thread
from clew.store.engine.statement import Row, Statement
from clew.store.queries.news import newest_news
from clew.store.queries.refs import run_ref
from clew.store.schema.tables import NOT_ENDED, journal, lanes, marks, runs, threads

_thread = bindparam("thread", type_=threads.c.id.type)
_ends = Statement(
    lambda dialect: select(
        select(func.coalesce(func.max(journal.c.seq), literal_column("0")))
        .where(journal.c.thread_id == _thread)
        .scalar_subquery()
        .label("head"),
        newest_news(dialect, _thread).label("news"),
    )
)


def _see(dialect: str, further: bool) -> ClauseElement:
    made = insert_in(dialect, marks).values(
        reader=bindparam("reader"), thread_id=bindparam("thread"), seen=bindparam("seen")
    )
    new = made.excluded.seen
    return made.on_conflict_do_update(
        index_elements=[marks.c.reader, marks.c.thread_id],
        set_={"seen": new},
        where=marks.c.seen < new if further else marks.c.seen > new,
    )


_see_further = Statement(lambda dialect: _see(dialect, further=True))
_see_less = Statement(lambda dialect: _see(dialect, further=False))


def _pinned(dialect: str) -> ClauseElement:
    made = insert_in(dialect, marks).values(reader=bindparam("reader"), thread_id=bindparam("thread"), pinned_at=now())
    return made.on_conflict_do_update(
        index_elements=[marks.c.reader, marks.c.thread_id],
        set_={"pinned_at": made.excluded.pinned_at},
        where=marks.c.pinned_at.is_(None),
    )


_pin = Statement(_pinned)
_unpin = Statement(
    lambda _: (
        marks.update()
        .where(
            marks.c.reader == bindparam("reader"),
            marks.c.thread_id == bindparam("thread"),
            marks.c.pinned_at.is_not(None),
        )
        .values(pinned_at=null())
    )
)

_archive = Statement(
    lambda _: (
        threads.update()
        .where(threads.c.id == bindparam("thread"), threads.c.archived == literal_column("0"))
        .values(archived=literal_column("1"), archived_entry=bindparam("entry"))
    )
)
_unarchive = Statement(
    lambda _: (
        threads.update()
        .where(threads.c.id == bindparam("thread"), threads.c.archived == literal_column("1"))
        .values(archived=literal_column("0"))
    )
)

# At most one row of each lane, by uq_runs_lane_not_ended.
not_ended = Statement(
    lambda _: (
        select(runs.c.number, runs.c.state)
        .join(lanes, lanes.c.id == runs.c.lane_id)
        .where(lanes.c.thread_id == bindparam("thread"), text(f"runs.{NOT_ENDED}"))
        .order_by(runs.c.number)
    )
)


def mark_read(connection: Connection, reader: str, thread: ThreadId, through: int | None = None) -> None:
    """Read up to that entry, or to the last; what was read before stays read."""
    head = _ends_of(connection, thread)["head"]
    _mark(connection, _see_further, reader, thread, seen=head if through is None else min(through, head))


def mark_unread(connection: Connection, reader: str, thread: ThreadId) -> None:
    """The newest entry that is not a person's counts as not read; where there is none, the thread does."""
    _mark(connection, _see_less, reader, thread, seen=_ends_of(connection, thread)["news"] - 1)


def pin_thread(connection: Connection, reader: str, thread: ThreadId) -> None:
    _mark(connection, _pin, reader, thread)


def unpin_thread(connection: Connection, reader: str, thread: ThreadId) -> None:
    _mark(connection, _unpin, reader, thread)


def archive_thread(connection: Connection, thread: ThreadId) -> None:
    """The caller has the thread locked, and no run of it is waiting or live."""
    if _archive.count(connection, thread=thread, entry=_ends_of(connection, thread)["head"]):
        hint_thread(connection, thread)


def unarchive_thread(connection: Connection, thread: ThreadId) -> None:
    if _unarchive.count(connection, thread=thread):
        hint_thread(connection, thread)


def open_runs(connection: Connection, thread: ThreadId) -> tuple[tuple[str, str], ...]:
    """The runs of a thread that have not ended: their names for people, and their states."""
    return tuple((run_ref(row), row["state"]) for row in not_ended.rows(connection, thread=thread))


def _ends_of(connection: Connection, thread: ThreadId) -> Row:
    row = _ends.first(connection, thread=thread)
    assert row is not None
    return row


def _mark(connection: Connection, statement: Statement, reader: str, thread: ThreadId, **values: int) -> None:
    if statement.count(connection, reader=storable(reader), thread=thread, **values):
        hint_thread(connection, thread)
