"""Runtimes as views: each provider in each home that a machine registered."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from clew.kernel import Heard, MachineId, Patience, Presence, RuntimeId, presence
from clew.protocol.views import RuntimeView
from clew.store.engine.dialect import now
from clew.store.engine.statement import Row, Statement
from clew.store.operations.runtimes import accounts_there
from clew.store.queries.agents import count_runs
from clew.store.schema.tables import UNKNOWN_RUNTIME, machines, runtimes

MOST = 1000


@dataclass(frozen=True, slots=True)
class RuntimeRecord:
    id: RuntimeId
    machine: MachineId
    provider: str
    home: str


_all = Statement(
    lambda _: (
        select(runtimes, machines.c.name.label("machine_name"), now().label("now"))
        .join(machines, machines.c.id == runtimes.c.machine_id)
        .where(runtimes.c.id != UNKNOWN_RUNTIME)
        .order_by(runtimes.c.provider, runtimes.c.home)
        .limit(MOST)
    )
)
_one = Statement(lambda _: select(runtimes).where(runtimes.c.id == bindparam("runtime")))


def list_runtimes(connection: Connection) -> tuple[RuntimeView, ...]:
    counts = count_runs(connection, "runtime_id")
    accounts = accounts_there(connection)
    return tuple(
        _view(row, counts.get(row["id"], (0, 0)), accounts.get(row["id"], ())) for row in _all.rows(connection)
    )


def runtime_records(connection: Connection) -> tuple[RuntimeRecord, ...]:
    return tuple(map(_record, _all.rows(connection)))


def runtime_names(connection: Connection) -> dict[str, str]:
    """Each runtime as people know it, by its id: its home, provider and machine."""
    return {row["id"]: f"{row['home']} ({row['provider']} on {row['machine_name']})" for row in _all.rows(connection)}


def read_runtime(connection: Connection, runtime: str) -> RuntimeRecord | None:
    row = _one.first(connection, runtime=runtime)
    return None if row is None else _record(row)


def _record(row: Row) -> RuntimeRecord:
    return RuntimeRecord(RuntimeId(row["id"]), MachineId(row["machine_id"]), row["provider"], row["home"])


def _view(row: Row, counts: tuple[int, int], accounts: tuple[str, ...]) -> RuntimeView:
    live, waiting = counts
    return RuntimeView(
        id=row["id"],
        machine=row["machine_name"],
        provider=row["provider"],
        home=row["home"],
        accounts=accounts,
        online=presence(Heard(row["seen_at"] or 0.0), row["now"], Patience()) is Presence.ONLINE,
        seen_at=row["seen_at"],
        live=live,
        most=row["max_live"],
        waiting=waiting,
    )
