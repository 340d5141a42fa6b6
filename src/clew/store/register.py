"""Registering a runtime: the same machine, provider and home are the same runtime, however often they come."""

from sqlalchemy import Connection, bindparam, select, text

from clew.kernel import RuntimeId, runtime_id
from clew.store.clock import now
from clew.store.dialect import insert
from clew.store.hints import hint_queue
from clew.store.statement import Statement
from clew.store.tables import agents, machines, runs, runtimes
from clew.wire.runtimes import Registration

_take_strays = Statement(
    lambda _: (
        runs.update()
        .where(
            text("runs.state = 'queued'"),
            runs.c.runtime_id.is_(None),
            runs.c.agent_id.in_(
                select(agents.c.id).where(agents.c.provider == bindparam("provider"), agents.c.runtime_id.is_(None))
            ),
        )
        .values(runtime_id=bindparam("runtime"))
    )
)


def register_runtime(connection: Connection, registration: Registration) -> RuntimeId:
    """Put or renew it, and note that it was seen. Its sessions are found again by its id. Safe to repeat."""
    runtime = runtime_id(registration.machine, registration.provider, registration.home)
    machine = insert(connection, machines).values(
        id=registration.machine, name=registration.machine_name, root=registration.root, seen_at=now()
    )
    connection.execute(
        machine.on_conflict_do_update(
            index_elements=[machines.c.id],
            set_={"name": registration.machine_name, "root": registration.root, "seen_at": now()},
        )
    )
    said = {
        "account": registration.account,
        "capabilities": registration.capabilities,
        "max_live": registration.max_live,
        "seen_at": now(),
    }
    row = insert(connection, runtimes).values(
        id=runtime,
        machine_id=registration.machine,
        provider=registration.provider,
        home=registration.home,
        **said,
    )
    connection.execute(row.on_conflict_do_update(index_elements=[runtimes.c.id], set_=said))
    # What waited for any runtime of this provider has found one.
    taken = _take_strays.count(connection, runtime=runtime, provider=registration.provider)
    if taken:
        hint_queue(connection, runtime)
    return runtime
