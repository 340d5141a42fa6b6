"""The routes of marks: read and unread, pinned, and archived."""

from clew.control.marks import archive_thread, mark_read, mark_unread, pin_thread, unarchive_thread, unpin_thread
from clew.control.services import Services
from clew.protocol.requests import ReadUpTo
from clew.protocol.views import ThreadView
from clew.server.router import By, Name, Routes


def add_mark_routes(routes: Routes, services: Services) -> None:
    routes = routes.below("/threads/{ref}", "marks")

    @routes.post("/read")
    async def read(by: By, ref: Name, asked: ReadUpTo = ReadUpTo()) -> ThreadView:  # noqa: B008 - a frozen value
        """Mark it as read up to `entry`, or up to its last. What was read before stays read. Like pins, this is the
        person's own who asks."""
        return await mark_read(services, by, ref, asked)

    @routes.post("/unread")
    async def unread(by: By, ref: Name) -> ThreadView:
        """Mark it as unread."""
        return await mark_unread(services, by, ref)

    @routes.post("/pin")
    async def pin(by: By, ref: Name) -> ThreadView:
        """Pin it: it stands first on the home page."""
        return await pin_thread(services, by, ref)

    @routes.post("/unpin")
    async def unpin(by: By, ref: Name) -> ThreadView:
        """Unpin it."""
        return await unpin_thread(services, by, ref)

    @routes.post("/archive")
    async def archive(by: By, ref: Name) -> ThreadView:
        """Archive it, for everyone: it is listed only with `only=archived`, and found by the search. Refused while one
        of its runs is queued, live or waits for an answer. It comes back when somebody speaks in it, and when something
        in it needs a person."""
        return await archive_thread(services, by, ref)

    @routes.post("/unarchive")
    async def unarchive(by: By, ref: Name) -> ThreadView:
        """Bring it back into the lists."""
        return await unarchive_thread(services, by, ref)
