"""Agents, projects and runtimes as they are shown. There are few of them; what goes on is counted from what has not
ended, whatever was before."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, select, text

from clew.store.engine.clock import now
from clew.store.engine.statement import Row, Statement
from clew.store.schema.tables import NOT_ENDED, UNKNOWN_RUNTIME, agents, machines, projects, runs, runtimes, schedules

MOST = 1000

all_agents = Statement(lambda _: select(agents).order_by(agents.c.name).limit(MOST))
all_projects = Statement(lambda _: select(projects).order_by(projects.c.name).limit(MOST))

going = Statement(
    lambda _: (
        select(
            runs.c.agent_id,
            runs.c.runtime_id,
            func.count(runs.c.lease_until).label("live"),
            func.count().label("not_ended"),
        )
        .where(text(f"runs.{NOT_ENDED}"))
        .group_by(runs.c.agent_id, runs.c.runtime_id)
    )
)

_agent = Statement(lambda _: select(agents).where(agents.c.id == bindparam("agent")))
_schedule = Statement(lambda _: select(schedules).where(schedules.c.id == bindparam("schedule")))

_runtimes = Statement(
    lambda _: (
        select(runtimes, machines.c.name.label("machine_name"), now().label("now"))
        .join(machines, machines.c.id == runtimes.c.machine_id)
        .where(runtimes.c.id != UNKNOWN_RUNTIME)
        .order_by(runtimes.c.provider, runtimes.c.home)
        .limit(MOST)
    )
)

_runtime = Statement(lambda _: select(runtimes).where(runtimes.c.id == bindparam("runtime")))


def list_agents(connection: Connection) -> Sequence[Row]:
    return all_agents.rows(connection)


def read_agent(connection: Connection, agent: str) -> Row | None:
    return _agent.first(connection, agent=agent)


def list_projects(connection: Connection) -> Sequence[Row]:
    return all_projects.rows(connection)


def list_runtimes(connection: Connection) -> Sequence[Row]:
    return _runtimes.rows(connection)


def read_runtime(connection: Connection, runtime: str) -> Row | None:
    return _runtime.first(connection, runtime=runtime)


def count_going(connection: Connection, by: str) -> dict[str, tuple[int, int]]:
    """How many runs of each agent or runtime go, and how many wait."""
    counted: dict[str, tuple[int, int]] = {}
    for row in going.rows(connection):
        live, waiting = counted.get(row[by], (0, 0))
        counted[row[by]] = (live + row["live"], waiting + row["not_ended"] - row["live"])
    return counted


def read_schedule(connection: Connection, schedule: str) -> Row | None:
    return _schedule.first(connection, schedule=schedule)
