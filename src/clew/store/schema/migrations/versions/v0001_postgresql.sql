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

CREATE TABLE routes (
	id TEXT NOT NULL,
	kind TEXT NOT NULL,
	address TEXT NOT NULL,
	secret TEXT,
	CONSTRAINT pk_routes PRIMARY KEY (id)
);

CREATE TABLE tokens (
	id TEXT NOT NULL,
	kind TEXT NOT NULL,
	digest TEXT NOT NULL,
	may TEXT DEFAULT '{}' NOT NULL,
	created_at FLOAT(53) NOT NULL,
	expires_at FLOAT(53),
	CONSTRAINT pk_tokens PRIMARY KEY (id),
	CONSTRAINT uq_tokens_digest UNIQUE (digest)
);

CREATE TABLE push_subscriptions (
	id TEXT NOT NULL,
	person TEXT NOT NULL,
	endpoint TEXT NOT NULL,
	p256dh TEXT NOT NULL,
	auth TEXT NOT NULL,
	server_key TEXT NOT NULL,
	titled INTEGER DEFAULT 0 NOT NULL,
	told TEXT DEFAULT '[]' NOT NULL,
	failure TEXT,
	created_at FLOAT(53) NOT NULL,
	CONSTRAINT pk_push_subscriptions PRIMARY KEY (id)
);

CREATE INDEX ix_push_subscriptions_person ON push_subscriptions (person, created_at);

CREATE TABLE projects (
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	source TEXT NOT NULL,
	machine_id TEXT,
	mode_limit TEXT,
	settings TEXT DEFAULT '{}' NOT NULL,
	CONSTRAINT pk_projects PRIMARY KEY (id),
	CONSTRAINT fk_projects_machine_id FOREIGN KEY(machine_id) REFERENCES machines (id)
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
	CONSTRAINT uq_runtimes_machine_id_provider_home UNIQUE (machine_id, provider, home),
	CONSTRAINT ck_runtimes_max_live CHECK (max_live >= 0),
	CONSTRAINT fk_runtimes_machine_id FOREIGN KEY(machine_id) REFERENCES machines (id)
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
	settings TEXT DEFAULT '{}' NOT NULL,
	program TEXT DEFAULT '' NOT NULL,
	missing TEXT,
	CONSTRAINT pk_agents PRIMARY KEY (id),
	CONSTRAINT uq_agents_name UNIQUE (name),
	CONSTRAINT ck_agents_mode CHECK ((mode = 'read' OR mode = 'ask' OR mode = 'edit' OR mode = 'full')),
	CONSTRAINT ck_agents_state CHECK ((state = 'active' OR state = 'archived' OR state = 'paused')),
	CONSTRAINT fk_agents_runtime_id FOREIGN KEY(runtime_id) REFERENCES runtimes (id)
);

CREATE TABLE programs (
	runtime_id TEXT NOT NULL,
	key TEXT NOT NULL,
	account TEXT,
	credential TEXT,
	capabilities TEXT DEFAULT '{}' NOT NULL,
	seen_at FLOAT(53),
	CONSTRAINT pk_programs PRIMARY KEY (runtime_id, key),
	CONSTRAINT fk_programs_runtime_id FOREIGN KEY(runtime_id) REFERENCES runtimes (id)
);

CREATE TABLE threads (
	id TEXT NOT NULL,
	kind TEXT NOT NULL,
	title TEXT DEFAULT '' NOT NULL,
	project_id TEXT,
	state TEXT DEFAULT 'open' NOT NULL,
	mode_limit TEXT,
	created_at FLOAT(53) NOT NULL,
	number INTEGER,
	assignee TEXT,
	archived INTEGER DEFAULT 0 NOT NULL,
	archived_entry INTEGER DEFAULT 0 NOT NULL,
	CONSTRAINT pk_threads PRIMARY KEY (id),
	CONSTRAINT fk_threads_project_id FOREIGN KEY(project_id) REFERENCES projects (id)
);

CREATE INDEX ix_threads_assignee ON threads (assignee, kind, state, archived, created_at, id) WHERE assignee IS NOT NULL;

CREATE INDEX ix_threads_listed ON threads (kind, state, archived, created_at, id);

