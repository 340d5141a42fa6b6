"""Runtimes as views: each provider in each home that a machine registered."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from clew.kernel import Heard, MachineId, Patience, Presence, RunId, RunState, RuntimeId, presence
from clew.protocol.views import RuntimeView
from clew.store.engine.dialect import among, now
from clew.store.engine.statement import Row, Statement
from clew.store.operations.runtimes import accounts_there
from clew.store.queries.agents import count_runs
from clew.store.schema.tables import UNKNOWN_RUNTIME, machines, runs, runtimes

MOST = 1000


@dataclass(frozen=True, slots=True)
class RuntimeRecord:
    id: RuntimeId
    machine: MachineId
    provider: str
    home: str


@dataclass(frozen=True, slots=True)
class RunHolder:
    """The runtime that has a run, and the run's attempt there."""

    run: RunId
    attempt: int
    state: RunState
    runtime: RuntimeRecord


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

of_runs = Statement(
    lambda dialect: (
        select(runtimes, runs.c.id.label("run"), runs.c.attempt, runs.c.state)
        .join(runs, runs.c.runtime_id == runtimes.c.id)
        .where(among(dialect, runs.c.id, "runs"))
    )
)


def list_runtimes(connection: Connection) -> tuple[RuntimeView, ...]:
    counts = count_runs(connection, "runtime_id")
    accounts = accounts_there(connection)
    return tuple(
        _view(row, counts.get(row["id"], (0, 0)), accounts.get(row["id"], ())) for row in _all.rows(connection)
    )


def runtime_records(connection: Connection) -> tuple[RuntimeRecord, ...]:
    return tuple(map(_record, _all.rows(connection)))


def read_runtime(connection: Connection, runtime: str) -> RuntimeRecord | None:
    row = _one.first(connection, runtime=runtime)
    return None if row is None else _record(row)


def read_holders(connection: Connection, wanted: Collection[RunId]) -> tuple[RunHolder, ...]:
    """Runs that wait for any runtime are left out."""
    return tuple(
        RunHolder(RunId(row["run"]), row["attempt"], RunState(row["state"]), _record(row))
        for row in of_runs.rows(connection, runs=list(wanted))
    )


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
