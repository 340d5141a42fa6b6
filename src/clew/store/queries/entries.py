"""Journal entries as views, with what became of each: replaced by a later one, or taken back."""

from sqlalchemy import Connection, bindparam, func, select

from clew.protocol.files import SentFile, read_files
from clew.protocol.views import EntryView
from clew.store.engine.statement import Row, Statement
from clew.store.schema.tables import journal

_LAST = 2**31 - 1
WHOLE = 2**31 - 1
"""More characters than a text can have."""

_later = journal.alias("later")

_COLUMNS = [column for column in journal.c if column is not journal.c.body]

# The outer join is by uq_journal_replaces. Of a long text only its beginning leaves the database.
page = Statement(
    lambda _: (
        select(
            *_COLUMNS,
            func.substr(journal.c.body, 1, bindparam("longest")).label("body"),
            func.length(journal.c.body).label("length"),
            _later.c.seq.label("replaced_by"),
            (func.length(_later.c.body) == 0).label("taken_back"),
        )
        .select_from(
            journal.outerjoin(
                _later, (_later.c.thread_id == journal.c.thread_id) & (_later.c.replaces == journal.c.seq)
            )
        )
        .where(
            journal.c.thread_id == bindparam("thread"),
            journal.c.seq < bindparam("before"),
            journal.c.seq > bindparam("after"),
        )
        .order_by(journal.c.seq.desc())
        .limit(bindparam("most"))
    )
)


def entries_page(
    connection: Connection,
    thread: str,
    before: int | None = None,
    most: int = 50,
    after: int = 0,
    longest: int = WHOLE,
) -> tuple[EntryView, ...]:
    """One page of a thread, in order: its last entries, or the last of those before or after a given one. Of a text
    with more than `longest` characters, so many."""
    until = _LAST if before is None else before
    rows = page.rows(connection, thread=thread, before=until, after=after, most=most, longest=longest)
    return tuple(_view(row, longest) for row in reversed(rows))


def _view(row: Row, longest: int) -> EntryView:
    return EntryView(
        seq=row["seq"],
        author_kind=row["author_kind"],
        author=row["author_name"],
        text=row["body"],
        at=row["at"],
        run=row["run_id"],
        replaces=row["replaces"],
        replaced_by=row["replaced_by"],
        taken_back=bool(row["taken_back"]),
        length=row["length"] if row["length"] > longest else None,
        files=_files(row["files"]),
    )


def _files(stored: str | None) -> tuple[SentFile, ...]:
    """A list that cannot be read is left out, so that the thread can still be shown; `clew db check` names it."""
    try:
        return read_files(stored)
    except ValueError:
        return ()
