"""Standing by: daemons that wait for work, so that whoever brings some can hand it to them."""

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

from sqlalchemy import Connection

from clew.kernel import AgentId, RuntimeId
from clew.protocol.orders import ClaimRequest, Order

MOST_KNOWN = 10_000
"""Agents of which it is remembered where their work was queued last."""

_KEPT = "clew-handing"

Orders = tuple[Order, ...]


@dataclass(eq=False, slots=True)
class Standby:
    """A daemon that waits. Whoever takes it answers it once: with orders that are its own, and durable; or with none,
    and it looks by itself."""

    asked: ClaimRequest
    orders: "Future[Orders]" = field(default_factory=Future)

    def __post_init__(self) -> None:
        # Whoever waits for it may give up; whoever has taken it answers all the same.
        self.orders.set_running_or_notify_cancel()


class Waiting:
    """The daemons that wait at one server."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._standing: list[Standby] = []
        self._known: dict[AgentId, RuntimeId] = {}

    def stand_by(self, asked: ClaimRequest) -> Standby:
        standby = Standby(asked)
        with self._gate:
            self._standing.append(standby)
        return standby

    def withdraw(self, standby: Standby) -> "Future[Orders]":
        """It waits no more. What it is answered: none, unless somebody has taken it and is not done."""
        with self._gate:
            stands = standby in self._standing
            if stands:
                self._standing.remove(standby)
        if stands:
            standby.orders.set_result(())
        return standby.orders

    def take(self, agent: AgentId) -> tuple[Standby, RuntimeId] | None:
        """A daemon that waits for work where that agent's was queued last. That is a guess, and may be wrong by now."""
        with self._gate:
            runtime = self._known.get(agent)
            found = next((each for each in self._standing if runtime in each.asked.runtimes), None)
            if runtime is None or found is None:
                return None
            self._standing.remove(found)
            return found, runtime

    def learn(self, agent: AgentId, runtime: RuntimeId) -> None:
        with self._gate:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[agent] = runtime


class Handing:
    """What one transaction hands over, once it is committed."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._taken: Standby | None = None
        self._orders: Orders = ()

    def take(self, agent: AgentId) -> tuple[ClaimRequest, RuntimeId] | None:
        """What a daemon that waits for that agent's work has asked for, and where. It is answered at the end."""
        found = self._waiting.take(agent)
        if found is None:
            return None
        self._taken, runtime = found
        return self._taken.asked, runtime

    def put(self, orders: Orders) -> None:
        self._orders = orders

    def learn(self, agent: AgentId, runtime: RuntimeId) -> None:
        self._waiting.learn(agent, runtime)

    def end(self, committed: bool) -> None:
        if self._taken is not None:
            self._taken.orders.set_result(self._orders if committed else ())


def begin_handing(connection: Connection, handing: Handing) -> None:
    """For the transaction that begins; whoever begins it ends this too, whatever becomes of it."""
    connection.info[_KEPT] = handing


def handing_of(connection: Connection) -> Handing:
    handing: Handing = connection.info[_KEPT]
    return handing
