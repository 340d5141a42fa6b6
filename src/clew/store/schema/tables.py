"""The tables. Constraints carry the promises, so that no code path can break them."""

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from clew.kernel import LIVE as LIVE_STATES
from clew.kernel import RUN_ENDS, WAKE_ENDS, AgentState, PermissionMode, WaitsFor, WakeState

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

UNKNOWN_RUNTIME = "unknown"
"""The runtime of a session of which nobody knows where it was made. No run is ever on it, so no guard opens."""


def _id() -> Column[str]:
    return Column("id", Text, primary_key=True)


def _text(name: str, default: str | None = None) -> Column[str]:
    """Text that is always there; what a writer leaves out is `default`."""
    return Column(name, Text, nullable=False, server_default=default)


def _maybe(name: str) -> Column[str]:
    return Column(name, Text)


def _number(name: str, default: int = 0) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(str(default)))


def _sum(name: str) -> Column[int]:
    """A number that grows with use, beyond what 32 bits hold."""
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def _time(name: str, nullable: bool = True) -> Column[float]:
    """Seconds since the epoch, by the database's clock."""
    return Column(name, Float(53), nullable=nullable)


def _points_to(name: str, target: str, nullable: bool = False) -> Column[str]:
    return Column(name, Text, ForeignKey(target), nullable=nullable)


def _only(name: str, condition: str, *columns: str, unique: bool = False) -> Index:
    """An index over the rows of a condition alone: it stays small however many rows there are."""
    return Index(name, *columns, unique=unique, sqlite_where=text(condition), postgresql_where=text(condition))


# Whether a run is live or has ended is said by one column each, which an index can ask cheaply on every write;
# checks on the table keep them in step with its state.
LIVE = "lease_until IS NOT NULL"
NOT_ENDED = "ended_at IS NULL"
UNHEARD = (
    "ended_at IS NOT NULL AND (steer IS NOT NULL OR (prompt IS NOT NULL AND (evidence = '' OR evidence = 'unknown')))"
)
"""The runs that have ended, and nobody knows whether the agent took their prompt, or what it was told within a turn."""


def _one_of(column: str, values: Iterable[str]) -> str:
    """Spelled out, because SQLite builds a table for every IN of every write."""
    return "(" + " OR ".join(f"{column} = '{value}'" for value in sorted(values)) + ")"


def _in_step(column: str, states: Iterable[str]) -> str:
    """The column is there exactly in these states."""
    return f"{_one_of('state', states)} = ({column} IS NOT NULL)"


meta = Table("meta", metadata, Column("key", Text, primary_key=True), _text("value"))

machines = Table(
    "machines",
    metadata,
    _id(),
    _text("name"),
    # Below which directory it makes workspaces; none is made where nothing is named.
    _maybe("root"),
    _time("seen_at"),
)

runtimes = Table(
    "runtimes",
    metadata,
    _id(),
    _points_to("machine_id", "machines.id"),
    _text("provider"),
    _text("home"),
    _maybe("account"),
    _text("capabilities", "{}"),
    _number("max_live", 4),
    _time("seen_at"),
    UniqueConstraint("machine_id", "provider", "home"),
    CheckConstraint("max_live >= 0", "max_live"),
)

# One row for each way in which an agent is started there: account and abilities are the program's as it is started
# (command line, home, environment, options), and two agents in one home may differ in them.
programs = Table(
    "programs",
    metadata,
    _points_to("runtime_id", "runtimes.id"),
    _text("key"),
    _maybe("account"),
    # A digest of the key or token it is given. Another one is the same account as far as anybody can tell.
    _maybe("credential"),
    _text("capabilities", "{}"),
    _time("seen_at"),
    PrimaryKeyConstraint("runtime_id", "key"),
)

projects = Table(
    "projects",
    metadata,
    _id(),
    _text("name"),
    # A directory of one machine, or with no machine an address that all of them reach.
    _text("source"),
    _points_to("machine_id", "machines.id", nullable=True),
    _maybe("mode_limit"),
    _text("settings", "{}"),
)

