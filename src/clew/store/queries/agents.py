"""Agents as views. Their runs are counted from those that have not ended, so a long history costs nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection, bindparam, func, select, text

from clew.kernel import AgentId, AgentState, RuntimeId, own_thread
from clew.protocol.machine import AgentProgram
from clew.protocol.views import AgentView, Mode, Rhythm
from clew.store.engine.statement import Row, Statement
from clew.store.faults import NoSuchAgent
from clew.store.operations.policies import across_accounts, damaged_settings
from clew.store.operations.rows import read_program
from clew.store.operations.schedules import schedule_of
from clew.store.queries.refs import RUNTIME_NAME, runtime_ref
from clew.store.queries.threads import ref_of_lane
from clew.store.schema.tables import NOT_ENDED, agents, machines, runs, runtimes, schedules

MOST = 1000


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """What a use case has to know of an agent. `registered` is the key of its program as its machine registered it, ""
    for an agent of an older database; `policy` is the kernel's, as JSON."""

    id: AgentId
    name: str
    provider: str
    state: AgentState
    mode: str
    runtime: RuntimeId | None
    registered: str
    policy: str
    settings: str
    missing: str = ""
    """Why its program cannot be started."""

    @property
    def damage(self) -> str:
        return damaged_settings(self.settings, self.policy)

    @property
    def program(self) -> AgentProgram:
        return read_program(self.settings, self.provider)


_placed = agents.outerjoin(runtimes, runtimes.c.id == agents.c.runtime_id).outerjoin(
    machines, machines.c.id == runtimes.c.machine_id
)

_all_agents = Statement(
    lambda _: select(agents, *RUNTIME_NAME).select_from(_placed).order_by(agents.c.name).limit(MOST)
)

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

_agent = Statement(
    lambda _: select(agents, *RUNTIME_NAME).select_from(_placed).where(agents.c.id == bindparam("agent"))
)
_schedule = Statement(lambda _: select(schedules).where(schedules.c.id == bindparam("schedule")))


def list_agents(connection: Connection) -> tuple[AgentView, ...]:
    counts = count_runs(connection, "agent_id")
    return tuple(_view(connection, row, counts) for row in _all_agents.rows(connection))


def agent_records(connection: Connection) -> tuple[AgentRecord, ...]:
    return tuple(map(agent_record, _all_agents.rows(connection)))


def read_agent(connection: Connection, agent: str) -> AgentRecord | None:
    row = _agent.first(connection, agent=agent)
    return None if row is None else agent_record(row)


def show_agent(connection: Connection, agent: str) -> AgentView:
    row = _agent.first(connection, agent=agent)
    if row is None:
        raise NoSuchAgent(f"There is no agent {agent}.", "See them with `clew agent list`.")
    return _view(connection, row, count_runs(connection, "agent_id"))


def agent_record(row: Row) -> AgentRecord:
    return AgentRecord(
        id=AgentId(row["id"]),
        name=row["name"],
        provider=row["provider"],
        state=AgentState(row["state"]),
        mode=row["mode"],
        runtime=None if row["runtime_id"] is None else RuntimeId(row["runtime_id"]),
        registered=row["program"],
        policy=row["policy"],
        settings=row["settings"],
        missing=row["missing"] or "",
    )


def count_runs(connection: Connection, by: str) -> dict[str, tuple[int, int]]:
    """How many runs of each agent (`agent_id`) or runtime (`runtime_id`) are live, and how many wait."""
    counted: dict[str, tuple[int, int]] = {}
    for row in going.rows(connection):
        live, waiting = counted.get(row[by], (0, 0))
        counted[row[by]] = (live + row["live"], waiting + row["not_ended"] - row["live"])
    return counted


def read_heartbeat(connection: Connection, agent: AgentId) -> Rhythm | None:
    row = _schedule.first(connection, schedule=schedule_of(agent))
    if row is None:
        return None
    thread = ref_of_lane(connection, row["lane_id"])
    return Rhythm(
        every=row["every"],
        cron=row["cron"],
        zone=row["zone"],
        isolated=bool(row["isolated"]),
        thread=None if thread is None or thread[0] == own_thread(agent) else thread[1],
        next_at=row["next_due"] if row["enabled"] else None,
        last_at=row["last_due"],
        fault=row["fault"],
    )


def _view(connection: Connection, row: Row, counts: Mapping[str, tuple[int, int]]) -> AgentView:
    program = read_program(row["settings"], row["provider"])
    live, waiting = counts.get(row["id"], (0, 0))
    return AgentView(
        id=row["id"],
        name=row["name"],
        state="damaged" if damaged_settings(row["settings"], row["policy"]) else row["state"],
        provider=row["provider"],
        model=row["model"],
        mode=cast(Mode, row["mode"]),
        instructions=row["instructions"],
        program=program.program,
        options=program.options,
        home_variables=program.home,
        environment_names=tuple(sorted(program.environment)),
        most=row["max_live"],
        home=row["home"],
        runtime=row["runtime_id"],
        live=live,
        waiting=waiting,
        heartbeat=read_heartbeat(connection, AgentId(row["id"])),
        across_accounts=across_accounts(row["policy"]),
        missing=row["missing"] or "",
        place=runtime_ref(row),
    )
