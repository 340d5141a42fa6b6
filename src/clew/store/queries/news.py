"""The newest entry of a thread that makes it unread: an agent's, Clew's or one from outside."""

from functools import reduce
from typing import Any

from sqlalchemy import ColumnElement, func, literal_column, select, text

from clew.kernel import AuthorKind
from clew.store.engine.dialect import greater
from clew.store.schema.tables import NEWS, journal

_KINDS = tuple(kind for kind in AuthorKind if kind is not AuthorKind.HUMAN)


def newest_news(dialect: str, thread: ColumnElement[str]) -> ColumnElement[int]:
    """Its number; 0 if there is none. One step along ix_journal_news for each kind: one read for all kinds would walk
    through the journal."""
    return reduce(lambda one, other: greater(dialect, one, other), (_newest(kind, thread) for kind in _KINDS))


def _newest(kind: AuthorKind, thread: ColumnElement[str]) -> ColumnElement[Any]:
    newest = select(func.max(journal.c.seq)).where(
        journal.c.thread_id == thread, text(f"journal.{NEWS}"), journal.c.author_kind == literal_column(f"'{kind}'")
    )
    return func.coalesce(newest.scalar_subquery(), literal_column("0"))
