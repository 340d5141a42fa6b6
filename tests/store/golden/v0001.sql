-- A database of schema 1, written by hand: the rows to insert after its steps.

INSERT INTO machines (id, name, seen_at) VALUES ('laptop', 'laptop', 900), ('server', 'server', 900);

INSERT INTO runtimes (id, machine_id, provider, home, account) VALUES
  ('rt-laptop', 'laptop', 'loom', '/srv/home', 'me@work'),
  ('rt-server', 'server', 'loom', '/srv/home', 'me@work');

-- Two agents in one home: one names its login, the other has a key.
INSERT INTO programs (runtime_id, key, account, credential, capabilities, seen_at) VALUES
  ('rt-laptop', 'key-of-ada', 'me@work', NULL, '{}', 900),
  ('rt-laptop', 'key-of-bob', NULL, 'digest-1', '{"steers": true}', 900);

INSERT INTO agents (id, name, provider, runtime_id, mode, home, program, policy) VALUES
  ('ada', 'ada', 'loom', 'rt-laptop', 'edit', '/srv/ada', 'key-of-ada', '{}'),
  ('bob', 'bob', 'loom', 'rt-laptop', 'edit', '/srv/bob', 'key-of-bob', '{"history_across_accounts": true}');

INSERT INTO threads (id, kind, title, created_at) VALUES ('t1', 'issue', 'A door in the maze', 100);

-- It is archived with its last entry, and one person has read a part of it.
UPDATE threads SET archived = 1, archived_entry = 6;

INSERT INTO marks (reader, thread_id, seen, pinned_at) VALUES ('a person', 't1', 1, 120), ('another', 't1', -1, NULL);

INSERT INTO journal (thread_id, seq, author_kind, author_name, body, at) VALUES
  ('t1', 1, 'human', 'a person', 'The door does not open.', 100),
  ('t1', 2, 'agent', 'ada', 'It opens now.', 120),
  ('t1', 3, 'human', 'a person', 'Now the window.', 160);

-- One message was edited while it waited, and another was taken back.
INSERT INTO journal (thread_id, seq, author_kind, author_name, body, at, replaces) VALUES
  ('t1', 4, 'human', 'a person', 'Now the windows.', 161, 3),
  ('t1', 5, 'human', 'a person', 'And the roof.', 162, NULL),
  ('t1', 6, 'human', 'a person', '', 163, 5);

-- One message came with a file; its row is in the directory of each database, where bytes are written differently.
UPDATE journal SET files = '[["fl-1", "abc.txt", "text/plain", 3]]' WHERE seq = 1;

INSERT INTO push_subscriptions (id, person, endpoint, p256dh, auth, server_key, titled, told, failure, created_at) VALUES
  ('ps-1', 'a person', 'https://push.invalid/1', 'BA', 'AA', 'BB', 1, '["ap-1", "r-1-held"]', NULL, 100),
  ('ps-2', 'a person', 'https://push.invalid/2', 'BA', 'AA', 'BB', 0, '[]', 'push.invalid was not found.', 101);

INSERT INTO lanes (id, agent_id, thread_id, workspace_id, remade) VALUES
  ('there-and-back', 'ada', 't1', 'ws-1', 'The directory was made again: 2 uncommitted files were lost.'),
  ('with-a-key', 'bob', 't1', NULL, NULL);

INSERT INTO workspaces (id, lane_id, kind, directory, created_at) VALUES
  ('ws-1', 'there-and-back', 'directory', '/srv/maze', 100);

INSERT INTO runs (id, number, lane_id, agent_id, runtime_id, state, rank, queued_at, started_at, ended_at, told,
                  session_id, scope_run) VALUES
  ('run-1', 1, 'there-and-back', 'ada', 'rt-laptop', 'succeeded', 0, 110, 110, 119, 1, 's-1', ''),
  ('run-2', 2, 'there-and-back', 'ada', 'rt-server', 'succeeded', 0, 120, 120, 129, 1, 's-2', ''),
  ('run-3', 3, 'there-and-back', 'ada', 'rt-laptop', 'succeeded', 0, 130, 130, 139, 2, 's-3', ''),
  ('run-4', 4, 'there-and-back', 'ada', 'rt-laptop', 'succeeded', 0, 140, 140, 149, 2, 's-4', 'run-4');

INSERT INTO wakes (id, lane_id, thread_id, reason, origin_kind, accepted_at, state, run_id, code, words, ended_at, preview)
VALUES ('wake-1', 'there-and-back', 't1', 'comment', 'human', 105, 'served', 'run-1', 'served', 'Run run-1 did it.', 119,
        'resume/s-1/session:fits');

