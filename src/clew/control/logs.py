"""Logs from a position onwards, for live streams. `list_events` is the page of one run's log."""

from collections.abc import Mapping

from clew.control.actor import Actor
from clew.control.services import Services
from clew.protocol.live import LogHead, LogPage, LogPosition, LogScope
from clew.store.queries import logs as queries


async def log_head(services: Services, actor: Actor, scope: LogScope) -> LogHead:
    """Where the logs of a thread or a run end now."""
    return await services.read(lambda tx: queries.log_head(tx, scope))


async def read_log(
    services: Services, actor: Actor, scope: LogScope, after: LogPosition, upto: LogPosition | None, most: int
) -> LogPage:
    """The next lines after a position, and up to another where one is given."""
    return await services.read(lambda tx: queries.read_log(tx, scope, after, upto, most))


async def positions_of(services: Services, actor: Actor, lines: Mapping[int, int]) -> Mapping[str, LogPosition]:
    """The positions of which a client gives run numbers with the last line of each, by thread."""
    return await services.read(lambda tx: queries.positions_of(tx, lines))
