"""Schema 2: the pointer of a lane becomes a session.

A pointer does not say on which runtime its session was made. Only a run that was in that very session knows; without
such a run the runtime stays unknown, and the session is not resumed. The newest run of the lane is no proof: it may
have been in another session.

Both steps call it: `pre`, while servers of schema 1 still write pointers, and `post`, when none is left.
"""

import json
from typing import Any

from sqlalchemy import Connection, RowMapping, text

UNKNOWN = "unknown"


def take_over(connection: Connection) -> None:
    """Append a session for every pointer that has none. Sessions taken over by an earlier call stay as they are."""
    connection.execute(_LEAVE_BEHIND)
    at: float = connection.exec_driver_sql(_NOW[connection.dialect.name]).scalar_one()
    earlier = connection.execute(_SESSIONS).mappings().all()
    held = {(row["runtime_id"], row["native_id"]) for row in earlier}
    newest_first: dict[str, list[RowMapping]] = {}
    for row in earlier:
        if not row["scope_run"]:
            newest_first.setdefault(row["lane_id"], []).append(row)
    # _POINTERS sorts by the newest run: of two lanes that point at one session, the one with the newer run keeps it.
    for pointer in connection.execute(_POINTERS).mappings().all():
        own = newest_first.get(pointer["lane"], [])
        runtime = _runtime(pointer, held)
        if _adds_nothing(pointer, runtime, own):
            continue
        held.add((runtime, pointer["native_id"]))
        generation = max(own[0]["generation"] if own else 0, pointer["floor_generation"]) + 1
        session = _session(pointer, runtime, generation, at)
        connection.execute(_APPEND, session)
        connection.execute(_SUPERSEDE, session)
    connection.execute(_NAME_IN_RUNS)


def _runtime(pointer: RowMapping, held: set[tuple[str, str]]) -> str:
    """The runtime of a run that was in the session; unknown where that would be a guess."""
    runtime: str | None = pointer["runtime"] if pointer["was_in_it"] else None
    # Without an absolute directory a resume could land in the wrong one.
    if runtime is None or not _is_whole(pointer["directory"]):
        return UNKNOWN
    # A session belongs to one lane. The other lane starts a new session, which is given the journal.
    return UNKNOWN if (runtime, pointer["native_id"]) in held else runtime


def _adds_nothing(pointer: RowMapping, runtime: str, own: list[RowMapping]) -> bool:
    """Whether the lane has this session already. If its runtime has become known since, it is appended again."""
    same = next((row for row in own if row["native_id"] == pointer["native_id"]), None)
    if same is None:
        return False
    learnt = same["runtime_id"] == UNKNOWN and runtime != UNKNOWN
    return not (learnt and same is own[0])


def _session(pointer: RowMapping, runtime: str, generation: int, at: float) -> dict[str, Any]:
    was_in_it, is_known = bool(pointer["was_in_it"]), runtime != UNKNOWN
    provider = (was_in_it and pointer["provider"]) or pointer["agent_provider"]
    accounts = ((pointer["provider"], pointer["account"]), (pointer["next_provider"], pointer["next_account"]))
    places = (pointer["directory"], pointer["workspace"], pointer["home"])
    begins = pointer["floor_entry"]
    return {
        "id": f"pt{generation}_{pointer['lane']}",
        "lane": pointer["lane"],
        "generation": generation,
        "provider": provider,
        "runtime": runtime,
        "native_id": pointer["native_id"],
        "cursor": json.dumps({"v": 1, "id": pointer["native_id"], "extra": ""}, ensure_ascii=False),
        # The lane's workspace or its agent's home stand in: NOT NULL needs a value, and no resume will use it.
        "directory": next(filter(_is_whole, places), "/"),
        # The account that worked in the lane last, or would work in it next: no other account may be given its history.
        "account": next((account for owner, account in accounts if owner == provider), None),
        "begins": begins,
        # Only a run that succeeded proves what the session has seen. Seeing an entry twice is better than never.
        "seen": max(begins, pointer["told"]) if is_known else begins,
        "run": pointer["run"] if was_in_it else None,
        "adopted_at": None if was_in_it else at,
        "born_at": pointer["born_at"] if was_in_it else at,
    }


