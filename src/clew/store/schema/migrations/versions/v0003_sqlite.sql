CREATE TABLE programs (
	runtime_id TEXT NOT NULL,
	key TEXT NOT NULL,
	account TEXT,
	credential TEXT,
	capabilities TEXT DEFAULT '{}' NOT NULL,
	seen_at FLOAT,
	CONSTRAINT pk_programs PRIMARY KEY (runtime_id, key),
	CONSTRAINT fk_programs_runtime_id FOREIGN KEY(runtime_id) REFERENCES runtimes (id)
);

ALTER TABLE agents ADD COLUMN program TEXT DEFAULT '' NOT NULL;

ALTER TABLE lanes ADD COLUMN remade TEXT;

ALTER TABLE runs ADD COLUMN prompt TEXT;

ALTER TABLE runs ADD COLUMN evidence TEXT DEFAULT '' NOT NULL;

ALTER TABLE runs ADD COLUMN evidence_words TEXT;

ALTER TABLE runs ADD COLUMN evidence_at FLOAT;

ALTER TABLE runs ADD COLUMN evidence_asked INTEGER DEFAULT 0 NOT NULL;

ALTER TABLE runs ADD COLUMN steer TEXT;

ALTER TABLE sessions ADD COLUMN credential TEXT;

ALTER TABLE sessions ADD COLUMN inherited INTEGER DEFAULT 0 NOT NULL;

ALTER TABLE sessions ADD COLUMN cut_off INTEGER DEFAULT 0 NOT NULL;

UPDATE runs SET evidence = 'finished' WHERE state = 'succeeded';

UPDATE sessions SET inherited = seen;

CREATE INDEX ix_runs_unheard ON runs (lane_id) WHERE ended_at IS NOT NULL AND (steer IS NOT NULL OR (prompt IS NOT NULL AND (evidence = '' OR evidence = 'unknown')));
