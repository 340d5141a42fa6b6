"""Who talks, about what and where: projects, agents, threads with their journals, lanes, workspaces."""

from sqlalchemy import CheckConstraint, Column, Index, Integer, PrimaryKeyConstraint, Table, UniqueConstraint

from clew.kernel import AgentState, PermissionMode
from clew.store.schema.tables.columns import (
    integer,
    metadata,
    one_of,
    optional,
    partial_index,
    reference,
    required,
    row_id,
    timestamp,
)

projects = Table(
    "projects",
    metadata,
    row_id(),
    required("name"),
    # A directory on machine_id; with no machine, an address that every machine can reach.
    required("source"),
    reference("machine_id", "machines.id", nullable=True),
    optional("mode_limit"),
    required("settings", "{}"),
)

agents = Table(
    "agents",
    metadata,
    row_id(),
    required("name"),
    required("state", "active"),
    required("provider"),
    reference("runtime_id", "runtimes.id", nullable=True),
    optional("model"),
    required("mode", "read"),
    optional("instructions"),
    optional("tools"),
    required("policy", "{}"),
    integer("max_live", 1),
    required("home"),
    # Which program it is, in which home and with which options, in the provider's own format.
    required("settings", "{}"),
    # programs.key of that program.
    required("program", ""),
    UniqueConstraint("name"),
    CheckConstraint(one_of("mode", PermissionMode), "mode"),
    CheckConstraint(one_of("state", AgentState), "state"),
)

threads = Table(
    "threads",
    metadata,
    row_id(),
    required("kind"),
    required("title", ""),
    reference("project_id", "projects.id", nullable=True),
    required("state", "open"),
    optional("mode_limit"),
    timestamp("created_at", nullable=False),
    # The number people call it by. Each kind counts separately.
    Column("number", Integer),
    # The agent it is assigned to, if any.
    optional("assignee"),
    partial_index("uq_threads_number", "number IS NOT NULL", "kind", "number", unique=True),
    Index("ix_threads_listed", "kind", "state", "created_at", "id"),
    partial_index("ix_threads_assignee", "assignee IS NOT NULL", "assignee", "kind", "state", "created_at", "id"),
)

journal = Table(
    "journal",
    metadata,
    reference("thread_id", "threads.id"),
    integer("seq"),
    required("author_kind"),
    required("author_name"),
    optional("agent_id"),
    optional("provider"),
    optional("account"),
    required("body"),
    integer("size"),
    # Ties a tool call to its result.
    optional("pair"),
    optional("run_id"),
    timestamp("at", nullable=False),
    PrimaryKeyConstraint("thread_id", "seq"),
    CheckConstraint("seq > 0", "seq"),
    # WITHOUT ROWID stores a thread's entries side by side, so a page of them is one range read.
    sqlite_with_rowid=False,
)

lanes = Table(
    "lanes",
    metadata,
    row_id(),
    reference("agent_id", "agents.id"),
    reference("thread_id", "threads.id"),
    required("overlap", "queue"),
    reference("runtime_id", "runtimes.id", nullable=True),
    # The lane remembers its directory, not the session: losing a conversation never loses the place.
    optional("workspace_id"),
    # Where its history begins since its last fresh start.
    integer("floor_generation"),
    integer("floor_entry"),
    required("floor_kept", "[]"),
    # What the agent must still be told about its directory: that it was made again, and what was lost.
    optional("remade"),
    UniqueConstraint("agent_id", "thread_id"),
    Index("ix_lanes_thread", "thread_id"),
)

workspaces = Table(
    "workspaces",
    metadata,
    row_id(),
    reference("lane_id", "lanes.id"),
    required("kind"),
    reference("project_id", "projects.id", nullable=True),
    reference("machine_id", "machines.id", nullable=True),
    required("directory"),
    optional("branch"),
    timestamp("created_at", nullable=False),
    Index("ix_workspaces_lane", "lane_id", "created_at"),
)
