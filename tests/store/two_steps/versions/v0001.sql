-- Schema 1 of the test: a lane points at its session. Only the tables that the steps and the old database need.

CREATE TABLE machines (
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	root TEXT,
	seen_at FLOAT(53),
	CONSTRAINT pk_machines PRIMARY KEY (id)
);

CREATE TABLE meta (
	key TEXT NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT pk_meta PRIMARY KEY (key)
);

CREATE TABLE runtimes (
	id TEXT NOT NULL,
	machine_id TEXT NOT NULL,
	provider TEXT NOT NULL,
	home TEXT NOT NULL,
	account TEXT,
	capabilities TEXT DEFAULT '{}' NOT NULL,
	max_live INTEGER DEFAULT 4 NOT NULL,
	seen_at FLOAT(53),
	CONSTRAINT pk_runtimes PRIMARY KEY (id),
	CONSTRAINT fk_runtimes_machine_id FOREIGN KEY(machine_id) REFERENCES machines (id),
	CONSTRAINT ck_runtimes_max_live CHECK (max_live >= 0),
	CONSTRAINT uq_runtimes_machine_id_provider_home UNIQUE (machine_id, provider, home)
);

CREATE TABLE agents (
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	state TEXT DEFAULT 'active' NOT NULL,
	provider TEXT NOT NULL,
	runtime_id TEXT,
	model TEXT,
	mode TEXT DEFAULT 'read' NOT NULL,
	instructions TEXT,
	tools TEXT,
	policy TEXT DEFAULT '{}' NOT NULL,
	max_live INTEGER DEFAULT 1 NOT NULL,
	home TEXT NOT NULL,
	CONSTRAINT pk_agents PRIMARY KEY (id),
	CONSTRAINT fk_agents_runtime_id FOREIGN KEY(runtime_id) REFERENCES runtimes (id),
	CONSTRAINT ck_agents_state CHECK ((state = 'active' OR state = 'archived' OR state = 'paused')),
	CONSTRAINT ck_agents_mode CHECK ((mode = 'read' OR mode = 'ask' OR mode = 'edit' OR mode = 'full')),
	CONSTRAINT uq_agents_name UNIQUE (name)
);

CREATE TABLE threads (
	id TEXT NOT NULL,
	kind TEXT NOT NULL,
	title TEXT DEFAULT '' NOT NULL,
	project_id TEXT,
	state TEXT DEFAULT 'open' NOT NULL,
	mode_limit TEXT,
	created_at FLOAT(53) NOT NULL,
	CONSTRAINT pk_threads PRIMARY KEY (id)
);

CREATE TABLE journal (
	thread_id TEXT NOT NULL,
	seq INTEGER DEFAULT 0 NOT NULL,
	author_kind TEXT NOT NULL,
	author_name TEXT NOT NULL,
	agent_id TEXT,
	provider TEXT,
	account TEXT,
	body TEXT NOT NULL,
	size INTEGER DEFAULT 0 NOT NULL,
	pair TEXT,
	run_id TEXT,
	at FLOAT(53) NOT NULL,
	CONSTRAINT pk_journal PRIMARY KEY (thread_id, seq),
	CONSTRAINT ck_journal_seq CHECK (seq > 0),
	CONSTRAINT fk_journal_thread_id FOREIGN KEY(thread_id) REFERENCES threads (id)
);

CREATE TABLE lanes (
	id TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	overlap TEXT DEFAULT 'queue' NOT NULL,
	runtime_id TEXT,
	workspace_id TEXT,
	floor_generation INTEGER DEFAULT 0 NOT NULL,
	floor_entry INTEGER DEFAULT 0 NOT NULL,
	floor_kept TEXT DEFAULT '[]' NOT NULL,
	session_native_id TEXT,
	session_directory TEXT,
	CONSTRAINT pk_lanes PRIMARY KEY (id),
	CONSTRAINT fk_lanes_runtime_id FOREIGN KEY(runtime_id) REFERENCES runtimes (id),
	CONSTRAINT fk_lanes_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id),
	CONSTRAINT fk_lanes_thread_id FOREIGN KEY(thread_id) REFERENCES threads (id),
	CONSTRAINT uq_lanes_agent_id_thread_id UNIQUE (agent_id, thread_id)
);

CREATE INDEX ix_lanes_thread ON lanes (thread_id);

CREATE TABLE runs (
	id TEXT NOT NULL,
	lane_id TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	runtime_id TEXT,
	state TEXT DEFAULT 'queued' NOT NULL,
	attempt INTEGER DEFAULT 0 NOT NULL,
	rank FLOAT(53) NOT NULL,
	queued_at FLOAT(53) NOT NULL,
	not_before FLOAT(53),
	lease_until FLOAT(53),
	claimed_by TEXT,
	agent_place INTEGER,
	runtime_place INTEGER,
	session_id TEXT,
	scope_run TEXT DEFAULT '' NOT NULL,
	prompt_sent INTEGER DEFAULT 0 NOT NULL,
	tool_ran INTEGER DEFAULT 0 NOT NULL,
	reopened INTEGER DEFAULT 0 NOT NULL,
	tries INTEGER DEFAULT 0 NOT NULL,
	asked INTEGER DEFAULT 0 NOT NULL,
	hold TEXT DEFAULT '' NOT NULL,
	hold_code TEXT,
	landing TEXT,
	claim TEXT,
	told INTEGER DEFAULT 0 NOT NULL,
	stop_code TEXT,
	outcome TEXT,
	words TEXT,
	started_at FLOAT(53),
	ended_at FLOAT(53),
	session_native_id TEXT,
	CONSTRAINT pk_runs PRIMARY KEY (id),
	CONSTRAINT ck_runs_live_has_places CHECK (NOT (lease_until IS NOT NULL) OR (agent_place IS NOT NULL AND runtime_place IS NOT NULL AND runtime_id IS NOT NULL)),
	CONSTRAINT fk_runs_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id),
	CONSTRAINT fk_runs_runtime_id FOREIGN KEY(runtime_id) REFERENCES runtimes (id),
	CONSTRAINT ck_runs_hold CHECK ((hold = '' OR hold = 'another-try' OR hold = 'person' OR hold = 'session-free')),
	CONSTRAINT fk_runs_lane_id FOREIGN KEY(lane_id) REFERENCES lanes (id),
	CONSTRAINT ck_runs_ended_has_end CHECK ((state = 'cancelled' OR state = 'failed' OR state = 'lost' OR state = 'succeeded') = (ended_at IS NOT NULL)),
	CONSTRAINT ck_runs_live_has_lease CHECK ((state = 'claimed' OR state = 'opening' OR state = 'running' OR state = 'stopping' OR state = 'waiting') = (lease_until IS NOT NULL))
);