agents = Table(
    "agents",
    metadata,
    _id(),
    _text("name"),
    _text("state", "active"),
    _text("provider"),
    _points_to("runtime_id", "runtimes.id", nullable=True),
    _maybe("model"),
    _text("mode", "read"),
    _maybe("instructions"),
    _maybe("tools"),
    _text("policy", "{}"),
    _number("max_live", 1),
    _text("home"),
    # Which program it is, in whose home and how it is used; the provider's own words.
    _text("settings", "{}"),
    # The key of that program, as `programs` has it.
    _text("program", ""),
    UniqueConstraint("name"),
    CheckConstraint(_one_of("mode", PermissionMode), "mode"),
    CheckConstraint(_one_of("state", AgentState), "state"),
)

threads = Table(
    "threads",
    metadata,
    _id(),
    _text("kind"),
    _text("title", ""),
    _points_to("project_id", "projects.id", nullable=True),
    _text("state", "open"),
    _maybe("mode_limit"),
    _time("created_at", nullable=False),
    # By which people call it: each kind is counted by itself.
    Column("number", Integer),
    # Whose it is, where it is anybody's.
    _maybe("assignee"),
    _only("uq_threads_number", "number IS NOT NULL", "kind", "number", unique=True),
    Index("ix_threads_listed", "kind", "state", "created_at", "id"),
    _only("ix_threads_assignee", "assignee IS NOT NULL", "assignee", "kind", "state", "created_at", "id"),
)

journal = Table(
    "journal",
    metadata,
    _points_to("thread_id", "threads.id"),
    _number("seq"),
    _text("author_kind"),
    _text("author_name"),
    _maybe("agent_id"),
    _maybe("provider"),
    _maybe("account"),
    _text("body"),
    _number("size"),
    # Ties a tool's call to its result.
    _maybe("pair"),
    _maybe("run_id"),
    _time("at", nullable=False),
    PrimaryKeyConstraint("thread_id", "seq"),
    CheckConstraint("seq > 0", "seq"),
    # A thread's entries lie together, so that a page of them is read in one go.
    sqlite_with_rowid=False,
)

lanes = Table(
    "lanes",
    metadata,
    _id(),
    _points_to("agent_id", "agents.id"),
    _points_to("thread_id", "threads.id"),
    _text("overlap", "queue"),
    _points_to("runtime_id", "runtimes.id", nullable=True),
    # Where it works; its memory, not a session's, so that losing a conversation never loses the place.
    _maybe("workspace_id"),
    # Where its history begins since its last fresh start.
    _number("floor_generation"),
    _number("floor_entry"),
    _text("floor_kept", "[]"),
    # What its agent must still be told of its directory: that it was made again, and what was lost.
    _maybe("remade"),
    UniqueConstraint("agent_id", "thread_id"),
    Index("ix_lanes_thread", "thread_id"),
)

workspaces = Table(
    "workspaces",
    metadata,
    _id(),
    _points_to("lane_id", "lanes.id"),
    _text("kind"),
    _points_to("project_id", "projects.id", nullable=True),
    _points_to("machine_id", "machines.id", nullable=True),
    _text("directory"),
    _maybe("branch"),
    _time("created_at", nullable=False),
    Index("ix_workspaces_lane", "lane_id", "created_at"),
)

