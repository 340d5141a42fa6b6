"""The names that people use for threads, runs and runtimes: issue-3, own-ada, run-17, /srv/codex (codex on m1)."""

from sqlalchemy import FromClause

from clew.store.engine.statement import Row
from clew.store.schema.tables import UNKNOWN_RUNTIME, agents, machines, runtimes, threads

_owner = agents.alias("owner")

THREAD_NAME = (
    threads.c.kind.label("thread_kind"),
    threads.c.number.label("thread_number"),
    _owner.c.name.label("thread_owner"),
)
"""The columns that `thread_ref` reads."""


RUNTIME_NAME = (
    runtimes.c.id.label("on_runtime"),
    runtimes.c.home.label("runtime_home"),
    runtimes.c.provider.label("runtime_provider"),
    machines.c.name.label("machine_name"),
)
"""The columns that `runtime_ref` reads."""


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


def runtime_ref(row: Row) -> str:
    """The name that people use for a runtime: its home, provider and machine. Empty where it was never registered. The
    row has the columns of RUNTIME_NAME."""
    if row["machine_name"] is None or row["on_runtime"] == UNKNOWN_RUNTIME:
        return ""
    return f"{row['runtime_home']} ({row['runtime_provider']} on {row['machine_name']})"
