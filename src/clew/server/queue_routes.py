"""The routes of messages before an agent has them: what one would do, and those that wait."""

from typing import Annotated

from fastapi import Query

from clew.control.preview import preview_message
from clew.control.queue import edit_message, order_queue, show_queue, steer_message
from clew.control.services import Services
from clew.protocol.preview import PreviewView
from clew.protocol.requests import MessageEdit, Overlapping, QueueOrder, Words
from clew.protocol.waiting import WaitingView
from clew.server.router import By, Filter, Name, Routes


def add_queue_routes(routes: Routes, services: Services) -> None:
    routes = routes.below("", "queue")

    @routes.get("/threads/{ref}/preview")
    async def preview(
        by: By,
        ref: Name,
        agent: Filter = None,
        fresh: bool = False,
        resume_run: Filter = None,
        overlap: Annotated[Overlapping | None, Query()] = None,
        wakes: bool = True,
    ) -> PreviewView:
        """What a message sent now with these fields would do, in a sentence: which session is continued where, and what
        it is told; or what it waits behind. Nothing is written. Send its `token` with the message, as `preview`."""
        words = Words("", agent=agent, fresh=fresh, resume_run=resume_run, overlap=overlap, wakes=wakes)
        return await preview_message(services, by, ref, words)

    @routes.get("/threads/{ref}/queue")
    async def show(by: By, ref: Name) -> tuple[WaitingView, ...]:
        """The messages that wait in a thread, in the order in which each agent would be told, and why each waits."""
        return await show_queue(services, by, ref)

    @routes.post("/threads/{ref}/queue")
    async def order(by: By, ref: Name, asked: QueueOrder) -> tuple[WaitingView, ...]:
        """Put the messages that wait for an agent in another order. Refused for one that an agent has."""
        return await order_queue(services, by, ref, asked)

    @routes.patch("/wakes/{wake}")
    async def edit(by: By, wake: Name, asked: MessageEdit) -> tuple[WaitingView, ...]:
        """Give a message that waits another text. Refused once an agent has it; the answer says which, and since
        when."""
        return await edit_message(services, by, wake, asked)

    @routes.post("/wakes/{wake}/steer")
    async def steer(by: By, wake: Name) -> tuple[WaitingView, ...]:
        """Have the running turn told of a message that waits, before the others."""
        return await steer_message(services, by, wake)
