"""Sessions, one row per generation, and their archives."""

from sqlalchemy import CheckConstraint, Index, Table, UniqueConstraint

from clew.store.schema.tables.columns import (
    big_integer,
    integer,
    metadata,
    optional,
    partial_index,
    reference,
    required,
    row_id,
    timestamp,
)
from clew.store.schema.tables.machines import UNKNOWN_RUNTIME

sessions = Table(
    "sessions",
    metadata,
    row_id(),
    reference("lane_id", "lanes.id"),
    # The run in whose own scope it is kept; empty for the lane's scope.
    required("scope_run", ""),
    integer("generation"),
    required("provider"),
    reference("runtime_id", "runtimes.id"),
    required("native_id"),
    required("cursor"),
    required("directory"),
    optional("real_directory"),
    optional("account"),
    required("state", "healthy"),
    # It has seen the journal after `begins` up to `seen`, and of the entries before only those in `also`.
    integer("begins"),
    required("also", "[]"),
    integer("seen"),
    optional("model"),
    optional("mode"),
    optional("instructions"),
    optional("tools"),
    integer("turns"),
    big_integer("tokens"),
    big_integer("size"),
    # The run that made it, or the time at which a person adopted it into the lane.
    reference("run_id", "runs.id", nullable=True),
    timestamp("adopted_at"),
    timestamp("born_at", nullable=False),
    timestamp("proven_at"),
    # Its newest archive.
    optional("archive_id"),
    # 1 when a later row is the same native session: a lane that returns to an earlier session appends a new row.
    integer("superseded"),
    # A digest of the API key it was made with. A different key is drift, not another account.
    optional("credential"),
    # `seen` at its creation: that of the session it was forked from.
    integer("inherited"),
    # 1 when its last turn was cut off and the agent has not been told so yet.
    integer("cut_off"),
    UniqueConstraint("lane_id", "scope_run", "generation"),
    partial_index(
        "uq_sessions_native",
        f"superseded = 0 AND runtime_id <> '{UNKNOWN_RUNTIME}'",
        "runtime_id",
        "native_id",
        unique=True,
    ),
    CheckConstraint("run_id IS NOT NULL OR adopted_at IS NOT NULL", "comes_from_somewhere"),
    CheckConstraint("generation > 0", "generation"),
    CheckConstraint("native_id <> '' AND directory <> ''", "can_be_found"),
)

archives = Table(
    "archives",
    metadata,
    row_id(),
    reference("session_id", "sessions.id"),
    required("format"),
    integer("seen"),
    integer("turns"),
    required("digest"),
    required("state", "ready"),
    required("location"),
    timestamp("at", nullable=False),
    Index("ix_archives_session", "session_id", "at"),
)
