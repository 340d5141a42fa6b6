"""`clew up`: a server, its timers and the daemon of this machine, in one process."""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from clew.app.beside import beside
from clew.app.binding import bind
from clew.app.discovering import discover
from clew.app.holding import announced, held, machine_id, prepare
from clew.app.listening import served
from clew.app.logs import keep_log
from clew.app.notices import Notice, Ready
from clew.app.opening import open_for_work
from clew.app.parting import part
from clew.app.placing import keep_place
from clew.app.stopping import OnStop, Stop
from clew.context import engine_named
from clew.control.actor import MachineDaemon, Timer
from clew.control.daemon_api import DaemonApi
from clew.control.programs import GUIDE
from clew.control.services import Services
from clew.control.timers import run_timers
from clew.daemon import Daemon, LocalMachine
from clew.ports.context import EngineSettings
from clew.ports.plugins import find_engines, find_providers
from clew.providers.guide.memory import VARIABLE as GUIDE_HOME
from clew.server.app import make_app
from clew.server.datadir import DataDirectory
from clew.server.entering import link_of
from clew.server.guard import Bound
from clew.server.keys import Keys
from clew.server.live import Live
from clew.server.token import make_token
from clew.store.engine.address import show_address
from clew.store.engine.database import Database
from clew.workspaces import GitWorkspaces

log = logging.getLogger("clew.up")


@dataclass(frozen=True, slots=True)
class Wanted:
    data: Path
    host: str = "127.0.0.1"
    port: int = 4747
    database: str | None = None
    on_stop: OnStop = OnStop.INTERRUPT
    grace: float = 10.0
    """Seconds that turns have to finish before they are interrupted."""


async def run(wanted: Wanted, tell: Callable[[Notice], None]) -> None:
    """Until somebody asks it to stop. What cannot be had is refused in the order in which a person can mend it."""
    _watch_children()
    data = DataDirectory(wanted.data.expanduser().absolute())
    prepare(data)
    with held(data):
        keep_place(data)
        keys = Keys(make_token(data.token))
        keep_log(data.logs, keys.token)
        with closing(bind(wanted.host, wanted.port)) as bound:
            address = str(data.database) if wanted.database is None else wanted.database
            # Nothing else goes on in this process yet.
            database = open_for_work(address)
            try:
                await _run(wanted, data, keys, bound, database, tell)
            finally:
                database.close()
    log.info("stopped")


async def _run(
    wanted: Wanted,
    data: DataDirectory,
    keys: Keys,
    listens: socket.socket,
    database: Database,
    tell: Callable[[Notice], None],
) -> None:
    stop, bound = Stop(), Bound(listens.getsockname()[1])
    # What is entered last is left first: turns end while requests are still answered.
    async with AsyncExitStack() as stack:
        stack.enter_context(stop.heard())
        services = Services(database, data.root)
        stack.push_async_callback(services.close)
        machine = _machine(data)
        services.connect(machine)
        engine = engine_named("journal", find_engines(), EngineSettings(data.state / "context"))
        daemon = Daemon(DaemonApi(services, MachineDaemon(machine.id)), machine, engine, data.outbox)
        clients = Live(services)
        http = await stack.enter_async_context(served(make_app(services, keys, bound, clients), listens))
        stack.callback(clients.close)
        stack.enter_context(announced(data, bound.address))
        stack.push_async_callback(part, daemon, stop, wanted.on_stop, wanted.grace, tell)
        await daemon.start()
        shown = show_address(str(data.database) if wanted.database is None else wanted.database)
        tell(Ready(bound.address, link_of(keys, bound).link, data.root, shown))
        log.info("ready at %s", bound.address)
        await stack.enter_async_context(beside("timers", run_timers(services, Timer("server"))))
        await stack.enter_async_context(beside("discovery", discover(services, machine, daemon, tell)))
        await _until_asked(stop, http)


def _watch_children() -> None:
    """Python 3.11 waits for each program in a thread of its own, unless it is told that it need not."""
    if sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):
        watcher = asyncio.PidfdChildWatcher()
        watcher.attach_loop(asyncio.get_running_loop())
        asyncio.set_child_watcher(watcher)


async def _until_asked(stop: Stop, http: "asyncio.Task[None]") -> None:
    asked = asyncio.create_task(stop.asked.wait())
    await asyncio.wait({asked, http}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if http.done():
        log.error("the HTTP server ended by itself")


def _machine(data: DataDirectory) -> LocalMachine:
    return LocalMachine(
        machine_id(data),
        socket.gethostname(),
        find_providers(),
        GitWorkspaces(data.workspaces, data.homes),
        data.state,
        data.workspaces,
        homes={GUIDE: {GUIDE_HOME: str(data.guide)}},
    )
