"""Promises about runs: one at a time in a lane, never two in one place, and each has what its state requires."""

from clew.kernel import RunState
from clew.store.schema.checks.promise import HAS_ENDED, IS_CARRYING, IS_LIVE, by_sql, listed
from clew.store.schema.tables import UNKNOWN_RUNTIME

RUNS = (
    by_sql(
        "run-state",
        "A run is in exactly one of the known states.",
        f"SELECT id FROM runs WHERE state NOT IN ({listed(RunState)})",
    ),
    by_sql(
        "run-live",
        "A live run has a lease, a runtime, and a place of its agent and of its runtime; no other run has a lease.",
        f"""
        SELECT id FROM runs
        WHERE ({IS_LIVE}) <> (lease_until IS NOT NULL)
            OR ({IS_LIVE} AND (agent_place IS NULL OR runtime_place IS NULL OR runtime_id IS NULL))
        """,
    ),
    by_sql(
        "run-carries",
        "A live run carries a wake, unless it is being stopped.",
        f"""
        SELECT r.id FROM runs r
        WHERE r.{IS_CARRYING}
            AND NOT EXISTS (SELECT 1 FROM wakes w WHERE w.run_id = r.id AND w.state = 'claimed')
        """,
    ),
    by_sql(
        "run-queued",
        "A queued run has a pending wake in its lane.",
        """
        SELECT r.id FROM runs r
        WHERE r.state = 'queued'
            AND NOT EXISTS (SELECT 1 FROM wakes w WHERE w.lane_id = r.lane_id AND w.state = 'pending')
        """,
    ),
    by_sql(
        "run-where",
        "A queued run waits on the runtime that its lane is set to.",
        """
        SELECT r.id FROM runs r JOIN lanes l ON l.id = r.lane_id
        WHERE r.state = 'queued' AND l.runtime_id <> COALESCE(r.runtime_id, '')
        """,
    ),
    by_sql(
        "run-end",
        "A run that has ended has an end time and an outcome; no other run has an end time.",
        f"""
        SELECT id FROM runs
        WHERE ({HAS_ENDED}) <> (ended_at IS NOT NULL) OR ({HAS_ENDED} AND COALESCE(outcome, '') = '')
        """,
    ),
    by_sql(
        "run-alone",
        "A lane has at most one run that has not ended.",
        f"SELECT lane_id FROM runs WHERE NOT ({HAS_ENDED}) GROUP BY lane_id HAVING COUNT(*) > 1 ORDER BY lane_id",
    ),
    by_sql(
        "run-place",
        "No two live runs have the same place of an agent or of a runtime.",
        f"""
        WITH live AS MATERIALIZED (SELECT * FROM runs WHERE {IS_LIVE})
        SELECT one.id FROM live one
        WHERE EXISTS (
            SELECT 1 FROM live other
            WHERE other.id <> one.id AND (
                (other.agent_id = one.agent_id AND other.agent_place = one.agent_place)
                OR (other.runtime_id = one.runtime_id AND other.runtime_place = one.runtime_place)
            )
        )
        ORDER BY one.id
        """,
    ),
    by_sql(
        "run-agent",
        "A run has the same agent as its lane.",
        "SELECT r.id FROM runs r JOIN lanes l ON l.id = r.lane_id WHERE r.agent_id <> l.agent_id",
    ),
    by_sql(
        "run-session",
        "A run is in a session of its own lane; a live run is in one of its own runtime.",
        f"""
        SELECT r.id FROM runs r JOIN sessions s ON s.id = r.session_id
        WHERE r.lane_id <> s.lane_id
            OR (r.{IS_LIVE} AND s.runtime_id NOT IN ('{UNKNOWN_RUNTIME}', r.runtime_id))
        """,
    ),
    by_sql(
        "run-session-alone",
        "No two live runs are in one session.",
        f"""
        SELECT session_id FROM runs WHERE session_id IS NOT NULL AND {IS_LIVE}
        GROUP BY session_id HAVING COUNT(*) > 1 ORDER BY session_id
        """,
    ),
    by_sql(
        "run-decision",
        "A claimed run has the decision of its attempt on record.",
        """
        SELECT r.id FROM runs r
        WHERE r.attempt > 0 AND NOT EXISTS (
            SELECT 1 FROM decisions d WHERE d.run_id = r.id AND d.attempt = r.attempt AND d.step = 0
        )
        """,
    ),
    by_sql(
        "approval-live",
        "A pending approval belongs to a live run.",
        f"""
        SELECT a.id FROM approvals a JOIN runs r ON r.id = a.run_id
        WHERE a.state = 'pending' AND NOT (r.{IS_LIVE})
        """,
    ),
    by_sql(
        "delivery-ended",
        "A delivery belongs to a run that has ended.",
        f"SELECT d.id FROM deliveries d JOIN runs r ON r.id = d.run_id WHERE NOT (r.{HAS_ENDED})",
    ),
    by_sql(
        "schedule-due",
        "An enabled schedule has a next due time.",
        "SELECT id FROM schedules WHERE enabled = 1 AND next_due IS NULL",
    ),
)
