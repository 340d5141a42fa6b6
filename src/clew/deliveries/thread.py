"""The delivery `thread`: a reply to its own thread. Nothing leaves the machine."""

from clew.kernel import RouteKind
from clew.ports.delivery import CannotDeliver, DeliverySettings, Message, Receipt


class ThreadDelivery:
    """The end of a run writes the reply into the thread's journal in the same transaction. So a message to that thread
    has arrived before it is sent, however often it is sent."""

    name = "thread"
    kinds = frozenset({RouteKind.THREAD})

    async def send(self, message: Message) -> Receipt:
        route = message.route
        if route.kind is not RouteKind.THREAD:
            words = f"The delivery `thread` cannot reach the {route.kind} {route.address!r}."
            raise CannotDeliver(words, f"Install a package that delivers to a {route.kind}.")
        if route.address != message.thread:
            words = f"The reply is in the journal of thread {message.thread}, not of {route.address!r}."
            raise CannotDeliver(words, "Replies cannot be delivered to another thread yet.")
        return Receipt(message.id, "It is in the thread's journal.")

    async def close(self) -> None:
        """Nothing is open."""


def make(settings: DeliverySettings) -> ThreadDelivery:  # noqa: ARG001 - it keeps no files
    return ThreadDelivery()
