"""Runtimes: each provider in each home that a machine has registered, and whether it was heard of lately."""

from sqlalchemy import Connection

from clew.control.desk import Desk
from clew.kernel import Heard, Patience, Presence, presence
from clew.protocol.views import RuntimeView
from clew.store.engine.statement import Row
from clew.store.operations.runtimes import accounts_there
from clew.store.queries import agents as reading


async def list_runtimes(desk: Desk) -> tuple[RuntimeView, ...]:
    def look(connection: Connection) -> tuple[RuntimeView, ...]:
        going = reading.count_going(connection, "runtime_id")
        accounts = accounts_there(connection)
        return tuple(
            _show(row, going.get(row["id"], (0, 0)), accounts.get(row["id"], ()))
            for row in reading.list_runtimes(connection)
        )

    return await desk.read(look)


def _show(row: Row, going: tuple[int, int], accounts: tuple[str, ...]) -> RuntimeView:
    here = presence(Heard(row["seen_at"] or 0.0), row["now"], Patience())
    return RuntimeView(
        id=row["id"],
        machine=row["machine_name"],
        provider=row["provider"],
        home=row["home"],
        accounts=accounts,
        online=here is Presence.ONLINE,
        seen_at=row["seen_at"],
        live=going[0],
        most=row["max_live"],
        waiting=going[1],
    )
