"""Promises about sessions and the journal they have seen: nothing is missing, nothing belongs to another lane."""

from clew.kernel import HELD_BY_AGENT
from clew.store.schema.checks.promise import by_sql, listed
from clew.store.schema.tables import UNKNOWN_RUNTIME

SESSIONS = (
    by_sql(
        "journal-whole",
        "The entries of a thread's journal are numbered from 1, without a gap.",
        """
        SELECT thread_id FROM journal
        GROUP BY thread_id HAVING MIN(seq) <> 1 OR MAX(seq) <> COUNT(DISTINCT seq)
        ORDER BY thread_id
        """,
    ),
    by_sql(
        "session-origin",
        "A session comes from a run of its own lane, or was adopted.",
        """
        SELECT s.id FROM sessions s
        WHERE (s.run_id IS NULL AND s.adopted_at IS NULL)
            OR EXISTS (SELECT 1 FROM runs r WHERE r.id = s.run_id AND r.lane_id <> s.lane_id)
        """,
    ),
    by_sql(
        "session-generations",
        "The generations of a lane, or of a run's own scope, have no gap; only a fresh start may hide the first.",
        """
        SELECT s.lane_id || CASE s.scope_run WHEN '' THEN '' ELSE '/' || s.scope_run END
        FROM sessions s JOIN lanes l ON l.id = s.lane_id
        GROUP BY s.lane_id, s.scope_run, l.floor_generation
        HAVING MAX(s.generation) - MIN(s.generation) + 1 <> COUNT(DISTINCT s.generation)
            OR MIN(s.generation) > 1 + CASE s.scope_run WHEN '' THEN l.floor_generation ELSE 0 END
        ORDER BY s.lane_id, s.scope_run
        """,
    ),
    by_sql(
        "session-native",
        "Exactly one record that is not superseded exists for each native session on a runtime.",
        f"""
        SELECT runtime_id || '/' || native_id FROM sessions
        WHERE runtime_id <> '{UNKNOWN_RUNTIME}'
        GROUP BY runtime_id, native_id HAVING SUM(CASE superseded WHEN 0 THEN 1 ELSE 0 END) <> 1
        ORDER BY runtime_id, native_id
        """,
    ),
    by_sql(
        "session-seen",
        "A session has not seen more entries than the journal has.",
        """
        SELECT s.id FROM sessions s JOIN lanes l ON l.id = s.lane_id
        WHERE s.seen > COALESCE((SELECT MAX(j.seq) FROM journal j WHERE j.thread_id = l.thread_id), 0)
        """,
    ),
    by_sql(
        "session-taken",
        "A session has seen only what it was created with, the prompts that it took, and its own replies to them.",
        f"""
        SELECT s.id FROM sessions s
        WHERE s.seen > s.inherited
            AND s.seen > COALESCE((
                SELECT MAX(r.told) + 1 FROM runs r JOIN sessions o ON o.id = r.session_id
                WHERE o.lane_id = s.lane_id AND o.runtime_id = s.runtime_id AND o.native_id = s.native_id
                    AND r.evidence IN ({listed(HELD_BY_AGENT)})
            ), 0)
            AND s.seen > COALESCE((
                SELECT MAX(r.told) + 1 FROM runs r JOIN sessions o ON o.run_id = r.id
                WHERE o.lane_id = s.lane_id AND o.runtime_id = s.runtime_id AND o.native_id = s.native_id
                    AND r.evidence IN ({listed(HELD_BY_AGENT)})
            ), 0)
        """,
    ),
)