CREATE UNIQUE INDEX uq_threads_number ON threads (kind, number) WHERE number IS NOT NULL;

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
	replaces INTEGER,
	files TEXT,
	CONSTRAINT pk_journal PRIMARY KEY (thread_id, seq),
	CONSTRAINT ck_journal_seq CHECK (seq > 0),
	CONSTRAINT ck_journal_replaces_an_earlier_one CHECK (replaces > 0 AND replaces < seq),
	CONSTRAINT fk_journal_thread_id FOREIGN KEY(thread_id) REFERENCES threads (id)
);

CREATE INDEX ix_journal_news ON journal (thread_id, author_kind, seq) WHERE author_kind <> 'human';

CREATE UNIQUE INDEX uq_journal_replaces ON journal (thread_id, replaces) WHERE replaces IS NOT NULL;

CREATE TABLE files (
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	kind TEXT NOT NULL,
	size INTEGER DEFAULT 0 NOT NULL,
	digest TEXT NOT NULL,
	content BYTEA NOT NULL,
	owner TEXT NOT NULL,
	created_at FLOAT(53) NOT NULL,
	thread_id TEXT,
	CONSTRAINT pk_files PRIMARY KEY (id),
	CONSTRAINT ck_files_size CHECK (size = length(content)),
	CONSTRAINT fk_files_thread_id FOREIGN KEY(thread_id) REFERENCES threads (id)
);

CREATE INDEX ix_files_unsent ON files (created_at) WHERE thread_id IS NULL;

CREATE TABLE marks (
	reader TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	seen INTEGER DEFAULT 0 NOT NULL,
	pinned_at FLOAT(53),
	CONSTRAINT pk_marks PRIMARY KEY (reader, thread_id),
	CONSTRAINT fk_marks_thread_id FOREIGN KEY(thread_id) REFERENCES threads (id)
);

CREATE INDEX ix_marks_pinned ON marks (reader, pinned_at) WHERE pinned_at IS NOT NULL;

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
	remade TEXT,
	checked_out TEXT,
	begin_from TEXT,
	allowed TEXT DEFAULT '[]' NOT NULL,
	CONSTRAINT pk_lanes PRIMARY KEY (id),
	CONSTRAINT uq_lanes_agent_id_thread_id UNIQUE (agent_id, thread_id),
	CONSTRAINT fk_lanes_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id),
	CONSTRAINT fk_lanes_thread_id FOREIGN KEY(thread_id) REFERENCES threads (id),
	CONSTRAINT fk_lanes_runtime_id FOREIGN KEY(runtime_id) REFERENCES runtimes (id)
);

CREATE INDEX ix_lanes_thread ON lanes (thread_id);

CREATE TABLE runs (
	id TEXT NOT NULL,
	number INTEGER GENERATED BY DEFAULT AS IDENTITY,
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
	prompt TEXT,
	evidence TEXT DEFAULT '' NOT NULL,
	evidence_words TEXT,
	evidence_at FLOAT(53),
	evidence_asked INTEGER DEFAULT 0 NOT NULL,
	steer TEXT,
	CONSTRAINT pk_runs PRIMARY KEY (id),
	CONSTRAINT ck_runs_live_has_lease CHECK ((state = 'claimed' OR state = 'opening' OR state = 'running' OR state = 'stopping' OR state = 'waiting') = (lease_until IS NOT NULL)),
	CONSTRAINT ck_runs_ended_has_end CHECK ((state = 'cancelled' OR state = 'failed' OR state = 'lost' OR state = 'succeeded') = (ended_at IS NOT NULL)),
	CONSTRAINT ck_runs_live_has_places CHECK (NOT (lease_until IS NOT NULL) OR (agent_place IS NOT NULL AND runtime_place IS NOT NULL AND runtime_id IS NOT NULL)),
	CONSTRAINT ck_runs_hold CHECK ((hold = '' OR hold = 'another-try' OR hold = 'person' OR hold = 'session-free')),
	CONSTRAINT fk_runs_lane_id FOREIGN KEY(lane_id) REFERENCES lanes (id),
	CONSTRAINT fk_runs_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id),
	CONSTRAINT fk_runs_runtime_id FOREIGN KEY(runtime_id) REFERENCES runtimes (id)
);

CREATE INDEX ix_runs_agent ON runs (agent_id, id);

CREATE INDEX ix_runs_held ON runs (queued_at) WHERE state = 'queued' AND hold <> '';

