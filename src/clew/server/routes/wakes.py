"""Routes of wakes: durable requests that an agent act."""

from clew.control.services import Services
from clew.control.wakes import cancel_wake, poke, show_wake
from clew.protocol.requests import Poke
from clew.protocol.views import Cancelled, WakeView
from clew.server.identity import By
from clew.server.params import Name
from clew.server.router import Routes


def wakes(routes: Routes, services: Services) -> None:
    routes = routes.below("/wakes", "wakes")

    @routes.post("", status_code=201)
    async def wake(by: By, asked: Poke) -> WakeView:
        """Wake an agent, in a thread or in its own. Requests with the same `key` make one wake."""
        return await poke(services, by, asked)

    @routes.get("/{wake}")
    async def show(by: By, wake: Name) -> WakeView:
        """One wake and its state."""
        return await show_wake(services, by, wake)

    @routes.delete("/{wake}")
    async def cancel(by: By, wake: Name) -> Cancelled:
        """Cancel a wake that no run has started to serve."""
        return await cancel_wake(services, by, wake)
