"""Registering a program and its runtime: the same machine, provider and home are the same runtime, however often they
come and whichever program is started there."""

from collections.abc import Sequence

from sqlalchemy import Connection, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import RuntimeId, runtime_id
from clew.protocol.runtimes import Registration
from clew.store.clock import now
from clew.store.dialect import insert
from clew.store.hints import hint_queue
from clew.store.programs import register_program
from clew.store.statement import Statement, among
from clew.store.tables import agents, machines, runs, runtimes


def _take(dialect: str) -> ClauseElement:
    here = (
        select(runtimes.c.id)
        .join(agents, agents.c.provider == runtimes.c.provider)
        .where(agents.c.id == runs.c.agent_id, agents.c.runtime_id.is_(None), among(dialect, runtimes.c.id, "runtimes"))
        .limit(1)
        .scalar_subquery()
    )
    # What waits for a runtime was never claimed, so it waits for nobody else.
    waits = (text("runs.state = 'queued' AND runs.hold <> 'person'"), runs.c.runtime_id.is_(None), here.is_not(None))
    return runs.update().where(*waits).values(runtime_id=here).returning(runs.c.runtime_id)


strays = Statement(_take)


def register_runtime(connection: Connection, registration: Registration) -> RuntimeId:
    """Put or renew it, and note that it was seen. Its sessions are found again by its id. Safe to repeat.

    What the program says of itself is kept with the program; the runtime keeps only what was said there last.
    """
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
    register_program(connection, runtime, registration)
    take_strays(connection, [runtime])
    return runtime


def take_strays(connection: Connection, of: Sequence[RuntimeId]) -> None:
    """What waits for any runtime of its agent's provider, because there was none, has found one of these. Asked for
    again and again: what is queued in the very moment in which a runtime registers is not seen by it."""
    for row in strays.rows(connection, runtimes=list(of)):
        hint_queue(connection, RuntimeId(row["runtime_id"]))
