"""Time: due heartbeats make wakes; leases, and what nobody answered in time, are settled. One loop for each server."""

import asyncio
import logging
from functools import partial

from clew.control.services import Services
from clew.kernel import Instant
from clew.ports.fault import Fault
from clew.store.engine.clock import read_clock
from clew.store.operations.approvals import expire_approvals
from clew.store.operations.leases import expire
from clew.store.operations.schedules import anything_due, tick_due

EVERY = 1.0
"""Seconds between two looks."""

MOST_LOOKS = 100
"""How often one look goes on while there is more than it takes at once."""

_log = logging.getLogger("clew.timing")


async def keep_time(services: Services) -> None:
    """Until it is cancelled. What goes wrong is said once, and tried again with the next look."""
    since: Instant | None = None
    said = ""
    while True:
        try:
            if since is None:
                since = await services.read(read_clock)
            await look_at_time(services, since)
            said = ""
        except Exception as fault:  # noqa: BLE001 - whatever it is, time goes on
            words = str(fault) if isinstance(fault, Fault) else repr(fault)
            if words != said:
                _log.warning("heartbeats, leases and approvals wait: %s", words)
            said = words
        await asyncio.sleep(EVERY)


async def look_at_time(services: Services, since: Instant) -> int:
    """Everything that is due now; how much that was. `since` is when this server began to hear its daemons."""
    done = 0
    for _ in range(MOST_LOOKS):
        # Nothing is written while nothing is due.
        due = await services.read(anything_due)
        if not (due.ticks or due.leases or due.approvals):
            break
        ticked = len(await services.write(tick_due)) if due.ticks else 0
        ended = len(await services.write(partial(expire, listening_since=since))) if due.leases else 0
        denied = len(await services.write(expire_approvals)) if due.approvals else 0
        done += ticked + ended + denied
        if not ticked + ended + denied:
            # Leases that are kept through their grace are due all the same.
            break
    return done
