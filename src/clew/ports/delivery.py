"""The port of deliveries: a finished reply is sent to the route that its wake named."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import NewType, Protocol

from clew.kernel import RouteKey, RouteKind, RunId, ThreadId
from clew.ports.fault import Fault

DeliveryId = NewType("DeliveryId", str)


def delivery_id(run: RunId, route: RouteKey) -> DeliveryId:
    """The same id for the same run and route, on any machine and after any restart."""
    text = "\0".join((run, route.kind, route.address))
    return DeliveryId("dl_" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24])


@dataclass(frozen=True, slots=True)
class Message:
    """A reply and its route. `thread` is the thread whose journal has it; `author` the name of its agent."""

    id: DeliveryId
    route: RouteKey
    thread: ThreadId
    run: RunId
    author: str
    text: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """The message has arrived. `words` tells people where to find it."""

    id: DeliveryId
    words: str


class CannotDeliver(Fault):
    """The delivery cannot reach this route; another try would fail the same way."""

    code = "delivery:no-way"


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """`state` is a directory for the delivery alone, which creates it when it first needs it."""

    state: Path


class Delivery(Protocol):
    @property
    def name(self) -> str:
        """The name of its entry point."""
        ...

    @property
    def kinds(self) -> frozenset[RouteKind]:
        """The kinds of route that it can reach."""
        ...

    async def send(self, message: Message) -> Receipt:
        """Send the message once: if its id was sent before, return the receipt and send nothing.

        Raises CannotDeliver for a route that it cannot reach, and any other Fault where another try may succeed.
        """
        ...

    async def close(self) -> None:
        """Safe to repeat."""
        ...
