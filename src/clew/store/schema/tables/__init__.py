"""The tables, as SQLAlchemy Core describes them.

Constraints and partial unique indexes enforce the invariants, so no code path can break them. A change of a table needs
a migration: docs/migrations.md.
"""

from clew.store.schema.tables.columns import metadata
from clew.store.schema.tables.conversation import (
    NEWS,
    UNSENT,
    agents,
    archives,
    files,
    journal,
    lanes,
    marks,
    projects,
    sessions,
    threads,
    workspaces,
)
from clew.store.schema.tables.machines import UNKNOWN_RUNTIME, machines, meta, programs, runtimes, tokens
from clew.store.schema.tables.push import push_subscriptions
from clew.store.schema.tables.work import (
    LIVE,
    NOT_ENDED,
    UNHEARD,
    approvals,
    decisions,
    deliveries,
    events,
    landings,
    routes,
    runs,
    schedules,
    wakes,
)

__all__ = [
    "LIVE",
    "NEWS",
    "NOT_ENDED",
    "UNHEARD",
    "UNKNOWN_RUNTIME",
    "UNSENT",
    "agents",
    "approvals",
    "archives",
    "decisions",
    "deliveries",
    "events",
    "files",
    "journal",
    "landings",
    "lanes",
    "machines",
    "marks",
    "meta",
    "metadata",
    "programs",
    "projects",
    "push_subscriptions",
    "routes",
    "runs",
    "runtimes",
    "schedules",
    "sessions",
    "threads",
    "tokens",
    "wakes",
    "workspaces",
]
