"""The real application over a real database, called in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from fastapi import FastAPI

from clew.control.services import Services
from clew.protocol.machine import Machine
from clew.server.app import guarded, make_api
from clew.server.auth import Bound, Keys
from clew.server.live import Live
from clew.server.problems import status_of
from clew.testing import temporary_store
from clew.web.app import Pages

T = TypeVar("T")

TOKEN = "t" * 43
BOUND = Bound(4747)
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True)
class House:
    services: Services
    keys: Keys
    clients: Live
    api: FastAPI
    http: httpx2.AsyncClient
    """With the token."""
    stranger: httpx2.AsyncClient
    """Without."""


@asynccontextmanager
async def house(data: Path, machine: Machine | None = None) -> AsyncIterator[House]:
    with temporary_store() as store:
        async with serving(Services(store, data, () if machine is None else (machine,))) as opened:
            yield opened


@asynccontextmanager
async def serving(services: Services) -> AsyncIterator[House]:
    keys, clients = Keys(TOKEN), Live(services)
    pages = Pages(services, BOUND.prefix, status_of)
    api = make_api(services, keys, BOUND, clients, pages)
    transport = httpx2.ASGITransport(guarded(api, keys, BOUND, pages))
    async with (
        httpx2.AsyncClient(transport=transport, base_url=BOUND.address, headers=BEARER) as http,
        httpx2.AsyncClient(transport=transport, base_url=BOUND.address) as stranger,
    ):
        try:
            yield House(services, keys, clients, api, http, stranger)
        finally:
            clients.close()
            await services.close()


def inside(data: Path, work: Callable[[House], Coroutine[Any, Any, T]], machine: Machine | None = None) -> T:
    async def run() -> T:
        async with house(data, machine) as opened:
            return await asyncio.wait_for(work(opened), 120)

    return asyncio.run(run())
