"""Wakes asked for over HTTP, one after the other and many at once, with the times that the server recorded."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from bench.process import PATIENCE, Failed
from bench.server import Server

LOOK = 0.05
"""Seconds between two requests for the state of a wake. Its end is on record; asking more often would be measured."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Milliseconds from the request of one wake: until it was answered, durable, claimed, and its run had ended.
    `decision` is the outcome of the run's decision."""

    decision: str
    answered: float
    accepted: float
    claimed: float
    whole: float


def add_true(server: Server, name: str) -> str:
    """An agent that is nothing but /bin/true."""
    server.post("/agents", {"name": name, "provider": "command", "program": ["/bin/true"], "mode": "full"})
    return name


def one_by_one(server: Server, agent: str, times: int) -> list[Taken]:
    return [one(server, lambda: server.post("/wakes", {"agent": agent, "text": "go"})) for _ in range(times)]


def one(server: Server, ask: Callable[[], Any]) -> Taken:
    """`ask` sends the request and returns the wake as it was answered."""
    # The database's clock is the system's: it runs on this machine.
    began, started = time.time(), time.perf_counter()
    wake = ask()
    answered = time.perf_counter() - started
    (ended,) = served(server, [wake["id"]])
    run = server.get(f"/runs/{ended['run']}")
    since = ((at - began) * 1e3 for at in (ended["accepted_at"], run["started_at"], ended["ended_at"]))
    return Taken(run["decision"], answered * 1e3, *since)


def at_once(server: Server, agents: Sequence[str], wakes: int) -> float:
    """Runs a second from the first request to the last end. Each wake has a thread of its own."""
    refs = [server.post("/chats", {"agent": agents[number % len(agents)]})["ref"] for number in range(wakes)]
    began = time.time()
    with ThreadPoolExecutor(8) as callers:
        said = list(callers.map(lambda ref: server.post(f"/threads/{ref}/words", {"text": "go"}), refs))
    # The last one first: once it has ended, asking for the others slows nothing down.
    ended = served(server, [each["wake"]["id"] for each in reversed(said)])
    last: float = max(each["ended_at"] for each in ended)
    return wakes / (last - began)


def served(server: Server, wakes: Sequence[str]) -> list[Any]:
    """The wakes, once all have ended. Fails unless each was served."""
    until = time.monotonic() + PATIENCE
    found: list[Any] = []
    for wake in wakes:
        time.sleep(LOOK if not found else 0)
        while (seen := server.get(f"/wakes/{wake}"))["ended_at"] is None:
            if time.monotonic() > until:
                raise Failed(f"Wake {wake} was not served after {PATIENCE:.0f} s: {seen['words']}")
            time.sleep(LOOK)
        if seen["state"] != "served":
            raise Failed(f"Wake {wake} ended as {seen['state']}: {seen['words']}")
        found.append(seen)
    return found