def _is_whole(directory: str | None) -> bool:
    return directory is not None and directory.startswith("/")


_NOW = {
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
}

# Each pointer with the one run of its lane that proves most: a run in that session on a known runtime, else a run in
# that session, else any run; the newest of these. A run that never started was in no session.
_POINTERS = text("""
WITH ran AS (
  SELECT runs.lane_id, runs.id AS run, runs.started_at, runtimes.id AS runtime, runtimes.provider, runtimes.account,
         CASE WHEN runs.session_native_id = lanes.session_native_id THEN 1 ELSE 0 END AS was_in_it,
         min(runs.started_at) OVER same AS born_at,
         max(CASE WHEN runs.state = 'succeeded' THEN runs.told ELSE 0 END) OVER same AS told
    FROM runs
    JOIN lanes ON lanes.id = runs.lane_id
    LEFT JOIN runtimes ON runtimes.id = runs.runtime_id AND runtimes.id <> 'unknown'
   WHERE runs.started_at IS NOT NULL AND lanes.session_native_id <> ''
  WINDOW same AS (PARTITION BY runs.lane_id, runs.session_native_id, runs.runtime_id)
), ranked AS (
  SELECT ran.*, row_number() OVER (
           PARTITION BY lane_id ORDER BY was_in_it DESC, runtime IS NULL, started_at DESC, run DESC) AS place
    FROM ran
)
SELECT lanes.id AS lane, lanes.session_native_id AS native_id, lanes.session_directory AS directory,
       lanes.floor_generation, lanes.floor_entry, workspaces.directory AS workspace,
       agents.home, agents.provider AS agent_provider,
       upcoming.provider AS next_provider, upcoming.account AS next_account,
       run, runtime, ranked.provider, ranked.account, was_in_it, born_at, told
  FROM lanes
  JOIN agents ON agents.id = lanes.agent_id
  LEFT JOIN workspaces ON workspaces.id = lanes.workspace_id
  LEFT JOIN runtimes AS upcoming ON upcoming.id = coalesce(lanes.runtime_id, agents.runtime_id)
  LEFT JOIN ranked ON ranked.lane_id = lanes.id AND ranked.place = 1
 WHERE lanes.session_native_id <> ''
 ORDER BY coalesce(ranked.started_at, 0) DESC, lanes.id
""")

_SESSIONS = text("""
SELECT lane_id, scope_run, generation, native_id, runtime_id FROM sessions ORDER BY generation DESC
""")

_APPEND = text("""
INSERT INTO sessions (id, lane_id, generation, provider, runtime_id, native_id, cursor, directory, account,
                      begins, seen, run_id, adopted_at, born_at)
VALUES (:id, :lane, :generation, :provider, :runtime, :native_id, :cursor, :directory, :account,
        :begins, :seen, :run, :adopted_at, :born_at)
""")

_SUPERSEDE = text("""
UPDATE sessions SET superseded = 1
 WHERE lane_id = :lane AND scope_run = '' AND native_id = :native_id AND generation < :generation
""")

# The lane's floor rises above a session that was taken over and that the lane no longer points at: an upgrade in one
# go would not have known that session.
_LEFT = """
(SELECT max(sessions.generation) FROM sessions
  WHERE sessions.lane_id = lanes.id AND sessions.id = 'pt' || sessions.generation || '_' || lanes.id
    AND sessions.native_id <> coalesce(lanes.session_native_id, ''))
"""
_LEAVE_BEHIND = text(f"UPDATE lanes SET floor_generation = {_LEFT} WHERE floor_generation < {_LEFT}")

_NAME_IN_RUNS = text("""
UPDATE runs SET session_id = (
       SELECT sessions.id FROM sessions
        WHERE sessions.lane_id = runs.lane_id AND sessions.scope_run = ''
          AND sessions.native_id = runs.session_native_id
        ORDER BY sessions.generation DESC LIMIT 1)
 WHERE session_id IS NULL AND session_native_id <> '' AND started_at IS NOT NULL
""")
