"""Callers of Clew: each has a connection to the API and sends `say` or `wake`, every job in a chat of its own."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg

from bench.server import Server
from bench.store.agent import NAME
from bench.store.databases import driver_address, is_postgres
from bench.store.peers.workload import CALLERS, answer, drive, work_settings

_DONE = "SELECT count(*) FROM wakes WHERE state = 'served'"


def main() -> None:
    settings = work_settings()
    server = Server(0, settings.server, settings.token)
    with ThreadPoolExecutor(CALLERS) as callers:
        refs = list(callers.map(lambda _: server.post("/chats", {"agent": NAME})["ref"], range(settings.total)))

    def say(job: int) -> None:
        server.post(f"/threads/{refs[job]}/words", {"text": f"job {job}"})

    def wake(job: int) -> None:
        server.post("/wakes", {"agent": NAME, "thread": refs[job], "text": f"job {job}"})

    answer(drive({"say": say, "wake": wake}[settings.door], _counter(settings.database)))


def _counter(address: str) -> Callable[[], int]:
    """Counts the served wakes on a connection of its own."""
    if is_postgres(address):
        server = psycopg.connect(driver_address(address), autocommit=True)
        return lambda: int((server.execute(_DONE).fetchone() or (0,))[0])
    file = sqlite3.connect(address, isolation_level=None, timeout=30)
    return lambda: int(file.execute(_DONE).fetchone()[0])


if __name__ == "__main__":
    main()
