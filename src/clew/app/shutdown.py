"""Stopping the server: signals, and the daemon's runs, which finish or are interrupted."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from clew.app.logs import Notice, Stopping
from clew.daemon import Daemon

log = logging.getLogger("clew.up")

_INTERRUPT_TIMEOUT = 90.0
"""Seconds. Runs that have not ended by then are settled at the next start."""


class OnStop(StrEnum):
    FINISH = "finish"
    INTERRUPT = "interrupt"


class StopRequest:
    """The first signal sets `asked`, every further one `now`."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.now = asyncio.Event()

    def ask(self) -> None:
        (self.now if self.asked.is_set() else self.asked).set()

    @contextmanager
    def handle_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        for each in signals:
            loop.add_signal_handler(each, self.ask)
        try:
            yield
        finally:
            for each in signals:
                loop.remove_signal_handler(each)


def finish_notice(live: int, grace: float | None = None) -> Stopping:
    """Without `grace`, runs may take as long as they need."""
    one = live == 1
    if grace is None:
        how = "Waiting for it to finish" if one else "Waiting for them to finish"
    else:
        how = f"{'It has' if one else 'They have'} {grace:g} {'second' if grace == 1 else 'seconds'} to finish"
    return Stopping(live, f"{how}. Press Ctrl-C again to interrupt {'it' if one else 'them'} now.")


def interrupt_notice(live: int) -> Stopping:
    return Stopping(
        live, f"Interrupting {'it' if live == 1 else 'them'}; what can be continued continues at the next start."
    )


async def shutdown(
    daemon: Daemon, stop: StopRequest, on_stop: OnStop, grace: float, notify: Callable[[Notice], None]
) -> None:
    # Also when no signal led here: from now on, a signal is a second request.
    stop.asked.set()
    if daemon.live:
        log.info("%d runs are live at shutdown", daemon.live)
        if on_stop is OnStop.FINISH:
            notify(finish_notice(daemon.live))
            if await _completed(daemon.stop(finish=True), stop, None):
                return
        elif grace > 0 and daemon.live:
            notify(finish_notice(daemon.live, grace))
            if await _completed(daemon.stop(finish=True), stop, grace):
                return
        notify(interrupt_notice(daemon.live))
        stop.now.clear()
    if not await _completed(daemon.stop(finish=False), stop, _INTERRUPT_TIMEOUT):
        log.warning("the daemon stopped with %d live runs; the next start ends them", daemon.live)


async def _completed(work: Coroutine[Any, Any, None], stop: StopRequest, seconds: float | None) -> bool:
    """False if it was cancelled: the time ran out, or another signal came."""
    task, again = asyncio.create_task(work), asyncio.create_task(stop.now.wait())
    await asyncio.wait({task, again}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
        return False
    task.result()
    return True
