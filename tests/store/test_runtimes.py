"""Registering runtimes: an id that changes only with the machine, the provider or the home."""

from dataclasses import replace

import pytest
from sqlalchemy import Connection, select

from clew.kernel import AccountId, MachineId, ProviderName, RuntimeId, runtime_id
from clew.protocol.control import Registration
from clew.store.engine.database import Database
from clew.store.operations.runtimes import register_runtime
from clew.store.schema.tables import machines, runtimes

LAPTOP = Registration(MachineId("m1"), "laptop", ProviderName("loom"), "/srv/home", AccountId("me"), '{"resume": true}')


def register(database: Database, registration: Registration) -> RuntimeId:
    return database.write(lambda connection: register_runtime(connection, registration)).result(30)


def known(connection: Connection) -> list[tuple[str, str | None, str, int]]:
    rows = connection.execute(select(runtimes).where(runtimes.c.id != "unknown").order_by(runtimes.c.home))
    return [(row.home, row.account, row.capabilities, row.max_live) for row in rows]


@pytest.mark.case("R06")
def test_the_same_three_register_as_the_same_runtime(database: Database) -> None:
    first = register(database, LAPTOP)
    assert first == runtime_id(LAPTOP.machine, LAPTOP.provider, LAPTOP.home)
    again = register(database, replace(LAPTOP, machine_name="services", account=AccountId("you"), max_live=2))
    assert again == first
    assert database.read(known) == [("/srv/home", "you", '{"resume": true}', 2)]
    name = select(machines.c.name, machines.c.seen_at).where(machines.c.id == "m1")
    row = database.read(lambda connection: connection.execute(name).one())
    assert (row.name, row.seen_at > 0) == ("services", True)


@pytest.mark.case("R06")
@pytest.mark.parametrize(
    "other",
    [
        replace(LAPTOP, machine=MachineId("m2")),
        replace(LAPTOP, provider=ProviderName("spindle")),
        replace(LAPTOP, home="/srv/other"),
    ],
)
def test_another_machine_provider_or_home_is_another_runtime(database: Database, other: Registration) -> None:
    assert register(database, LAPTOP) != register(database, other)
    assert len(database.read(known)) == 2