-- Bob's first turn was cut off. It is not known yet whether he took the second prompt, or the message sent during the
-- third turn.
INSERT INTO runs (id, number, lane_id, agent_id, runtime_id, state, rank, queued_at, started_at, ended_at, told, prompt_sent,
                  session_id, prompt, evidence, evidence_words, evidence_at, evidence_asked, steer) VALUES
  ('run-5', 5, 'with-a-key', 'bob', 'rt-laptop', 'failed', 0, 160, 160, 169, 3, 1, 's-6',
   '{"sent": {"id": "0198c0de-0000-7000-8000-000000000001", "digest": "00", "turns": 0}, "session": null, "wakes": ["wake-2"], "hears": true}',
   'cut-off', 'It is in the store, and part of a turn.', 169, 0, NULL),
  ('run-6', 6, 'with-a-key', 'bob', 'rt-laptop', 'failed', 0, 170, 170, 179, 3, 1, 's-6',
   '{"sent": {"id": "0198c0de-0000-7000-8000-000000000002", "digest": "00", "turns": 1}, "session": null, "wakes": ["wake-2"], "hears": true}',
   'unknown', 'Its store is being written.', 179, 2, NULL),
  ('run-7', 7, 'with-a-key', 'bob', 'rt-laptop', 'failed', 0, 180, 180, 189, 3, 0, 's-6', NULL, '', NULL, NULL, 0,
   '{"id": "0198c0de-0000-7000-8000-000000000003", "wakes": ["wake-3"], "through": 3}');

INSERT INTO wakes (id, lane_id, thread_id, reason, origin_kind, accepted_at, state, code, words, ended_at) VALUES
  ('wake-2', 'with-a-key', 't1', 'comment', 'human', 160, 'cancelled', 'cancelled', 'A person did.', 189),
  ('wake-3', 'with-a-key', 't1', 'comment', 'human', 180, 'cancelled', 'cancelled', 'A person did.', 189);

-- On the laptop, on the server, back on the laptop; one heartbeat in a scope of its own; one whose runtime is unknown.
INSERT INTO sessions (id, lane_id, scope_run, generation, provider, runtime_id, native_id, cursor, directory,
                      account, seen, run_id, adopted_at, born_at, superseded) VALUES
  ('s-1', 'there-and-back', '', 1, 'loom', 'rt-laptop', 'n-1', '{"v": 1, "id": "n-1", "extra": ""}', '/srv/maze',
   'me@work', 1, 'run-1', NULL, 110, 1),
  ('s-2', 'there-and-back', '', 2, 'loom', 'rt-server', 'n-2', '{"v": 1, "id": "n-2", "extra": ""}', '/srv/maze',
   'me@work', 1, 'run-2', NULL, 120, 0),
  ('s-3', 'there-and-back', '', 3, 'loom', 'rt-laptop', 'n-1', '{"v": 1, "id": "n-1", "extra": ""}', '/srv/maze',
   'me@work', 2, 'run-3', NULL, 110, 0),
  ('s-4', 'there-and-back', 'run-4', 1, 'loom', 'rt-laptop', 'n-4', '{"v": 1, "id": "n-4", "extra": ""}', '/srv/ada',
   'me@work', 2, 'run-4', NULL, 140, 0),
  ('s-5', 'there-and-back', '', 4, 'loom', 'unknown', 'n-5', '{"v": 1, "id": "n-5", "extra": ""}', '/srv/maze',
   'me@work', 0, NULL, 150, 150, 0);

INSERT INTO sessions (id, lane_id, generation, provider, runtime_id, native_id, cursor, directory, credential,
                      seen, inherited, run_id, born_at, cut_off) VALUES
  ('s-6', 'with-a-key', 1, 'loom', 'rt-laptop', 'n-6', '{"v": 1, "id": "n-6", "extra": ""}', '/srv/bob', 'digest-1',
   3, 0, 'run-5', 160, 1);

INSERT INTO archives (id, session_id, format, seen, turns, digest, location, at) VALUES
  ('a-1', 's-3', 'loom/1', 2, 2, 'sha256:00', 'archives/a-1', 139);

UPDATE runs SET outcome = 'run:answered', evidence = 'finished' WHERE state = 'succeeded';

UPDATE runs SET outcome = 'run:gave-up' WHERE state = 'failed';
