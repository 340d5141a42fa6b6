"""What every delivery promises. A delivery of another package runs these checks with a rig of its own."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.kernel import RouteKey, RouteKind, RunId, ThreadId
from clew.ports.delivery import CannotDeliver, Delivery, DeliveryId, Message, delivery_id

THREAD, RUN = ThreadId("th_1"), RunId("rn_1")


@dataclass(frozen=True, slots=True)
class Rig:
    """A delivery, a route that it can reach, and how to see the ids of the messages that arrived there."""

    delivery: Delivery
    route: RouteKey
    arrived: Callable[[], Sequence[DeliveryId]]

    def message(self, run: RunId = RUN) -> Message:
        return Message(delivery_id(run, self.route), self.route, THREAD, run, "ada", "It is mended.")


Promise = Callable[[Rig], Coroutine[Any, Any, None]]


async def it_has_a_name_and_says_what_it_reaches(rig: Rig) -> None:
    assert rig.delivery.name
    assert rig.route.kind in rig.delivery.kinds


async def a_receipt_is_for_the_message_and_says_where_it_is(rig: Rig) -> None:
    receipt = await rig.delivery.send(rig.message())
    assert receipt.id == rig.message().id
    assert receipt.words


async def sending_twice_is_sending_once(rig: Rig) -> None:
    first = await rig.delivery.send(rig.message())
    after = list(rig.arrived())
    assert await rig.delivery.send(rig.message()) == first
    assert list(rig.arrived()) == after
    assert len(after) == len(set(after))


async def two_messages_are_two(rig: Rig) -> None:
    receipts = [await rig.delivery.send(rig.message(RunId(f"rn_{number}"))) for number in (1, 2)]
    assert receipts[0].id != receipts[1].id


async def a_route_that_it_does_not_reach_is_refused(rig: Rig) -> None:
    for kind in set(RouteKind) - rig.delivery.kinds:
        before, route = list(rig.arrived()), RouteKey(kind, "elsewhere")
        refused: CannotDeliver | None = None
        try:
            await rig.delivery.send(replace(rig.message(), route=route, id=delivery_id(RUN, route)))
        except CannotDeliver as fault:
            refused = fault
        assert refused is not None, f"a {kind} was not refused"
        assert "elsewhere" in refused.words
        assert refused.remedy
        assert list(rig.arrived()) == before


async def closing_may_be_repeated(rig: Rig) -> None:
    await rig.delivery.close()
    await rig.delivery.close()


PROMISES: tuple[Promise, ...] = (
    it_has_a_name_and_says_what_it_reaches,
    a_receipt_is_for_the_message_and_says_where_it_is,
    sending_twice_is_sending_once,
    two_messages_are_two,
    a_route_that_it_does_not_reach_is_refused,
    closing_may_be_repeated,
)
