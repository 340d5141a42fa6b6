"""One wake after another, and many at once, for an agent that is nothing but /bin/true."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from bench.running.server import PATIENCE, Server

LOOK = 0.05
"""Seconds between two looks at a wake. When it ended is on record, and whoever asks all the time would be measured."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Milliseconds of one wake: until it was durable, until its run was claimed, and until that had ended."""

    accepted: float
    claimed: float
    whole: float


def hire(server: Server, name: str) -> str:
    server.post("/agents", {"name": name, "provider": "command", "program": ["/bin/true"], "mode": "full"})
    return name


def one_by_one(server: Server, agent: str, times: int) -> list[Taken]:
    return [_one(server, agent) for _ in range(times)]


def _one(server: Server, agent: str) -> Taken:
    # One clock for both: the store's is the system's, and so is this.
    began = time.time()
    wake = server.post("/wakes", {"agent": agent, "text": "go"})
    ended = served(server, [wake["id"]])[0]
    run = server.get(f"/runs/{ended['run']}")
    return Taken(
        (ended["accepted_at"] - began) * 1e3, (run["started_at"] - began) * 1e3, (ended["ended_at"] - began) * 1e3
    )


def at_once(server: Server, agents: Sequence[str], wakes: int) -> float:
    """Runs a second from the first request to the last end. Each wake has a thread of its own."""
    refs = [server.post("/chats", {"agent": agents[number % len(agents)]})["ref"] for number in range(wakes)]
    began = time.time()
    with ThreadPoolExecutor(8) as callers:
        said = list(callers.map(lambda ref: server.post(f"/threads/{ref}/words", {"text": "go"}), refs))
    # The last one first: once it has ended, whoever asks for the others disturbs nobody.
    ended = served(server, [each["wake"]["id"] for each in reversed(said)])
    last: float = max(each["ended_at"] for each in ended)
    return wakes / (last - began)


def served(server: Server, wakes: Sequence[str]) -> list[Any]:
    """The wakes once all have ended; each was served, or this is no measurement."""
    until = time.monotonic() + PATIENCE
    found: list[Any] = []
    for wake in wakes:
        time.sleep(LOOK if not found else 0)
        while (seen := server.get(f"/wakes/{wake}"))["ended_at"] is None:
            if time.monotonic() > until:
                raise SystemExit(f"Wake {wake} was not served: {seen['words']}")
            time.sleep(LOOK)
        if seen["state"] != "served":
            raise SystemExit(f"Wake {wake} ended as {seen['state']}: {seen['words']}")
        found.append(seen)
    return found
