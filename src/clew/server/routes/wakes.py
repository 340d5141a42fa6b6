"""Wakes: requests that an agent act, each with its receipt."""

from clew.control.services import Services
from clew.control.wakes import cancel_wake, poke, show_wake
from clew.protocol.requests import Poke
from clew.protocol.views import Cancelled, WakeView
from clew.server.asked import Name
from clew.server.calls import Calls
from clew.server.identity import By


def wakes(calls: Calls, services: Services) -> None:
    calls = calls.below("/wakes", "wakes")

    @calls.post("", status_code=201)
    async def wake(by: By, asked: Poke) -> WakeView:
        """Wake an agent by hand, in a thread or in its own. The same `key` is the same wake, however often it comes."""
        return await poke(services, by, asked)

    @calls.get("/{wake}")
    async def show(by: By, wake: Name) -> WakeView:
        """A wake's receipt."""
        return await show_wake(services, by, wake)

    @calls.delete("/{wake}")
    async def cancel(by: By, wake: Name) -> Cancelled:
        """Take it back while nobody has begun to serve it."""
        return await cancel_wake(services, by, wake)
