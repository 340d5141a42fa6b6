"""Serving HTTP from a socket that is bound already, until it is told to end."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp

_GRACE = 3


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are for the whole process; whoever put it together hears them."""
        yield


@asynccontextmanager
async def served(app: ASGIApp, bound: socket.socket) -> AsyncIterator["asyncio.Task[None]"]:
    """While this lasts requests are answered. The task ends before only when something broke."""
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
        # What is asked takes moments, or is a stream that ends when it is told to.
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
    # What it raised is its last word.
    task.result()