CREATE INDEX ix_runs_lane ON runs (lane_id, queued_at);

CREATE INDEX ix_runs_lease ON runs (lease_until) WHERE lease_until IS NOT NULL;

CREATE INDEX ix_runs_queue ON runs (runtime_id, rank, id) WHERE state = 'queued' AND hold <> 'person';

CREATE INDEX ix_runs_started ON runs (agent_id, started_at) WHERE started_at IS NOT NULL;

CREATE INDEX ix_runs_unheard ON runs (lane_id) WHERE ended_at IS NOT NULL AND (steer IS NOT NULL OR (prompt IS NOT NULL AND (evidence = '' OR evidence = 'unknown')));

CREATE INDEX ix_runs_unserved ON runs (state, id) WHERE ended_at IS NOT NULL AND state <> 'succeeded';

CREATE INDEX ix_runs_waited_out ON runs (agent_id, id) WHERE state = 'queued' AND hold = '' AND hold_code IS NOT NULL;

CREATE UNIQUE INDEX uq_runs_agent_place ON runs (agent_id, agent_place) WHERE lease_until IS NOT NULL;

CREATE UNIQUE INDEX uq_runs_lane_not_ended ON runs (lane_id) WHERE ended_at IS NULL;

CREATE UNIQUE INDEX uq_runs_number ON runs (number);

CREATE UNIQUE INDEX uq_runs_runtime_place ON runs (runtime_id, runtime_place) WHERE lease_until IS NOT NULL;

CREATE UNIQUE INDEX uq_runs_session_live ON runs (session_id) WHERE session_id IS NOT NULL AND lease_until IS NOT NULL;

CREATE TABLE schedules (
	id TEXT NOT NULL,
	lane_id TEXT NOT NULL,
	enabled INTEGER DEFAULT 1 NOT NULL,
	every FLOAT(53),
	cron TEXT,
	zone TEXT DEFAULT 'UTC' NOT NULL,
	isolated INTEGER DEFAULT 0 NOT NULL,
	route TEXT,
	settings TEXT DEFAULT '{}' NOT NULL,
	idle_ticks INTEGER DEFAULT 0 NOT NULL,
	last_due FLOAT(53),
	next_due FLOAT(53),
	fault TEXT,
	CONSTRAINT pk_schedules PRIMARY KEY (id),
	CONSTRAINT ck_schedules_has_a_rhythm CHECK (every IS NOT NULL OR cron IS NOT NULL),
	CONSTRAINT fk_schedules_lane_id FOREIGN KEY(lane_id) REFERENCES lanes (id)
);

CREATE INDEX ix_schedules_due ON schedules (next_due) WHERE enabled = 1 AND next_due IS NOT NULL;

CREATE TABLE workspaces (
	id TEXT NOT NULL,
	lane_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	project_id TEXT,
	machine_id TEXT,
	directory TEXT NOT NULL,
	branch TEXT,
	created_at FLOAT(53) NOT NULL,
	begins TEXT,
	begun_by TEXT,
	work TEXT DEFAULT '{}' NOT NULL,
	CONSTRAINT pk_workspaces PRIMARY KEY (id),
	CONSTRAINT fk_workspaces_lane_id FOREIGN KEY(lane_id) REFERENCES lanes (id),
	CONSTRAINT fk_workspaces_project_id FOREIGN KEY(project_id) REFERENCES projects (id),
	CONSTRAINT fk_workspaces_machine_id FOREIGN KEY(machine_id) REFERENCES machines (id)
);

CREATE INDEX ix_workspaces_directory ON workspaces (machine_id, directory);

CREATE INDEX ix_workspaces_lane ON workspaces (lane_id, created_at);

CREATE TABLE approvals (
	id TEXT NOT NULL,
	run_id TEXT NOT NULL,
	attempt INTEGER DEFAULT 0 NOT NULL,
	question TEXT NOT NULL,
	state TEXT DEFAULT 'pending' NOT NULL,
	answered_by TEXT,
	expires_at FLOAT(53),
	asked_at FLOAT(53) NOT NULL,
	ended_at FLOAT(53),
	answer TEXT,
	CONSTRAINT pk_approvals PRIMARY KEY (id),
	CONSTRAINT fk_approvals_run_id FOREIGN KEY(run_id) REFERENCES runs (id)
);

