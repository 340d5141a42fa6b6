"""Where a soak takes place: a few agents on two runtimes, and threads enough that lanes meet and miss each other."""

import json

from sqlalchemy import Connection, Table

from clew.kernel import (
    AgentId,
    Capabilities,
    Patience,
    PermissionMode,
    RetryPolicy,
    RouteKind,
    RuntimeId,
    ThreadId,
    capabilities_to_record,
    lane_id,
)
from clew.store.engine.dialect import insert
from clew.store.schema.tables import agents, lanes, machines, runtimes, schedules, threads
from clew.store.schema.version import PROGRAM, read_version, upgrade

AGENTS = tuple(AgentId(f"agent-{number}") for number in range(4))
THREADS = tuple(ThreadId(f"issue-{number}") for number in range(6))
RUNTIMES = (RuntimeId("rt-1"), RuntimeId("rt-2"))
SCHEDULES = ("sc-0", "sc-1")

PATIENCE = Patience(lease=0.4, offline_after=0.2, grace=0.2)
"""So short that what a killed daemon held comes back within the second."""

RETRIES = RetryPolicy(max_tries=4, base=0.05, cap=0.2, return_within=0.1)

ABLE = Capabilities(resume=True, reapply_mode=True, hears=True, modes=frozenset(PermissionMode))


def prepare(connection: Connection) -> None:
    """The schema and the furniture, as every server finds or makes them when it starts."""
    if read_version(connection).schema < PROGRAM:
        upgrade(connection)
    put: list[tuple[Table, dict[str, object]]] = [(machines, {"id": "laptop", "name": "laptop"})]
    able = json.dumps(capabilities_to_record(ABLE))
    for number, runtime in enumerate(RUNTIMES):
        home = {"machine_id": "laptop", "provider": "loom", "home": f"/srv/{number}", "capabilities": able}
        put.append((runtimes, {"id": runtime, "max_live": 6, **home}))
    for number, agent in enumerate(AGENTS):
        where = {
            "provider": "loom",
            "runtime_id": RUNTIMES[number % 2],
            "home": f"/srv/{agent}",
            "max_live": 1 + number,
        }
        put.append((agents, {"id": agent, "name": agent, **where}))
    put += [(threads, {"id": thread, "kind": "issue", "created_at": 0.0}) for thread in THREADS]
    for number, schedule in enumerate(SCHEDULES):
        agent, thread = AGENTS[number], THREADS[number]
        put.append((lanes, {"id": lane_id(agent, thread), "agent_id": agent, "thread_id": thread}))
        route = json.dumps([RouteKind.THREAD.value, thread])
        rhythm = {"every": 1.0, "next_due": 1.0, "route": route, "isolated": number}
        put.append((schedules, {"id": schedule, "lane_id": lane_id(agent, thread), **rhythm}))
    for table, values in put:
        connection.execute(insert(connection, table).values(**values).on_conflict_do_nothing())