CREATE INDEX ix_runs_held ON runs (queued_at) WHERE state = 'queued' AND hold <> '';

CREATE INDEX ix_runs_lane ON runs (lane_id, queued_at);

CREATE INDEX ix_runs_lease ON runs (lease_until) WHERE lease_until IS NOT NULL;

CREATE INDEX ix_runs_queue ON runs (runtime_id, rank, id) WHERE state = 'queued' AND hold <> 'person';

CREATE INDEX ix_runs_started ON runs (agent_id, started_at) WHERE started_at IS NOT NULL;

CREATE UNIQUE INDEX uq_runs_agent_place ON runs (agent_id, agent_place) WHERE lease_until IS NOT NULL;

CREATE UNIQUE INDEX uq_runs_lane_not_ended ON runs (lane_id) WHERE ended_at IS NULL;

CREATE UNIQUE INDEX uq_runs_runtime_place ON runs (runtime_id, runtime_place) WHERE lease_until IS NOT NULL;

CREATE UNIQUE INDEX uq_runs_session_live ON runs (session_id) WHERE session_id IS NOT NULL AND lease_until IS NOT NULL;

CREATE TABLE workspaces (
	id TEXT NOT NULL,
	lane_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	project_id TEXT,
	machine_id TEXT,
	directory TEXT NOT NULL,
	branch TEXT,
	created_at FLOAT(53) NOT NULL,
	CONSTRAINT pk_workspaces PRIMARY KEY (id),
	CONSTRAINT fk_workspaces_machine_id FOREIGN KEY(machine_id) REFERENCES machines (id),
	CONSTRAINT fk_workspaces_lane_id FOREIGN KEY(lane_id) REFERENCES lanes (id)
);

CREATE INDEX ix_workspaces_lane ON workspaces (lane_id, created_at);

CREATE TABLE wakes (
	id TEXT NOT NULL,
	lane_id TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	reason TEXT NOT NULL,
	origin_kind TEXT NOT NULL,
	origin_agent TEXT,
	origin_depth INTEGER DEFAULT 0 NOT NULL,
	freshness TEXT DEFAULT 'follow-policy' NOT NULL,
	scope TEXT DEFAULT '' NOT NULL,
	resume_run TEXT,
	priority INTEGER DEFAULT 0 NOT NULL,
	entry INTEGER DEFAULT 0 NOT NULL,
	route TEXT,
	dedupe_key TEXT,
	accepted_at FLOAT(53) NOT NULL,
	not_before FLOAT(53),
	state TEXT DEFAULT 'pending' NOT NULL,
	run_id TEXT,
	began INTEGER DEFAULT 0 NOT NULL,
	code TEXT NOT NULL,
	words TEXT NOT NULL,
	ended_at FLOAT(53),
	CONSTRAINT pk_wakes PRIMARY KEY (id),
	CONSTRAINT ck_wakes_has_a_reason CHECK (code <> '' AND words <> ''),
	CONSTRAINT ck_wakes_carried_by_a_run CHECK (NOT (state = 'claimed' OR state = 'served') OR run_id IS NOT NULL),
	CONSTRAINT fk_wakes_thread_id FOREIGN KEY(thread_id) REFERENCES threads (id),
	CONSTRAINT fk_wakes_lane_id FOREIGN KEY(lane_id) REFERENCES lanes (id),
	CONSTRAINT ck_wakes_state CHECK ((state = 'cancelled' OR state = 'claimed' OR state = 'pending' OR state = 'served' OR state = 'skipped')),
	CONSTRAINT fk_wakes_run_id FOREIGN KEY(run_id) REFERENCES runs (id),
	CONSTRAINT ck_wakes_ends_once CHECK ((state = 'cancelled' OR state = 'served' OR state = 'skipped') = (ended_at IS NOT NULL))
);

CREATE INDEX ix_wakes_pending ON wakes (lane_id, accepted_at) WHERE state = 'pending';

CREATE INDEX ix_wakes_run ON wakes (run_id);

CREATE UNIQUE INDEX uq_wakes_dedupe_key ON wakes (dedupe_key) WHERE dedupe_key IS NOT NULL;

INSERT INTO machines (id, name) VALUES ('unknown', 'unknown');

INSERT INTO runtimes (id, machine_id, provider, home, max_live) SELECT id, id, name, name, 0 FROM machines;

INSERT INTO meta (key, value) VALUES ('schema', '1');

INSERT INTO meta (key, value) VALUES ('oldest-program', '1');
