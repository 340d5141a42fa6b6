"""Wakes, the runs that serve them with all that a run records, the schedules that make wakes, and deliveries."""

from sqlalchemy import CheckConstraint, Column, Float, Identity, Index, Integer, PrimaryKeyConstraint, Table

from clew.kernel import LIVE as LIVE_STATES
from clew.kernel import RUN_ENDS, WAKE_ENDS, WaitsFor, WakeState
from clew.store.schema.tables.columns import (
    integer,
    metadata,
    one_of,
    optional,
    partial_index,
    reference,
    required,
    row_id,
    set_only_in,
    timestamp,
)

# Partial indexes of `runs` test one nullable column instead of the state: it is evaluated on every write. CHECK
# constraints on the table keep the column and the state consistent.
LIVE = "lease_until IS NOT NULL"
NOT_ENDED = "ended_at IS NULL"
UNHEARD = (
    "ended_at IS NOT NULL AND (steer IS NOT NULL OR (prompt IS NOT NULL AND (evidence = '' OR evidence = 'unknown')))"
)
"""Ended runs for which it is unknown whether the agent took the prompt, or a message delivered during the turn."""

wakes = Table(
    "wakes",
    metadata,
    row_id(),
    reference("lane_id", "lanes.id"),
    reference("thread_id", "threads.id"),
    required("reason"),
    required("origin_kind"),
    optional("origin_agent"),
    integer("origin_depth"),
    required("freshness", "follow-policy"),
    # The scope it is served in: '' for the lane's, 'own' for one that its run will own, then that run's id.
    required("scope", ""),
    optional("resume_run"),
    integer("priority"),
    # The journal entry to answer; 0 for none.
    integer("entry"),
    optional("route"),
    optional("dedupe_key"),
    timestamp("accepted_at", nullable=False),
    timestamp("not_before"),
    required("state", "pending"),
    reference("run_id", "runs.id", nullable=True),
    # 1 once a run has opened a session for it: its demand for a fresh start is then met.
    integer("began"),
    # Why it is in this state. Every wake has both.
    required("code"),
    required("words"),
    timestamp("ended_at"),
    # Earlier entries to answer too, as a JSON list; usually NULL.
    optional("entries"),
    # What its sender was told that it would do (protocol/preview.py).
    optional("preview"),
    CheckConstraint(one_of("state", WakeState), "state"),
    CheckConstraint(f"NOT {one_of('state', ('claimed', 'served'))} OR run_id IS NOT NULL", "carried_by_a_run"),
    CheckConstraint("code <> '' AND words <> ''", "has_a_reason"),
    CheckConstraint(set_only_in("ended_at", WAKE_ENDS), "ends_once"),
    partial_index("uq_wakes_dedupe_key", "dedupe_key IS NOT NULL", "dedupe_key", unique=True),
    partial_index("ix_wakes_pending", "state = 'pending'", "lane_id", "accepted_at"),
    Index("ix_wakes_run", "run_id"),
)

runs = Table(
    "runs",
    metadata,
    row_id(),
    # The number people call it by (run-17). PostgreSQL counts by a sequence, so that no writer waits for another; on
    # SQLite the insert takes the next one (operations/queue.py).
    Column("number", Integer, Identity(), nullable=False),
    reference("lane_id", "lanes.id"),
    reference("agent_id", "agents.id"),
    reference("runtime_id", "runtimes.id", nullable=True),
    required("state", "queued"),
    integer("attempt"),
    Column("rank", Float(53), nullable=False),
    timestamp("queued_at", nullable=False),
    timestamp("not_before"),
    timestamp("lease_until"),
    optional("claimed_by"),
    # A live run takes a numbered place of its agent and one of its runtime. Two partial unique indexes
    # (uq_runs_agent_place, uq_runs_runtime_place) make it impossible to take a place twice.
    Column("agent_place", Integer),
    Column("runtime_place", Integer),
    # The session it continues, or the id that its new session will get once it is pinned.
    optional("session_id"),
    # The run in whose own scope it works; empty for the lane's scope.
    required("scope_run", ""),
    integer("prompt_sent"),
    integer("tool_ran"),
    integer("reopened"),
    integer("tries"),
    # How many approvals it has requested.
    integer("asked"),
    # What a queued run waits for besides its time ('' for nothing), and why. With a code alone it waits for its time
    # because of an outage or a limit of its model.
    required("hold", ""),
    optional("hold_code"),
    # What the agent said it opened, and the last journal entry its prompt contained.
    optional("landing"),
    optional("claim"),
    integer("told"),
    # Why it is being cancelled, while the agent is asked to stop.
    optional("stop_code"),
    optional("outcome"),
    optional("words"),
    timestamp("started_at"),
    timestamp("ended_at"),
    # The prompt that was about to be sent, as the agent's own store is asked for it, and the store's answer.
    optional("prompt"),
    required("evidence", ""),
    optional("evidence_words"),
    timestamp("evidence_at"),
    # How often the store was asked without an answer.
    integer("evidence_asked"),
    # The same for a message delivered during the turn, until it is known whether the agent took it.
    optional("steer"),
    CheckConstraint(set_only_in("lease_until", LIVE_STATES), "live_has_lease"),
    CheckConstraint(set_only_in("ended_at", RUN_ENDS), "ended_has_end"),
    CheckConstraint(
        f"NOT ({LIVE}) OR (agent_place IS NOT NULL AND runtime_place IS NOT NULL AND runtime_id IS NOT NULL)",
        "live_has_places",
    ),
    partial_index("uq_runs_lane_not_ended", NOT_ENDED, "lane_id", unique=True),
    partial_index("uq_runs_session_live", f"session_id IS NOT NULL AND {LIVE}", "session_id", unique=True),
    partial_index("uq_runs_agent_place", LIVE, "agent_id", "agent_place", unique=True),
    partial_index("uq_runs_runtime_place", LIVE, "runtime_id", "runtime_place", unique=True),
    CheckConstraint(one_of("hold", ("", *WaitsFor)), "hold"),
    partial_index("ix_runs_queue", "state = 'queued' AND hold <> 'person'", "runtime_id", "rank", "id"),
    partial_index("ix_runs_held", "state = 'queued' AND hold <> ''", "queued_at"),
    # Runs that wait for the end of an outage or a limit of their model.
    partial_index("ix_runs_waited_out", "state = 'queued' AND hold = '' AND hold_code IS NOT NULL", "agent_id", "id"),
    partial_index("ix_runs_lease", LIVE, "lease_until"),
    Index("ix_runs_lane", "lane_id", "queued_at"),
    Index("uq_runs_number", "number", unique=True),
    partial_index("ix_runs_started", "started_at IS NOT NULL", "agent_id", "started_at"),
    Index("ix_runs_agent", "agent_id", "id"),
    # Runs that went wrong are few and often searched for: small indexes of their own.
    partial_index("ix_runs_unheard", UNHEARD, "lane_id"),
    partial_index("ix_runs_unserved", "ended_at IS NOT NULL AND state <> 'succeeded'", "state", "id"),
)