CREATE INDEX ix_approvals_asked ON approvals (asked_at, id);

CREATE INDEX ix_approvals_pending ON approvals (run_id) WHERE state = 'pending';

CREATE INDEX ix_approvals_run ON approvals (run_id);

CREATE TABLE decisions (
	run_id TEXT NOT NULL,
	attempt INTEGER DEFAULT 0 NOT NULL,
	step INTEGER DEFAULT 0 NOT NULL,
	outcome TEXT NOT NULL,
	code TEXT NOT NULL,
	record TEXT NOT NULL,
	at FLOAT(53) NOT NULL,
	CONSTRAINT pk_decisions PRIMARY KEY (run_id, attempt, step),
	CONSTRAINT fk_decisions_run_id FOREIGN KEY(run_id) REFERENCES runs (id)
);

CREATE TABLE deliveries (
	id TEXT NOT NULL,
	run_id TEXT NOT NULL,
	route_id TEXT NOT NULL,
	body TEXT NOT NULL,
	state TEXT DEFAULT 'pending' NOT NULL,
	tries INTEGER DEFAULT 0 NOT NULL,
	next_at FLOAT(53),
	CONSTRAINT pk_deliveries PRIMARY KEY (id),
	CONSTRAINT fk_deliveries_run_id FOREIGN KEY(run_id) REFERENCES runs (id),
	CONSTRAINT fk_deliveries_route_id FOREIGN KEY(route_id) REFERENCES routes (id)
);

CREATE INDEX ix_deliveries_pending ON deliveries (next_at) WHERE state = 'pending';

CREATE TABLE events (
	run_id TEXT NOT NULL,
	seq INTEGER DEFAULT 0 NOT NULL,
	attempt INTEGER DEFAULT 0 NOT NULL,
	kind TEXT NOT NULL,
	body TEXT NOT NULL,
	at FLOAT(53) NOT NULL,
	CONSTRAINT pk_events PRIMARY KEY (run_id, seq),
	CONSTRAINT fk_events_run_id FOREIGN KEY(run_id) REFERENCES runs (id)
);

CREATE INDEX ix_events_used ON events (kind, run_id, attempt, seq) WHERE kind = 'used';

CREATE TABLE landings (
	run_id TEXT NOT NULL,
	attempt INTEGER DEFAULT 0 NOT NULL,
	step INTEGER DEFAULT 0 NOT NULL,
	landing TEXT NOT NULL,
	words TEXT NOT NULL,
	at FLOAT(53) NOT NULL,
	CONSTRAINT pk_landings PRIMARY KEY (run_id, attempt, step),
	CONSTRAINT fk_landings_run_id FOREIGN KEY(run_id) REFERENCES runs (id)
);

CREATE TABLE sessions (
	id TEXT NOT NULL,
	lane_id TEXT NOT NULL,
	scope_run TEXT DEFAULT '' NOT NULL,
	generation INTEGER DEFAULT 0 NOT NULL,
	provider TEXT NOT NULL,
	runtime_id TEXT NOT NULL,
	native_id TEXT NOT NULL,
	cursor TEXT NOT NULL,
	directory TEXT NOT NULL,
	real_directory TEXT,
	account TEXT,
	state TEXT DEFAULT 'healthy' NOT NULL,
	begins INTEGER DEFAULT 0 NOT NULL,
	also TEXT DEFAULT '[]' NOT NULL,
	seen INTEGER DEFAULT 0 NOT NULL,
	model TEXT,
	mode TEXT,
	instructions TEXT,
	tools TEXT,
	turns INTEGER DEFAULT 0 NOT NULL,
	tokens BIGINT DEFAULT 0 NOT NULL,
	size BIGINT DEFAULT 0 NOT NULL,
	run_id TEXT,
	adopted_at FLOAT(53),
	born_at FLOAT(53) NOT NULL,
	proven_at FLOAT(53),
	archive_id TEXT,
	superseded INTEGER DEFAULT 0 NOT NULL,
	credential TEXT,
	inherited INTEGER DEFAULT 0 NOT NULL,
	cut_off INTEGER DEFAULT 0 NOT NULL,
	CONSTRAINT pk_sessions PRIMARY KEY (id),
	CONSTRAINT uq_sessions_lane_id_scope_run_generation UNIQUE (lane_id, scope_run, generation),
	CONSTRAINT ck_sessions_comes_from_somewhere CHECK (run_id IS NOT NULL OR adopted_at IS NOT NULL),
	CONSTRAINT ck_sessions_generation CHECK (generation > 0),
	CONSTRAINT ck_sessions_can_be_found CHECK (native_id <> '' AND directory <> ''),
	CONSTRAINT fk_sessions_lane_id FOREIGN KEY(lane_id) REFERENCES lanes (id),
	CONSTRAINT fk_sessions_runtime_id FOREIGN KEY(runtime_id) REFERENCES runtimes (id),
	CONSTRAINT fk_sessions_run_id FOREIGN KEY(run_id) REFERENCES runs (id)
);

