"""Promises about wakes, runs and sessions: each is a name, a sentence, and a query for the rows that break it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from clew.kernel import HELD_BY_AGENT, LIVE, RUN_ENDS, WAKE_ENDS, Carried, RunState, Served, WakeState
from clew.store.schema.tables import UNKNOWN_RUNTIME

Question = Callable[[Connection], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Promise:
    """`words` says what always holds; `broken` yields the names of the rows that break it."""

    name: str
    words: str
    broken: Question


def by_sql(name: str, words: str, sql: str) -> Promise:
    """A promise checked by one SELECT of one column, the names of the rows. The SQL must be valid on both databases."""

    def broken(connection: Connection) -> Iterable[str]:
        return (str(row[0]) for row in connection.exec_driver_sql(sql))

    return Promise(name, words, broken)


def listed(values: Iterable[str]) -> str:
    """The values of a closed set as SQL literals, for IN (…)."""
    return ", ".join(f"'{value}'" for value in sorted(values))


# The states of a run as conditions. They test the state only: whether the other columns agree is what is checked.
_IS_LIVE = f"state IN ({listed(LIVE)})"
_IS_CARRYING = f"state IN ({listed(LIVE - {RunState.STOPPING})})"
_HAS_ENDED = f"state IN ({listed(RUN_ENDS)})"


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
            AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.lane_id = w.lane_id AND NOT r.{_HAS_ENDED})
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
                AND (r.{_IS_CARRYING} OR (r.state = 'stopping' AND w.code = '{Carried.STEERING.code}'))
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
    by_sql(
        "wake-standing",
        "No agent is asked for an entry that was replaced or taken back.",
        """
        SELECT w.id FROM wakes w JOIN journal j ON j.thread_id = w.thread_id AND j.replaces = w.entry
        WHERE w.state IN ('pending', 'claimed', 'served')
        """,
    ),
)


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
        WHERE ({_IS_LIVE}) <> (lease_until IS NOT NULL)
            OR ({_IS_LIVE} AND (agent_place IS NULL OR runtime_place IS NULL OR runtime_id IS NULL))
        """,
    ),
    by_sql(
        "run-carries",
        "A live run carries a wake, unless it is being stopped.",
        f"""
        SELECT r.id FROM runs r
        WHERE r.{_IS_CARRYING}
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
        WHERE ({_HAS_ENDED}) <> (ended_at IS NOT NULL) OR ({_HAS_ENDED} AND COALESCE(outcome, '') = '')
        """,
    ),
    by_sql(
        "run-alone",
        "A lane has at most one run that has not ended.",
        f"SELECT lane_id FROM runs WHERE NOT ({_HAS_ENDED}) GROUP BY lane_id HAVING COUNT(*) > 1 ORDER BY lane_id",
    ),
    by_sql(
        "run-place",
        "No two live runs have the same place of an agent or of a runtime.",
        f"""
        WITH live AS MATERIALIZED (SELECT * FROM runs WHERE {_IS_LIVE})
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
            OR (r.{_IS_LIVE} AND s.runtime_id NOT IN ('{UNKNOWN_RUNTIME}', r.runtime_id))
        """,
    ),
    by_sql(
        "run-session-alone",
        "No two live runs are in one session.",
        f"""
        SELECT session_id FROM runs WHERE session_id IS NOT NULL AND {_IS_LIVE}
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
        WHERE a.state = 'pending' AND NOT (r.{_IS_LIVE})
        """,
    ),
    by_sql(
        "delivery-ended",
        "A delivery belongs to a run that has ended.",
        f"SELECT d.id FROM deliveries d JOIN runs r ON r.id = d.run_id WHERE NOT (r.{_HAS_ENDED})",
    ),
    by_sql(
        "schedule-due",
        "An enabled schedule has a next due time.",
        "SELECT id FROM schedules WHERE enabled = 1 AND next_due IS NULL",
    ),
)


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
        "journal-replaces",
        "An entry is replaced or taken back once.",
        """
        SELECT thread_id || '/' || replaces FROM journal WHERE replaces IS NOT NULL
        GROUP BY thread_id, replaces HAVING COUNT(*) > 1
        ORDER BY thread_id, replaces
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
