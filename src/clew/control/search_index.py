"""The indexer: a loop of each server that indexes for the search what was written."""

import asyncio
import logging
import time

from clew.control.actor import Actor, name_of
from clew.control.services import Services
from clew.ports.fault import Fault
from clew.store.operations.search_index import anything_to_index, index_next

CATCH_UP = 1.0
"""Seconds that a search waits for what was just written to be indexed."""

POLL = 5.0
"""Seconds after which the indexer looks without a hint."""

GATHER = 0.5
"""Seconds for which it gathers what is written, so that it is indexed together."""

PAUSE = 0.01
"""Seconds between two batches: on SQLite other writers go first."""

_log = logging.getLogger("clew.search")


async def run_indexer(services: Services, actor: Actor) -> None:
    """Until it is cancelled. An error is logged once, and tried again."""
    said = ""
    with services.hints.watch() as watch:
        while True:
            try:
                await index_all(services, actor)
                said = ""
            except Exception as fault:  # noqa: BLE001 - the indexer goes on after any error
                words = str(fault) if isinstance(fault, Fault) else repr(fault)
                if words != said:
                    _log.warning("what is written is not indexed for the search: %s", words)
                said = words
            if await watch.wait(POLL):
                await asyncio.sleep(GATHER)


async def index_all(services: Services, actor: Actor, seconds: float = float("inf")) -> int:
    """Index what is due, for at most so many seconds; how many documents that were."""
    done, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline and await services.read(anything_to_index):
        batch = await services.write(index_next)
        done += batch.documents
        if not batch.more:
            break
        await asyncio.sleep(PAUSE)
    if done:
        _log.debug("%s indexed %d documents for the search", name_of(actor), done)
    return done


async def catch_up(services: Services, actor: Actor) -> None:
    """Index what was written before a search, so that it is found, if that does not take long."""
    await index_all(services, actor, CATCH_UP)
