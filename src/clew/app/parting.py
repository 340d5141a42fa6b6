"""The daemon's end: turns finish or are interrupted, as was chosen, and sooner when somebody asks again."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from clew.app.notices import Notice, Stopping
from clew.app.stopping import OnStop, Stop
from clew.daemon import Daemon

log = logging.getLogger("clew.up")

_INTERRUPTING = 90.0
"""What has not ended by then is left to be settled by the next start."""


def finishing(live: int, grace: float | None = None) -> Stopping:
    """What is said of the runs that may still finish, each in so many seconds or in its own time."""
    one = live == 1
    if grace is None:
        how = "It finishes first" if one else "They finish first"
    else:
        how = f"{'It has' if one else 'They have'} {grace:g} {'second' if grace == 1 else 'seconds'} to finish"
    return Stopping(live, f"{how}. Ctrl-C again interrupts {'it' if one else 'them'} now.")


def interrupting(live: int) -> Stopping:
    return Stopping(
        live, f"{'It is' if live == 1 else 'They are'} interrupted; what can go on does so with the next start."
    )


async def part(daemon: Daemon, stop: Stop, choice: OnStop, grace: float, tell: Callable[[Notice], None]) -> None:
    # However it came to this: a signal from now on is one that asks again.
    stop.asked.set()
    if daemon.live:
        log.info("%d runs are going at the end", daemon.live)
        if choice is OnStop.FINISH:
            tell(finishing(daemon.live))
            if await _done(daemon.stop(finish=True), stop, None):
                return
        elif grace > 0 and daemon.live:
            tell(finishing(daemon.live, grace))
            if await _done(daemon.stop(finish=True), stop, grace):
                return
        tell(interrupting(daemon.live))
        stop.now.clear()
    if not await _done(daemon.stop(finish=False), stop, _INTERRUPTING):
        log.warning("the daemon was left with %d runs; the next start settles them", daemon.live)


async def _done(work: Coroutine[Any, Any, None], stop: Stop, seconds: float | None) -> bool:
    """Whether it came to its end in time, before somebody asked again."""
    task, again = asyncio.create_task(work), asyncio.create_task(stop.now.wait())
    await asyncio.wait({task, again}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
        return False
    task.result()
    return True
