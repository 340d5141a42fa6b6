-- A database of schema 1, written by hand: the rows to insert after step 0001_pre. Each lane is named for its case.
-- A lane points at its session; nothing says on which runtime that session was made.

INSERT INTO machines (id, name, seen_at) VALUES ('laptop', 'laptop', 900), ('server', 'server', 900);

INSERT INTO runtimes (id, machine_id, provider, home, account) VALUES
  ('rt-laptop', 'laptop', 'loom', '/srv/home', 'me@work'),
  ('rt-server', 'server', 'loom', '/srv/home', 'me@work');

INSERT INTO agents (id, name, state, provider, runtime_id, mode, home) VALUES
  ('ada', 'ada', 'active', 'loom', 'rt-laptop', 'edit', '/srv/ada'),
  ('bob', 'bob', 'active', 'spindle', NULL, 'edit', '/srv/bob'),
  ('eve', 'eve', 'archived', 'loom', NULL, 'edit', '/srv/eve');

INSERT INTO threads (id, kind, title, created_at) VALUES
  ('t1', 'issue', 'A door in the maze', 100), ('t2', 'issue', '', 100), ('t3', 'issue', '', 100),
  ('t4', 'issue', '', 100), ('t5', 'issue', '', 100), ('t6', 'issue', '', 100), ('t7', 'issue', '', 100),
  ('t8', 'issue', '', 100), ('t9', 'issue', '', 100), ('t10', 'issue', '', 100), ('t11', 'issue', '', 100),
  ('t12', 'issue', '', 100);

INSERT INTO journal (thread_id, seq, author_kind, author_name, body, at) VALUES
  ('t1', 1, 'human', 'a person', 'The door does not open.', 100),
  ('t1', 2, 'agent', 'ada', 'It opens now.', 120),
  ('t1', 3, 'human', 'a person', 'It creaks.', 130),
  ('t2', 1, 'human', 'a person', 'Oil it.', 100), ('t2', 2, 'human', 'a person', 'Gently.', 101),
  ('t4', 1, 'human', 'a person', 'Oil it.', 100), ('t6', 1, 'human', 'a person', 'Oil it.', 100),
  ('t11', 1, 'human', 'a person', 'One.', 100), ('t11', 2, 'human', 'a person', 'Two.', 101),
  ('t11', 3, 'human', 'a person', 'Three.', 102), ('t11', 4, 'human', 'a person', 'Four.', 103),
  ('t11', 5, 'human', 'a person', 'Five.', 104);

INSERT INTO lanes (id, agent_id, thread_id, workspace_id, floor_generation, floor_entry,
                   session_native_id, session_directory) VALUES
  ('known',              'ada', 't1',  'ws-known', 0, 0, 'n-known',  '/srv/maze'),
  ('newest-of-its-own',  'ada', 't2',  NULL,       0, 0, 'n-moved',  '/srv/maze'),
  ('disagrees',          'ada', 't3',  NULL,       0, 0, 'n-lost',   '/srv/maze'),
  ('disagrees-but-known','ada', 't4',  NULL,       0, 0, 'n-kept',   '/srv/maze'),
  ('shared-older',       'ada', 't5',  NULL,       0, 0, 'n-shared', '/srv/maze'),
  ('shared-newer',       'ada', 't6',  NULL,       0, 0, 'n-shared', '/srv/maze'),
  ('no-directory',       'ada', 't7',  'ws-no-directory', 0, 0, 'n-nowhere', NULL),
  ('half-a-directory',   'ada', 't8',  NULL,       0, 0, 'n-half',   'maze'),
  ('no-run',             'ada', 't9',  NULL,       0, 0, 'n-"odd"\ü', '/srv/maze'),
  ('only-queued',        'ada', 't10', NULL,       0, 0, 'n-queued', '/srv/maze'),
  ('began-anew',         'ada', 't11', NULL,       2, 4, 'n-anew',   '/srv/maze'),
  ('other-provider',     'bob', 't1',  NULL,       0, 0, 'n-loom',   '/srv/maze'),
  ('ended',              'eve', 't12', NULL,       0, 0, NULL,       NULL);

