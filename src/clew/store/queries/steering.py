"""What the agent of a run was told within its turn, as its log has it."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, literal_column, select

from clew.store.engine.statement import Row, Statement
from clew.store.schema.tables import events

KIND = "steer"

of_run = Statement(
    lambda _: (
        select(events.c.seq, events.c.body, events.c.at)
        .where(events.c.run_id == bindparam("run"), events.c.kind == literal_column(f"'{KIND}'"))
        .order_by(events.c.seq)
    )
)


def steers_of(connection: Connection, run: str) -> Sequence[Row]:
    return of_run.rows(connection, run=run)
