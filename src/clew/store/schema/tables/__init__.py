"""The tables, as SQLAlchemy Core describes them.

Constraints and partial unique indexes enforce the invariants, so no code path can break them. After a change, run
`tools/write_schema.py` and write the migration: docs/migrations.md.
"""

from clew.store.schema.tables.columns import metadata
from clew.store.schema.tables.conversation import agents, journal, lanes, projects, threads, workspaces
from clew.store.schema.tables.installation import meta, tokens
from clew.store.schema.tables.machines import UNKNOWN_RUNTIME, machines, programs, runtimes
from clew.store.schema.tables.sessions import archives, sessions
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
    "NOT_ENDED",
    "UNHEARD",
    "UNKNOWN_RUNTIME",
    "agents",
    "approvals",
    "archives",
    "decisions",
    "deliveries",
    "events",
    "journal",
    "landings",
    "lanes",
    "machines",
    "meta",
    "metadata",
    "programs",
    "projects",
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