INSERT INTO workspaces (id, lane_id, kind, machine_id, directory, created_at) VALUES
  ('ws-known', 'known', 'directory', 'laptop', '/srv/maze', 100),
  ('ws-no-directory', 'no-directory', 'directory', 'laptop', '/srv/work', 100);

INSERT INTO runs (id, lane_id, agent_id, runtime_id, state, rank, queued_at, started_at, ended_at, told,
                  session_native_id) VALUES
  ('known-1',    'known',               'ada', 'rt-laptop', 'succeeded', 0, 110, 110, 119, 1, 'n-known'),
  ('known-2',    'known',               'ada', 'rt-laptop', 'succeeded', 0, 130, 130, 139, 3, 'n-known'),
  ('known-3',    'known',               'ada', 'rt-laptop', 'failed',    0, 140, 140, 149, 9, 'n-known'),
  ('known-4',    'known',               'ada', 'unknown',   'lost',      0, 150, 150, 159, 9, 'n-known'),
  ('moved-1',    'newest-of-its-own',   'ada', 'rt-laptop', 'succeeded', 0, 110, 110, 119, 1, 'n-moved'),
  ('moved-2',    'newest-of-its-own',   'ada', 'rt-server', 'succeeded', 0, 120, 120, 129, 2, 'n-moved'),
  ('disagree-1', 'disagrees',           'ada', 'rt-server', 'succeeded', 0, 120, 120, 129, 2, 'n-other'),
  ('kept-0',     'disagrees-but-known', 'ada', 'rt-laptop', 'succeeded', 0, 100, 100, 109, 4, 'n-strange'),
  ('kept-1',     'disagrees-but-known', 'ada', 'rt-laptop', 'succeeded', 0, 110, 110, 119, 1, 'n-kept'),
  ('kept-2',     'disagrees-but-known', 'ada', 'rt-server', 'succeeded', 0, 120, 120, 129, 2, 'n-strange'),
  ('older-1',    'shared-older',        'ada', 'rt-laptop', 'succeeded', 0, 110, 110, 119, 1, 'n-shared'),
  ('newer-1',    'shared-newer',        'ada', 'rt-laptop', 'succeeded', 0, 120, 120, 129, 1, 'n-shared'),
  ('nowhere-1',  'no-directory',        'ada', 'rt-laptop', 'succeeded', 0, 110, 110, 119, 1, 'n-nowhere'),
  ('half-1',     'half-a-directory',    'ada', 'rt-laptop', 'succeeded', 0, 110, 110, 119, 1, 'n-half'),
  ('queued-1',   'only-queued',         'ada', 'rt-laptop', 'queued',    0, 110, NULL, NULL, 0, 'n-queued'),
  ('anew-1',     'began-anew',          'ada', 'rt-laptop', 'succeeded', 0, 110, 110, 119, 5, 'n-anew'),
  ('loom-1',     'other-provider',      'bob', 'rt-laptop', 'succeeded', 0, 110, 110, 119, 1, 'n-loom'),
  ('ended-1',    'ended',               'eve', 'rt-laptop', 'succeeded', 0, 110, 110, 119, 1, 'n-ended');

UPDATE runs SET outcome = 'run:answered' WHERE state = 'succeeded';

UPDATE runs SET outcome = 'run:gave-up' WHERE state = 'failed';

UPDATE runs SET outcome = 'run:lease-lost' WHERE state = 'lost';

INSERT INTO wakes (id, lane_id, thread_id, reason, origin_kind, accepted_at, code, words) VALUES
  ('wake-queued', 'only-queued', 't10', 'comment', 'human', 110, 'accepted:queued', 'It waits.');
