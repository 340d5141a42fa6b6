"""The names that people use for threads and runs: issue-3, chat-1, own-ada, run-17."""

from sqlalchemy import FromClause

from clew.store.engine.statement import Row
from clew.store.schema.tables import agents, threads

_owner = agents.alias("owner")

THREAD_NAME = (
    threads.c.kind.label("thread_kind"),
    threads.c.number.label("thread_number"),
    _owner.c.name.label("thread_owner"),
)
"""The columns that `thread_ref` reads."""


def with_owner(source: FromClause) -> FromClause:
    return source.outerjoin(_owner, _owner.c.id == threads.c.assignee)


def thread_ref(row: Row) -> str:
    """The name that people use for a thread, as issue-3. The row has the columns of THREAD_NAME."""
    if row["thread_number"] is not None:
        return f"{row['thread_kind']}-{row['thread_number']}"
    if row["thread_kind"] == "own" and row["thread_owner"] is not None:
        return f"own-{row['thread_owner']}"
    return str(row["thread_id"])


def run_ref(row: Row) -> str:
    """The name that people use for a run, as run-17. The row has the run's number."""
    return f"run-{row['number']}"