runs = Table(
    "runs",
    metadata,
    _id(),
    _points_to("lane_id", "lanes.id"),
    _points_to("agent_id", "agents.id"),
    _points_to("runtime_id", "runtimes.id", nullable=True),
    _text("state", "queued"),
    _number("attempt"),
    Column("rank", Float(53), nullable=False),
    _time("queued_at", nullable=False),
    _time("not_before"),
    _time("lease_until"),
    _maybe("claimed_by"),
    # A live run takes a place of its agent and one of its runtime; the index below lets no place be taken twice.
    Column("agent_place", Integer),
    Column("runtime_place", Integer),
    # The session it continues, or the id that its new one gets once it is pinned.
    _maybe("session_id"),
    # The run whose own scope it works in; empty for the lane's.
    _text("scope_run", ""),
    _number("prompt_sent"),
    _number("tool_ran"),
    _number("reopened"),
    _number("tries"),
    # How many approvals it has asked for.
    _number("asked"),
    # What keeps a queued run from being claimed beside its time: nothing, or what it waits for, and why.
    _text("hold", ""),
    _maybe("hold_code"),
    # What its agent said it opened, and how far into the journal it was told.
    _maybe("landing"),
    _maybe("claim"),
    _number("told"),
    # Why it is to be cancelled, while its agent is told to stop.
    _maybe("stop_code"),
    _maybe("outcome"),
    _maybe("words"),
    _time("started_at"),
    _time("ended_at"),
    # The prompt that was about to go out, as its agent's store is asked for it, and what that store said of it.
    _maybe("prompt"),
    _text("evidence", ""),
    _maybe("evidence_words"),
    _time("evidence_at"),
    # How often the store was asked in vain.
    _number("evidence_asked"),
    # The same of what was told within the turn, while it is not known whether the agent took it.
    _maybe("steer"),
    CheckConstraint(_in_step("lease_until", LIVE_STATES), "live_has_lease"),
    CheckConstraint(_in_step("ended_at", RUN_ENDS), "ended_has_end"),
    CheckConstraint(
        f"NOT ({LIVE}) OR (agent_place IS NOT NULL AND runtime_place IS NOT NULL AND runtime_id IS NOT NULL)",
        "live_has_places",
    ),
    _only("uq_runs_lane_not_ended", NOT_ENDED, "lane_id", unique=True),
    _only("uq_runs_session_live", f"session_id IS NOT NULL AND {LIVE}", "session_id", unique=True),
    _only("uq_runs_agent_place", LIVE, "agent_id", "agent_place", unique=True),
    _only("uq_runs_runtime_place", LIVE, "runtime_id", "runtime_place", unique=True),
    CheckConstraint(_one_of("hold", ("", *WaitsFor)), "hold"),
    _only("ix_runs_queue", "state = 'queued' AND hold <> 'person'", "runtime_id", "rank", "id"),
    _only("ix_runs_held", "state = 'queued' AND hold <> ''", "queued_at"),
    _only("ix_runs_lease", LIVE, "lease_until"),
    Index("ix_runs_lane", "lane_id", "queued_at"),
    _only("ix_runs_started", "started_at IS NOT NULL", "agent_id", "started_at"),
    Index("ix_runs_agent", "agent_id", "id"),
    # What went wrong is rare, and looked for.
    _only("ix_runs_unheard", UNHEARD, "lane_id"),
    _only("ix_runs_unserved", "ended_at IS NOT NULL AND state <> 'succeeded'", "state", "id"),
)

wakes = Table(
    "wakes",
    metadata,
    _id(),
    _points_to("lane_id", "lanes.id"),
    _points_to("thread_id", "threads.id"),
    _text("reason"),
    _text("origin_kind"),
    _maybe("origin_agent"),
    _number("origin_depth"),
    _text("freshness", "follow-policy"),
    # The scope it is served in: empty for the lane's, 'own' for one of its run's own, later that run's id.
    _text("scope", ""),
    _maybe("resume_run"),
    _number("priority"),
    # The journal entry it wants answered; none when zero.
    _number("entry"),
    _maybe("route"),
    _maybe("dedupe_key"),
    _time("accepted_at", nullable=False),
    _time("not_before"),
    _text("state", "pending"),
    _points_to("run_id", "runs.id", nullable=True),
    # Whether a run has opened a session for it: its demand for a fresh start is then done.
    _number("began"),
    # Why it is in this state: every wake has a receipt.
    _text("code"),
    _text("words"),
    _time("ended_at"),
    # Earlier entries that it wants answered too, as a list; seldom there.
    _maybe("entries"),
    CheckConstraint(_one_of("state", WakeState), "state"),
    CheckConstraint(f"NOT {_one_of('state', ('claimed', 'served'))} OR run_id IS NOT NULL", "carried_by_a_run"),
    CheckConstraint("code <> '' AND words <> ''", "has_a_reason"),
    CheckConstraint(_in_step("ended_at", WAKE_ENDS), "ends_once"),
    _only("uq_wakes_dedupe_key", "dedupe_key IS NOT NULL", "dedupe_key", unique=True),
    _only("ix_wakes_pending", "state = 'pending'", "lane_id", "accepted_at"),
    Index("ix_wakes_run", "run_id"),
)

