"""The world of the state machine: three agents, two runtimes, three daemons, and a few threads."""

import json

from sqlalchemy import Connection, insert

from clew.kernel import (
    AdmissionPolicy,
    AgentId,
    Capabilities,
    MachineId,
    PermissionMode,
    ProviderName,
    RetryPolicy,
    RouteKey,
    RouteKind,
    RuntimeId,
    ThreadId,
    capabilities_to_record,
    lane_id,
    runtime_id,
)
from clew.store.schema.tables import agents, lanes, machines, runtimes, schedules, threads
from tests.store.kit import empty

ADA, BOB, CYD = AgentId("ada"), AgentId("bob"), AgentId("cyd")
THREADS = (ThreadId("issue-7"), ThreadId("issue-8"))
NEAR = runtime_id(MachineId("laptop"), ProviderName("loom"), "/srv/near")
FAR = runtime_id(MachineId("laptop"), ProviderName("loom"), "/srv/far")

AGENTS: dict[AgentId, tuple[RuntimeId, int]] = {ADA: (NEAR, 1), BOB: (NEAR, 2), CYD: (FAR, 2)}
"""Where each agent works, and how many of its runs may go at once."""

RUNTIMES: dict[RuntimeId, int] = {NEAR: 2, FAR: 2}
DAEMONS: dict[str, tuple[RuntimeId, ...]] = {"d1": (NEAR,), "d2": (NEAR, FAR), "d3": (FAR,)}

SCHEDULE = "sc-1"
TIMED = (CYD, THREADS[0])
ROUTE = RouteKey(RouteKind.THREAD, "issue-7")

NO_FLOOD = AdmissionPolicy(flood_limit=10**9)
RETRIES = RetryPolicy(max_tries=3, base=1e6, cap=1e9, longest_hold=1e12)
"""What is put off is put off for days, so that only the machine's own clock brings it back."""

FAR_OFF = 1e11
"""An instant that no test lives to see."""

ABLE = Capabilities(
    resume=True, reapply_mode=True, hears=True, modes=frozenset(PermissionMode), missing_signals=frozenset({"gone"})
)


def furnish(connection: Connection) -> None:
    """Everything of the last example goes, and the world stands as it was in the beginning."""
    empty(connection)
    connection.execute(insert(machines).values(id="laptop", name="laptop"))
    able = json.dumps(capabilities_to_record(ABLE))
    for (runtime, most), home in zip(RUNTIMES.items(), ("/srv/near", "/srv/far"), strict=True):
        connection.execute(
            insert(runtimes).values(
                id=runtime, machine_id="laptop", provider="loom", home=home, max_live=most, capabilities=able
            )
        )
    for agent, (runtime, most) in AGENTS.items():
        connection.execute(
            insert(agents).values(
                id=agent, name=agent, provider="loom", runtime_id=runtime, home=f"/srv/{agent}", max_live=most
            )
        )
    for thread in THREADS:
        connection.execute(insert(threads).values(id=thread, kind="issue", created_at=0.0))
    connection.execute(insert(lanes).values(id=lane_id(*TIMED), agent_id=TIMED[0], thread_id=TIMED[1]))
    connection.execute(
        insert(schedules).values(
            id=SCHEDULE,
            lane_id=lane_id(*TIMED),
            every=1e10,
            next_due=FAR_OFF,
            route=json.dumps([ROUTE.kind.value, ROUTE.address]),
        )
    )
