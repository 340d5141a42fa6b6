"""Who talks, about what and where: projects, agents, threads with their journals, lanes, workspaces and sessions."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
)

from clew.kernel import AgentState, PermissionMode
from clew.store.schema.tables.columns import (
    big_integer,
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
from clew.store.schema.tables.machines import UNKNOWN_RUNTIME

NEWS = "author_kind <> 'human'"
"""Entries that make a thread unread: those of agents, of Clew and of the outside."""

UNSENT = "thread_id IS NULL"
"""Files that were uploaded and not sent."""

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
    # Why that program cannot be started; NULL when its machine found it.
    optional("missing"),
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
    # 1 while it is archived, and the last entry of its journal at that time: triggers of the schema bring it back with
    # a later entry, and with anything that needs a person.
    integer("archived"),
    integer("archived_entry"),
    partial_index("uq_threads_number", "number IS NOT NULL", "kind", "number", unique=True),
    Index("ix_threads_listed", "kind", "state", "archived", "created_at", "id"),
    partial_index(
        "ix_threads_assignee", "assignee IS NOT NULL", "assignee", "kind", "state", "archived", "created_at", "id"
    ),
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
    # The earlier entry that this one takes the place of; with an empty body, it takes that one back. No row is changed.
    Column("replaces", Integer),
    # The files that were sent with it, as a JSON list (`clew.protocol.files`).
    optional("files"),
    PrimaryKeyConstraint("thread_id", "seq"),
    CheckConstraint("seq > 0", "seq"),
    CheckConstraint("replaces > 0 AND replaces < seq", "replaces_an_earlier_one"),
    partial_index("uq_journal_replaces", "replaces IS NOT NULL", "thread_id", "replaces", unique=True),
    # The newest entry of each kind of author is one step along it.
    partial_index("ix_journal_news", NEWS, "thread_id", "author_kind", "seq"),
    # WITHOUT ROWID stores a thread's entries side by side, so a page of them is one range read.
    sqlite_with_rowid=False,
)

files = Table(
    "files",
    metadata,
    row_id(),
    required("name"),
    required("kind"),
    integer("size"),
    # SHA-256 of the content.
    required("digest"),
    Column("content", LargeBinary, nullable=False),
    # Who uploaded it, and may send it.
    required("owner"),
    timestamp("created_at", nullable=False),
    # Set with the first message that it is sent with; before that it expires.
    reference("thread_id", "threads.id", nullable=True),
    CheckConstraint("size = length(content)", "size"),
    partial_index("ix_files_unsent", UNSENT, "created_at"),
)

marks = Table(
    "marks",
    metadata,
    # Who made the marks, by name.
    required("reader"),
    reference("thread_id", "threads.id"),
    # The last entry that was read; one below the newest news when it was marked as unread, so it can be -1.
    integer("seen"),
    timestamp("pinned_at"),
    PrimaryKeyConstraint("reader", "thread_id"),
    partial_index("ix_marks_pinned", "pinned_at IS NOT NULL", "reader", "pinned_at"),
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
    # The person who works in its worktree; its runs wait meanwhile.
    optional("checked_out"),
    # Where its branch is to begin, if a person chose: "base", or a branch. NULL: at the thread's newest branch.
    optional("begin_from"),
    # Commands that a person allowed for good, as a JSON list (operations/allowances.py).
    required("allowed", "[]"),
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
    # The branch that its own began from, and the agent whose branch that is. NULL: it began from the base.
    optional("begins"),
    optional("begun_by"),
    # What it has that its base does not, and whether that was merged, as JSON (`store.operations.work`).
    required("work", "{}"),
    Index("ix_workspaces_lane", "lane_id", "created_at"),
    Index("ix_workspaces_directory", "machine_id", "directory"),
)


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
    # `seen` at its creation; for a fork, the `seen` of the session it was forked from.
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