sessions = Table(
    "sessions",
    metadata,
    _id(),
    _points_to("lane_id", "lanes.id"),
    # The run whose own scope it is kept under; empty for the lane's.
    _text("scope_run", ""),
    _number("generation"),
    _text("provider"),
    _points_to("runtime_id", "runtimes.id"),
    _text("native_id"),
    _text("cursor"),
    _text("directory"),
    _maybe("real_directory"),
    _maybe("account"),
    _text("state", "healthy"),
    # It was told the journal after `begins` up to `seen`, and of what came before only `also`.
    _number("begins"),
    _text("also", "[]"),
    _number("seen"),
    _maybe("model"),
    _maybe("mode"),
    _maybe("instructions"),
    _maybe("tools"),
    _number("turns"),
    _sum("tokens"),
    _sum("size"),
    # The run it came from, or when a person put it under the lane.
    _points_to("run_id", "runs.id", nullable=True),
    _time("adopted_at"),
    _time("born_at", nullable=False),
    _time("proven_at"),
    # Its newest archive.
    _maybe("archive_id"),
    # A lane that goes back to an earlier session appends a record of it; only the newest one stands for the session.
    _number("superseded"),
    # A digest of the key that it was made with: another one is drift, and no other account.
    _maybe("credential"),
    # How far it had seen when it was made: as far as the session that it is a fork of.
    _number("inherited"),
    # Whether its last turn was cut off, and it has not been told so yet.
    _number("cut_off"),
    UniqueConstraint("lane_id", "scope_run", "generation"),
    _only(
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

events = Table(
    "events",
    metadata,
    _points_to("run_id", "runs.id"),
    _number("seq"),
    _number("attempt"),
    _text("kind"),
    _text("body"),
    _time("at", nullable=False),
    PrimaryKeyConstraint("run_id", "seq"),
    sqlite_with_rowid=False,
)

decisions = Table(
    "decisions",
    metadata,
    _points_to("run_id", "runs.id"),
    _number("attempt"),
    _number("step"),
    _text("outcome"),
    _text("code"),
    _text("record"),
    _time("at", nullable=False),
    PrimaryKeyConstraint("run_id", "attempt", "step"),
)

landings = Table(
    "landings",
    metadata,
    _points_to("run_id", "runs.id"),
    _number("attempt"),
    _number("step"),
    # What an agent opened that was not what was planned, and why it was refused. What was taken is with its run,
    # what agents answered to probes with the decision.
    _text("landing"),
    _text("words"),
    _time("at", nullable=False),
    PrimaryKeyConstraint("run_id", "attempt", "step"),
)

approvals = Table(
    "approvals",
    metadata,
    _id(),
    _points_to("run_id", "runs.id"),
    _number("attempt"),
    _text("question"),
    _text("state", "pending"),
    _maybe("answered_by"),
    _time("expires_at"),
    _time("asked_at", nullable=False),
    _time("ended_at"),
    # What was said with the answer.
    _maybe("answer"),
    _only("ix_approvals_pending", "state = 'pending'", "run_id"),
    Index("ix_approvals_run", "run_id"),
    Index("ix_approvals_asked", "asked_at", "id"),
)

schedules = Table(
    "schedules",
    metadata,
    _id(),
    _points_to("lane_id", "lanes.id"),
    _number("enabled", 1),
    Column("every", Float(53)),
    _maybe("cron"),
    _text("zone", "UTC"),
    _number("isolated"),
    _maybe("route"),
    _text("settings", "{}"),
    _number("idle_ticks"),
    _time("last_due"),
    _time("next_due"),
    # Why it could not be read, when it could not.
    _maybe("fault"),
    CheckConstraint("every IS NOT NULL OR cron IS NOT NULL", "has_a_rhythm"),
    _only("ix_schedules_due", "enabled = 1 AND next_due IS NOT NULL", "next_due"),
)

routes = Table("routes", metadata, _id(), _text("kind"), _text("address"), _maybe("secret"))

deliveries = Table(
    "deliveries",
    metadata,
    _id(),
    _points_to("run_id", "runs.id"),
    _points_to("route_id", "routes.id"),
    _text("body"),
    _text("state", "pending"),
    _number("tries"),
    _time("next_at"),
    _only("ix_deliveries_pending", "state = 'pending'", "next_at"),
)

tokens = Table(
    "tokens",
    metadata,
    _id(),
    _text("kind"),
    _text("digest"),
    _text("may", "{}"),
    _time("created_at", nullable=False),
    _time("expires_at"),
    UniqueConstraint("digest"),
)

archives = Table(
    "archives",
    metadata,
    _id(),
    _points_to("session_id", "sessions.id"),
    _text("format"),
    _number("seen"),
    _number("turns"),
    _text("digest"),
    _text("state", "ready"),
    _text("location"),
    _time("at", nullable=False),
    Index("ix_archives_session", "session_id", "at"),
)
