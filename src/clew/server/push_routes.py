"""The routes of Web Push."""

from clew.control.push.subscriptions import show_push, subscribe, unsubscribe
from clew.control.services import Services
from clew.protocol.push import PushView, SubscriptionView
from clew.protocol.requests import NewSubscription
from clew.server.router import By, Name, Routes


def add_push_routes(routes: Routes, services: Services) -> None:
    routes = routes.below("/push", "notices")

    @routes.get("")
    async def show(by: By) -> PushView:
        """What a browser subscribes with, and the browsers of yours that did: they are told of what needs you while no
        page is open in them. Needs the extra `push`."""
        return await show_push(services, by)

    @routes.post("/subscriptions", status_code=201)
    async def turn_on(by: By, asked: NewSubscription) -> SubscriptionView:
        """Push what newly needs you to a browser, encrypted for it alone. Safe to repeat. Refused for an endpoint on
        this machine or in a private network."""
        return await subscribe(services, by, asked)

    @routes.delete("/subscriptions/{subscription}")
    async def turn_off(by: By, subscription: Name) -> PushView:
        """Push nothing to that browser any more."""
        return await unsubscribe(services, by, subscription)
