"""What goes on beside the server for as long as it does."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

log = logging.getLogger("clew.up")


@asynccontextmanager
async def beside(what: str, work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """It is called off at the end. What goes wrong in it is told, and stops nothing else."""
    task = asyncio.create_task(_watched(what, work), name=what)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _watched(what: str, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        log.exception("the %s broke off", what)
