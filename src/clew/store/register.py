"""Registering a runtime: the same machine, provider and home are the same runtime, however often they come."""

from dataclasses import dataclass

from sqlalchemy import Connection

from clew.kernel import AccountId, MachineId, ProviderName, RuntimeId, runtime_id
from clew.store.clock import now
from clew.store.dialect import insert
from clew.store.tables import machines, runtimes


@dataclass(frozen=True, slots=True)
class Registration:
    """What a machine says of one provider in one home. `capabilities` is what the provider declared, as JSON."""

    machine: MachineId
    machine_name: str
    provider: ProviderName
    home: str
    account: AccountId | None = None
    capabilities: str = "{}"
    max_live: int = 4


def register_runtime(connection: Connection, registration: Registration) -> RuntimeId:
    """Put or renew it, and note that it was seen. Its sessions are found again by its id. Safe to repeat."""
    runtime = runtime_id(registration.machine, registration.provider, registration.home)
    machine = insert(connection, machines).values(
        id=registration.machine, name=registration.machine_name, seen_at=now()
    )
    connection.execute(
        machine.on_conflict_do_update(
            index_elements=[machines.c.id], set_={"name": registration.machine_name, "seen_at": now()}
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
    return runtime
