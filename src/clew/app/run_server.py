"""`clew up`: the server, its timers and this machine's daemon in one process."""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.app.data_lock import check_location, create_directories, lock_directory, machine_id, publish_address
from clew.app.database import open_for_server, show_address
from clew.app.discovery import discover
from clew.app.http_server import allow_connections, bind, serve_http
from clew.app.logs import Notice, Ready, start_logging
from clew.app.shutdown import OnStop, StopRequest, shutdown
from clew.context import engine_named
from clew.control.actor import MachineDaemon, Timer
from clew.control.daemon_api import DaemonApi
from clew.control.programs import GUIDE
from clew.control.push.sender import run_pusher
from clew.control.search_index import run_indexer
from clew.control.services import Services
from clew.control.timers import run_timers
from clew.daemon import Daemon, LocalMachine
from clew.ports.context import EngineSettings
from clew.ports.plugins import find_engines, find_providers
from clew.providers.guide.memory import VARIABLE as GUIDE_HOME
from clew.server.app import make_app
from clew.server.auth import Bound, Keys, new_link
from clew.server.data_dir import DataDirectory, make_token
from clew.server.live import Live
from clew.server.problems import status_of
from clew.store.engine.database import Database
from clew.web.app import Pages
from clew.workspaces import GitWorkspaces

log = logging.getLogger("clew.up")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    data: Path
    host: str = "127.0.0.1"
    port: int = 4747
    database: str | None = None
    """Its address; without one, a SQLite file in the data directory."""
    on_stop: OnStop = OnStop.INTERRUPT
    grace: float = 10.0
    """Seconds that turns have to finish before they are interrupted."""
    public: str = ""
    """The address under which a proxy serves it."""


async def run_server(settings: ServerSettings, notify: Callable[[Notice], None]) -> None:
    """Runs until a signal asks it to stop. Checks come in the order in which a person can fix them: directory, port,
    database."""
    data = DataDirectory(settings.data.expanduser().absolute())
    create_directories(data)
    with _children_watched(), lock_directory(data):
        check_location(data)
        keys = Keys(make_token(data.token))
        start_logging(data.logs, keys.token)
        allow_connections()
        with closing(bind(settings.host, settings.port)) as listener:
            # Blocking, and may upgrade the schema: nothing else runs in this process yet.
            address = str(data.database) if settings.database is None else settings.database
            database = open_for_server(address)
            try:
                await _run(settings, data, keys, listener, database, show_address(address), notify)
            finally:
                database.close()
    log.info("stopped")


async def _run(
    settings: ServerSettings,
    data: DataDirectory,
    keys: Keys,
    listener: socket.socket,
    database: Database,
    shown_address: str,
    notify: Callable[[Notice], None],
) -> None:
    stop, bound = StopRequest(), Bound(listener.getsockname()[1], settings.public)
    # The stack unwinds in reverse: runs end while HTTP requests are still answered.
    async with AsyncExitStack() as stack:
        stack.enter_context(stop.handle_signals())
        services = Services(database, data.root)
        stack.push_async_callback(services.close)
        machine = _machine(data)
        services.connect(machine)
        engine = engine_named("journal", find_engines(), EngineSettings(data.state / "context"))
        daemon = Daemon(DaemonApi(services, MachineDaemon(machine.id)), machine, engine, data.outbox)
        clients = Live(services)
        pages = Pages(services, bound.prefix, status_of)
        http = await stack.enter_async_context(serve_http(make_app(services, keys, bound, clients, pages), listener))
        stack.callback(clients.close)
        stack.enter_context(publish_address(data, bound.address))
        stack.push_async_callback(shutdown, daemon, stop, settings.on_stop, settings.grace, notify)
        await daemon.start()
        notify(Ready(bound.address, new_link(keys, bound).link, data.root, shown_address))
        log.info("ready at %s", bound.address)
        await stack.enter_async_context(background_task("timers", run_timers(services, Timer("server"))))
        await stack.enter_async_context(background_task("search", run_indexer(services, Timer("server"))))
        pusher = run_pusher(services, Timer("server"), settings.public)
        await stack.enter_async_context(background_task("push", pusher))
        await stack.enter_async_context(background_task("discovery", discover(services, machine, daemon, notify)))
        await _until_stopped(stop, http)


@contextmanager
def _children_watched() -> Iterator[None]:
    """Python 3.11 starts a thread per child process by default; pidfd needs none. The watcher is the whole process's
    and belongs to this event loop, so it ends with it."""
    if sys.version_info >= (3, 12) or not hasattr(os, "pidfd_open"):
        yield
        return
    former, watcher = asyncio.get_child_watcher(), asyncio.PidfdChildWatcher()
    watcher.attach_loop(asyncio.get_running_loop())
    asyncio.set_child_watcher(watcher)
    try:
        yield
    finally:
        asyncio.set_child_watcher(former)


async def _until_stopped(stop: StopRequest, http: "asyncio.Task[None]") -> None:
    asked = asyncio.create_task(stop.asked.wait())
    await asyncio.wait({asked, http}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if http.done():
        log.error("the HTTP server ended unexpectedly")


def _machine(data: DataDirectory) -> LocalMachine:
    return LocalMachine(
        machine_id(data),
        socket.gethostname(),
        find_providers(),
        GitWorkspaces(data.workspaces, data.homes),
        data.state,
        data.workspaces,
        homes={GUIDE: {GUIDE_HOME: str(data.guide)}},
        find=find_providers,
    )


@asynccontextmanager
async def background_task(name: str, work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Cancelled when the block ends. An exception in it is logged and stops nothing else."""
    task = asyncio.create_task(_logged(name, work), name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _logged(name: str, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        log.exception("%s failed", name)
