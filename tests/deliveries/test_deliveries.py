"""Every delivery that ships keeps the promises of the port; deliveries that break one are caught."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from clew.deliveries.thread import ThreadDelivery
from clew.kernel import RouteKey, RouteKind, RunId
from clew.ports.delivery import CannotDeliver, DeliveryId, DeliverySettings, Message, Receipt, delivery_id
from clew.ports.plugins import find_deliveries
from tests.deliveries import promises
from tests.deliveries.promises import PROMISES, RUN, THREAD, Promise, Rig

HOOK = RouteKey(RouteKind.WEBHOOK, "https://example.org/hook")


def thread() -> Rig:
    # Nothing ever leaves the machine: the reply is in the journal by the end of the run.
    return Rig(ThreadDelivery(), RouteKey(RouteKind.THREAD, THREAD), lambda: ())


class Hook:
    """A receiver that keeps every message, and a delivery to it that keeps the ids that it has sent."""

    name, kinds = "hook", frozenset({RouteKind.WEBHOOK})

    def __init__(self) -> None:
        self.arrived: list[DeliveryId] = []

    async def send(self, message: Message) -> Receipt:
        if message.route.kind not in self.kinds:
            raise CannotDeliver(f"Cannot reach {message.route.address}.", "Use a webhook.")
        if message.id not in self.arrived:
            self.arrived.append(message.id)
        return Receipt(message.id, "It was posted.")

    async def close(self) -> None:
        pass


class Repeating(Hook):
    async def send(self, message: Message) -> Receipt:
        self.arrived.append(message.id)
        return Receipt(message.id, "It was posted.")


class Confused(Hook):
    async def send(self, message: Message) -> Receipt:
        await super().send(message)
        return Receipt(DeliveryId("dl_always"), "")


def hook(kind: type[Hook] = Hook) -> Rig:
    made = kind()
    return Rig(made, HOOK, lambda: made.arrived)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("rig", [thread, hook])
def test_a_delivery_keeps_its_promises(rig: Callable[[], Rig], promise: Promise) -> None:
    asyncio.run(promise(rig()))


@pytest.mark.parametrize(
    ("wrong", "broken"),
    [
        (Repeating, promises.sending_twice_is_sending_once),
        (Repeating, promises.a_route_that_it_does_not_reach_is_refused),
        (Confused, promises.a_receipt_is_for_the_message_and_says_where_it_is),
        (Confused, promises.two_messages_are_two),
    ],
)
def test_a_delivery_that_breaks_a_promise_is_caught(wrong: type[Hook], broken: Promise) -> None:
    with pytest.raises(AssertionError):
        asyncio.run(broken(hook(wrong)))


def test_an_id_is_the_same_at_each_start_and_another_for_each_run_and_route() -> None:
    assert delivery_id(RUN, HOOK) == "dl_662c913f35919b14c49631fd"
    routes = [HOOK, RouteKey(RouteKind.CHANNEL, HOOK.address), RouteKey(RouteKind.WEBHOOK, "https://example.org/other")]
    ids = {delivery_id(RunId(run), route) for run in ("rn_1", "rn_2") for route in routes}
    assert len(ids) == 6


def test_a_reply_for_another_thread_is_refused() -> None:
    elsewhere = replace(thread().message(), route=RouteKey(RouteKind.THREAD, "th_2"))
    with pytest.raises(CannotDeliver, match="in the journal of thread th_1, not of 'th_2'"):
        asyncio.run(ThreadDelivery().send(elsewhere))


def test_the_thread_is_found_by_its_entry_point(tmp_path: Path) -> None:
    assert find_deliveries().make("thread", DeliverySettings(tmp_path)).name == "thread"
