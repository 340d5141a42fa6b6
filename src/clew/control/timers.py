"""Timers: due heartbeats make wakes, and expired leases and approvals end. One loop for each server."""

import asyncio
import logging
from functools import partial

from clew.control.actor import Actor
from clew.control.services import Services
from clew.kernel import Instant
from clew.ports.fault import Fault
from clew.store.engine.dialect import read_clock
from clew.store.operations.approvals import expire_approvals
from clew.store.operations.leases import expire
from clew.store.operations.schedules import anything_due, tick_due

EVERY = 1.0
"""Seconds between two rounds."""

MOST_BATCHES = 100
"""How many batches one round works through."""

_log = logging.getLogger("clew.timers")


async def run_timers(services: Services, actor: Actor) -> None:
    """Until it is cancelled. An error is logged once, and tried again in the next round."""
    since: Instant | None = None
    said = ""
    while True:
        try:
            if since is None:
                since = await services.read(read_clock)
            await run_due(services, actor, since)
            said = ""
        except Exception as fault:  # noqa: BLE001 - the timers go on after any error
            words = str(fault) if isinstance(fault, Fault) else repr(fault)
            if words != said:
                _log.warning("heartbeats, leases and approvals wait: %s", words)
            said = words
        await asyncio.sleep(EVERY)


async def run_due(services: Services, actor: Actor, since: Instant) -> int:
    """Do everything that is due now; how much that was. `since` is when this server began to listen to its daemons."""
    done = 0
    for _ in range(MOST_BATCHES):
        # Nothing is written while nothing is due.
        due = await services.read(anything_due)
        if not (due.ticks or due.leases or due.approvals):
            break
        ticked = len(await services.write(tick_due)) if due.ticks else 0
        ended = len(await services.write(partial(expire, listening_since=since))) if due.leases else 0
        denied = len(await services.write(expire_approvals)) if due.approvals else 0
        if ended:
            services.record(actor, f"ended {ended} runs whose daemon was not heard of")
        if denied:
            services.record(actor, f"denied {denied} approvals that nobody answered in time")
        done += ticked + ended + denied
        if not ticked + ended + denied:
            # A lease within its grace period counts as due and is not ended yet.
            break
    return done