events = Table(
    "events",
    metadata,
    reference("run_id", "runs.id"),
    integer("seq"),
    integer("attempt"),
    required("kind"),
    required("body"),
    timestamp("at", nullable=False),
    PrimaryKeyConstraint("run_id", "seq"),
    # What runs have used, found without reading their logs. With `kind` SQLite prefers it to the primary key.
    partial_index("ix_events_used", "kind = 'used'", "kind", "run_id", "attempt", "seq"),
    sqlite_with_rowid=False,
)

decisions = Table(
    "decisions",
    metadata,
    reference("run_id", "runs.id"),
    integer("attempt"),
    integer("step"),
    required("outcome"),
    required("code"),
    required("record"),
    timestamp("at", nullable=False),
    PrimaryKeyConstraint("run_id", "attempt", "step"),
)

# Landings that were refused: what the agent opened instead of what was planned, and why it was refused. An accepted
# landing is in runs.landing; answers to probes are in the decision's record.
landings = Table(
    "landings",
    metadata,
    reference("run_id", "runs.id"),
    integer("attempt"),
    integer("step"),
    required("landing"),
    required("words"),
    timestamp("at", nullable=False),
    PrimaryKeyConstraint("run_id", "attempt", "step"),
)

approvals = Table(
    "approvals",
    metadata,
    row_id(),
    reference("run_id", "runs.id"),
    integer("attempt"),
    required("question"),
    required("state", "pending"),
    optional("answered_by"),
    timestamp("expires_at"),
    timestamp("asked_at", nullable=False),
    timestamp("ended_at"),
    # The message given with the answer.
    optional("answer"),
    partial_index("ix_approvals_pending", "state = 'pending'", "run_id"),
    Index("ix_approvals_run", "run_id"),
    Index("ix_approvals_asked", "asked_at", "id"),
)

schedules = Table(
    "schedules",
    metadata,
    row_id(),
    reference("lane_id", "lanes.id"),
    integer("enabled", 1),
    Column("every", Float(53)),
    optional("cron"),
    required("zone", "UTC"),
    integer("isolated"),
    optional("route"),
    required("settings", "{}"),
    integer("idle_ticks"),
    timestamp("last_due"),
    timestamp("next_due"),
    # Why the schedule could not be read; NULL when it could.
    optional("fault"),
    CheckConstraint("every IS NOT NULL OR cron IS NOT NULL", "has_a_rhythm"),
    partial_index("ix_schedules_due", "enabled = 1 AND next_due IS NOT NULL", "next_due"),
)

routes = Table("routes", metadata, row_id(), required("kind"), required("address"), optional("secret"))

deliveries = Table(
    "deliveries",
    metadata,
    row_id(),
    reference("run_id", "runs.id"),
    reference("route_id", "routes.id"),
    required("body"),
    required("state", "pending"),
    integer("tries"),
    timestamp("next_at"),
    partial_index("ix_deliveries_pending", "state = 'pending'", "next_at"),
)
