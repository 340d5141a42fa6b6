"""The lines of one run's log, as views."""

from sqlalchemy import Connection, bindparam, select

from clew.protocol.views import EventView
from clew.store.engine.statement import Row, Statement
from clew.store.operations.rows import read_object
from clew.store.queries.spoken import spoken
from clew.store.schema.tables import events

log_of_run = Statement(
    lambda _: (
        select(events)
        .where(events.c.run_id == bindparam("run"), events.c.seq > bindparam("after"))
        .order_by(events.c.seq)
        .limit(bindparam("most"))
    )
)

end_of_log = Statement(
    lambda _: (
        select(events).where(events.c.run_id == bindparam("run")).order_by(events.c.seq.desc()).limit(bindparam("most"))
    )
)


def list_events(connection: Connection, run: str, after: int, most: int) -> tuple[EventView, ...]:
    return spoken(connection, tuple(map(read_event, log_of_run.rows(connection, run=run, after=after, most=most))))


def last_events(connection: Connection, run: str, most: int) -> tuple[EventView, ...]:
    """The last lines of a log, in order."""
    return spoken(connection, tuple(map(read_event, reversed(end_of_log.rows(connection, run=run, most=most)))))


def read_event(row: Row) -> EventView:
    """A line of a log. A body that is not a JSON object is shown as plain text."""
    body = read_object(row["body"])
    return EventView(row["seq"], row["kind"], row["at"], {"text": row["body"]} if body is None else body)
