"""Commands that a person allowed an agent in a thread for good: asked for again, they are allowed at once.

An allowance holds only under the permissions it was given under (the agent's mode, the limits of thread and project):
after a change of these a person is asked again.
"""

import orjson
from sqlalchemy import Connection, bindparam, select

from clew.kernel import LaneId, RunId
from clew.store.engine.dialect import storable
from clew.store.engine.statement import Row, Statement
from clew.store.operations.rows import read_object
from clew.store.schema.tables import agents, lanes, projects, runs, threads

_lane = (
    select(
        lanes.c.id,
        lanes.c.allowed,
        agents.c.mode,
        threads.c.mode_limit,
        projects.c.mode_limit.label("project_limit"),
    )
    .select_from(
        runs.join(lanes, lanes.c.id == runs.c.lane_id)
        .join(agents, agents.c.id == lanes.c.agent_id)
        .join(threads, threads.c.id == lanes.c.thread_id)
        .outerjoin(projects, projects.c.id == threads.c.project_id)
    )
    .where(runs.c.id == bindparam("run"))
)
_read = Statement(lambda _: _lane)
# FOR UPDATE of the lane: two allowances that are given at once are both kept.
_locked = Statement(lambda _: _lane.with_for_update(of=lanes))
_write = Statement(lambda _: lanes.update().where(lanes.c.id == bindparam("lane")).values(allowed=bindparam("allowed")))


def remember(connection: Connection, run: RunId, tool: str | None, command: str, by: str) -> None:
    """From now on the run's agent may do this in the run's thread without asking."""
    row = _locked.first(connection, run=run)
    assert row is not None, "an approval has a run, and a run has a lane"
    wanted = {"tool": tool, "command": storable(command), "under": _permissions(row), "by": by}
    kept = [each for each in _allowances(row["allowed"]) if each != wanted]
    _write.count(connection, lane=row["id"], allowed=orjson.dumps([*kept, wanted]).decode())


def allowed_by(connection: Connection, run: RunId, question: str) -> str | None:
    """Who allowed for good what is asked here; None if nobody did, or something else than a command is asked."""
    asked = read_object(question) or {}
    if asked.get("kind") != "approval" or not asked.get("command"):
        return None
    row = _read.first(connection, run=run)
    for each in () if row is None else _allowances(row["allowed"]):
        same = (each.get("tool"), each.get("command")) == (asked.get("tool"), storable(str(asked["command"])))
        if row is not None and same and each.get("under") == _permissions(row):
            return str(each.get("by"))
    return None


def forget(connection: Connection, lane: LaneId) -> None:
    _write.count(connection, lane=lane, allowed="[]")


def commands_in(allowed: str) -> tuple[str, ...]:
    return tuple(str(each.get("command")) for each in _allowances(allowed))


def _allowances(text: str) -> list[dict[str, object]]:
    """What cannot be read allows nothing."""
    try:
        said = orjson.loads(text)
    except ValueError:
        return []
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []


def _permissions(row: Row) -> str:
    return f"{row['mode']}/{row['mode_limit'] or ''}/{row['project_limit'] or ''}"
