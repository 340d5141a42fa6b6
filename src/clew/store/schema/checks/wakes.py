"""Promises about wakes: none is lost, none is served by another lane, each ends once and has a reason."""

from clew.kernel import HELD_BY_AGENT, WAKE_ENDS, Carried, Served, WakeState
from clew.store.schema.checks.promise import HAS_ENDED, IS_CARRYING, by_sql, listed

WAKES = (
    by_sql(
        "wake-state",
        "A wake is in exactly one of the known states.",
        f"SELECT id FROM wakes WHERE state NOT IN ({listed(WakeState)})",
    ),
    by_sql(
        "wake-pending",
        "A pending wake has a run in its lane that has not ended and will take it.",
        f"""
        SELECT w.id FROM wakes w
        WHERE w.state = 'pending'
            AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.lane_id = w.lane_id AND NOT r.{HAS_ENDED})
        """,
    ),
    by_sql(
        "wake-claimed",
        "A live run of its own lane carries a claimed wake; a stopping run carries only wakes it is steered with.",
        f"""
        SELECT w.id FROM wakes w
        WHERE w.state = 'claimed' AND NOT EXISTS (
            SELECT 1 FROM runs r
            WHERE r.id = w.run_id AND r.lane_id = w.lane_id
                AND (r.{IS_CARRYING} OR (r.state = 'stopping' AND w.code = '{Carried.STEERING.code}'))
        )
        """,
    ),
    by_sql(
        "wake-served",
        "A served wake was served by a run of its own lane that succeeded, or whose reply was read back later.",
        f"""
        SELECT w.id FROM wakes w
        WHERE w.state = 'served' AND NOT EXISTS (
            SELECT 1 FROM runs r
            WHERE r.id = w.run_id AND r.lane_id = w.lane_id
                AND (r.state = 'succeeded' OR w.code = '{Served.READ_BACK.code}')
        )
        """,
    ),
    by_sql(
        "wake-taken",
        "A served wake was taken by its agent: its run has a reply, or evidence from the agent's own store.",
        f"""
        SELECT w.id FROM wakes w JOIN runs r ON r.id = w.run_id
        WHERE w.state = 'served' AND r.evidence NOT IN ({listed(HELD_BY_AGENT)})
        """,
    ),
    by_sql(
        "wake-end",
        "A wake has a reason for its state; it has an end time if and only if it has ended.",
        f"""
        SELECT id FROM wakes
        WHERE code = '' OR words = '' OR (state IN ({listed(WAKE_ENDS)})) <> (ended_at IS NOT NULL)
        """,
    ),
    by_sql(
        "wake-thread",
        "A wake has the same thread as its lane.",
        "SELECT w.id FROM wakes w JOIN lanes l ON l.id = w.lane_id WHERE w.thread_id <> l.thread_id",
    ),
    by_sql(
        "wake-entry",
        "The entry that a wake is to answer is in the journal.",
        """
        SELECT w.id FROM wakes w
        WHERE w.entry > COALESCE((SELECT MAX(j.seq) FROM journal j WHERE j.thread_id = w.thread_id), 0)
        """,
    ),
)
