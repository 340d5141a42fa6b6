-- The rows of schema 1 with bytes: one file was sent, another was not.

INSERT INTO files (id, name, kind, size, digest, content, owner, created_at, thread_id) VALUES
  ('fl-1', 'abc.txt', 'text/plain', 3, 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
   CAST('abc' AS BLOB), 'a person', 99, 't1'),
  ('fl-2', 'abc.txt', 'text/plain', 3, 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
   CAST('abc' AS BLOB), 'a person', 99, NULL);