CREATE UNIQUE INDEX uq_sessions_native ON sessions (runtime_id, native_id) WHERE superseded = 0 AND runtime_id <> 'unknown';

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
	entries TEXT,
	preview TEXT,
	CONSTRAINT pk_wakes PRIMARY KEY (id),
	CONSTRAINT ck_wakes_state CHECK ((state = 'cancelled' OR state = 'claimed' OR state = 'pending' OR state = 'served' OR state = 'skipped')),
	CONSTRAINT ck_wakes_carried_by_a_run CHECK (NOT (state = 'claimed' OR state = 'served') OR run_id IS NOT NULL),
	CONSTRAINT ck_wakes_has_a_reason CHECK (code <> '' AND words <> ''),
	CONSTRAINT ck_wakes_ends_once CHECK ((state = 'cancelled' OR state = 'served' OR state = 'skipped') = (ended_at IS NOT NULL)),
	CONSTRAINT fk_wakes_lane_id FOREIGN KEY(lane_id) REFERENCES lanes (id),
	CONSTRAINT fk_wakes_thread_id FOREIGN KEY(thread_id) REFERENCES threads (id),
	CONSTRAINT fk_wakes_run_id FOREIGN KEY(run_id) REFERENCES runs (id)
);

CREATE INDEX ix_wakes_pending ON wakes (lane_id, accepted_at) WHERE state = 'pending';

CREATE INDEX ix_wakes_run ON wakes (run_id);

CREATE UNIQUE INDEX uq_wakes_dedupe_key ON wakes (dedupe_key) WHERE dedupe_key IS NOT NULL;

CREATE TABLE archives (
	id TEXT NOT NULL,
	session_id TEXT NOT NULL,
	format TEXT NOT NULL,
	seen INTEGER DEFAULT 0 NOT NULL,
	turns INTEGER DEFAULT 0 NOT NULL,
	digest TEXT NOT NULL,
	state TEXT DEFAULT 'ready' NOT NULL,
	location TEXT NOT NULL,
	at FLOAT(53) NOT NULL,
	CONSTRAINT pk_archives PRIMARY KEY (id),
	CONSTRAINT fk_archives_session_id FOREIGN KEY(session_id) REFERENCES sessions (id)
);

CREATE INDEX ix_archives_session ON archives (session_id, at);

CREATE TABLE search_documents (
	id BIGINT NOT NULL,
	kind TEXT NOT NULL,
	source TEXT NOT NULL,
	seq INTEGER NOT NULL,
	through INTEGER NOT NULL,
	words TSVECTOR NOT NULL,
	CONSTRAINT pk_search_documents PRIMARY KEY (id),
	CONSTRAINT uq_search_documents_source UNIQUE (kind, source, seq)
);

CREATE INDEX ix_search_documents_words ON search_documents USING gin (words);

CREATE TABLE search_due (
	id BIGINT GENERATED BY DEFAULT AS IDENTITY,
	kind TEXT NOT NULL,
	source TEXT NOT NULL,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_search_due PRIMARY KEY (id)
);

CREATE TABLE search_logs (
	run_id TEXT NOT NULL,
	through INTEGER NOT NULL,
	CONSTRAINT pk_search_logs PRIMARY KEY (run_id)
);

CREATE FUNCTION search_entry_due() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO search_due (kind, source, seq) VALUES (''entry'', COALESCE(NEW.thread_id, OLD.thread_id), COALESCE(NEW.seq, OLD.seq)); RETURN NULL; END';

