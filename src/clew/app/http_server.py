"""The HTTP listener: a loopback socket, and uvicorn serving it until shutdown."""

import asyncio
import errno
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp

from clew.ports.fault import Fault

_LOOPBACK = {"127.0.0.1": socket.AF_INET, "localhost": socket.AF_INET, "::1": socket.AF_INET6}
_GRACE = 3

_FILES = 4096
"""Open files. Each open page takes one, and each run of an agent several; some systems allow 256 unless asked."""


class NotLoopback(Fault):
    code = "server:not-loopback"


class PortTaken(Fault):
    code = "server:port-taken"


class CannotListen(Fault):
    code = "server:cannot-listen"


def bind(host: str, port: int) -> socket.socket:
    """Listens at once; early connections wait in the backlog until the server is ready."""
    family = _LOOPBACK.get(host.strip("[]"))
    if family is None:
        raise NotLoopback(
            f"Clew listens on loopback only, and {host} is not a loopback address: "
            "anyone who can reach the server can run programs.",
            "Leave out --host; to use Clew from another machine, forward the port over SSH.",
        )
    if not 0 <= port <= 65535:
        raise CannotListen(f"{port} is not a port number.", "Choose 1 to 65535, or 0 for any free port.")
    where = "::1" if family is socket.AF_INET6 else "127.0.0.1"
    try:
        # IPPROTO_TCP by name: asyncio sets TCP_NODELAY only on sockets that say so.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as fault:
        raise CannotListen(f"Cannot listen on {where}: {fault.strerror}.", "Leave out --host.") from fault
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((where, port))
        # With SO_REUSEADDR two sockets can bind one port; the second listen() is what fails.
        bound.listen(128)
    except OSError as fault:
        bound.close()
        if fault.errno == errno.EADDRINUSE:
            raise PortTaken(
                f"Port {port} of {where} is used by another program.",
                "Stop that program, or choose another port with --port; 0 takes any free port.",
            ) from fault
        raise CannotListen(
            f"Cannot listen on port {port} of {where}: {fault.strerror}.",
            "Choose another port with --port; 0 takes any free port.",
        ) from fault
    return bound


def allow_connections() -> None:
    """Raises the limit of open files, as far as the system lets a process do so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals alone: `StopRequest` handles them for the whole process."""
        yield


@asynccontextmanager
async def serve_http(app: ASGIApp, bound: socket.socket) -> AsyncIterator["asyncio.Task[None]"]:
    """Yields the server's task. It ends before the block does only if the server failed."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        loop="asyncio",
        http="h11",
        # Requests take moments; live streams end when `Live.close` is called.
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[bound]), name="http")
    try:
        while not server.started and not task.done():
            await asyncio.sleep(0.002)
        yield task
    finally:
        server.should_exit = True
        await asyncio.wait({task})
    # Raises what the server raised.
    task.result()
