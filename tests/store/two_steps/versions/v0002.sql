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