CREATE FUNCTION search_row_due() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO search_due (kind, source, seq) VALUES (TG_ARGV[0], COALESCE(NEW.id, OLD.id), 0); RETURN NULL; END';

CREATE TRIGGER search_entry AFTER INSERT OR UPDATE OF body OR DELETE ON journal FOR EACH ROW EXECUTE FUNCTION search_entry_due();

CREATE TRIGGER search_title AFTER INSERT OR UPDATE OF title OR DELETE ON threads FOR EACH ROW EXECUTE FUNCTION search_row_due('title');

CREATE TRIGGER search_thread_moved AFTER UPDATE OF project_id ON threads FOR EACH ROW WHEN (NEW.project_id IS DISTINCT FROM OLD.project_id) EXECUTE FUNCTION search_row_due('thread');

CREATE TRIGGER search_log_added AFTER INSERT ON runs FOR EACH ROW WHEN (NEW.started_at IS NOT NULL) EXECUTE FUNCTION search_row_due('log');

CREATE TRIGGER search_log_started AFTER UPDATE OF started_at ON runs FOR EACH ROW WHEN (NEW.started_at IS NOT NULL AND OLD.started_at IS NULL) EXECUTE FUNCTION search_row_due('log');

CREATE FUNCTION unarchive_by_entry() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF EXISTS (SELECT 1 FROM threads WHERE id = NEW.thread_id AND archived = 1 AND archived_entry < NEW.seq) THEN PERFORM set_config(''lock_timeout'', ''50ms'', true); UPDATE threads SET archived = 0 WHERE id = NEW.thread_id AND archived = 1 AND archived_entry < NEW.seq; END IF; RETURN NULL; END';

CREATE FUNCTION unarchive_by_run() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF EXISTS (SELECT 1 FROM threads WHERE id = (SELECT thread_id FROM lanes WHERE id = NEW.lane_id) AND archived = 1) THEN PERFORM set_config(''lock_timeout'', ''50ms'', true); UPDATE threads SET archived = 0 WHERE id = (SELECT thread_id FROM lanes WHERE id = NEW.lane_id) AND archived = 1; END IF; RETURN NULL; END';

CREATE FUNCTION unarchive_by_wake() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF EXISTS (SELECT 1 FROM threads WHERE id = NEW.thread_id AND archived = 1) THEN PERFORM set_config(''lock_timeout'', ''50ms'', true); UPDATE threads SET archived = 0 WHERE id = NEW.thread_id AND archived = 1; END IF; RETURN NULL; END';

CREATE FUNCTION unarchive_by_approval() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF EXISTS (SELECT 1 FROM threads WHERE id = (SELECT l.thread_id FROM runs r JOIN lanes l ON l.id = r.lane_id WHERE r.id = NEW.run_id) AND archived = 1) THEN PERFORM set_config(''lock_timeout'', ''50ms'', true); UPDATE threads SET archived = 0 WHERE id = (SELECT l.thread_id FROM runs r JOIN lanes l ON l.id = r.lane_id WHERE r.id = NEW.run_id) AND archived = 1; END IF; RETURN NULL; END';

CREATE TRIGGER unarchive_spoken AFTER INSERT ON journal FOR EACH ROW EXECUTE FUNCTION unarchive_by_entry();

CREATE TRIGGER unarchive_asked AFTER INSERT ON approvals FOR EACH ROW WHEN (NEW.state = 'pending') EXECUTE FUNCTION unarchive_by_approval();

CREATE TRIGGER unarchive_held AFTER UPDATE OF hold ON runs FOR EACH ROW WHEN (NEW.ended_at IS NULL AND NEW.hold = 'person' AND OLD.hold <> 'person') EXECUTE FUNCTION unarchive_by_run();

CREATE TRIGGER unarchive_given_up AFTER UPDATE OF state ON wakes FOR EACH ROW WHEN (NEW.code = 'cancelled:gave-up' AND OLD.state <> NEW.state) EXECUTE FUNCTION unarchive_by_wake();

INSERT INTO machines (id, name) VALUES ('unknown', 'unknown');

INSERT INTO runtimes (id, machine_id, provider, home, max_live) SELECT id, id, name, name, 0 FROM machines;

INSERT INTO meta (key, value) VALUES ('schema', '1');

INSERT INTO meta (key, value) VALUES ('oldest-program', '1');
