"""Whether anything is due: asked every second, so it is asked without a write."""

from dataclasses import dataclass

from sqlalchemy import Connection, exists, select, text

from clew.store.approvals import OVERDUE
from clew.store.clock import now
from clew.store.statement import Statement
from clew.store.tables import LIVE, runs, schedules


@dataclass(frozen=True, slots=True)
class Due:
    ticks: bool
    leases: bool
    approvals: bool


looked_for = Statement(
    lambda _: select(
        exists()
        .where(text("schedules.enabled = 1 AND schedules.next_due IS NOT NULL"), schedules.c.next_due <= now())
        .label("ticks"),
        exists().where(text(f"runs.{LIVE}"), runs.c.lease_until <= now()).label("leases"),
        exists().where(*OVERDUE).label("approvals"),
    )
)


def anything_due(connection: Connection) -> Due:
    row = looked_for.first(connection)
    assert row is not None
    return Due(bool(row["ticks"]), bool(row["leases"]), bool(row["approvals"]))
