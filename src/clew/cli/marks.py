"""What a person was shown at a terminal is read."""

from clew.cli.answers import read
from clew.cli.client import Server, part, thread_part
from clew.ports.fault import Fault
from clew.protocol.views import RunView, ThreadPage

LATEST = 20
"""Entries in which the reply of a run that has just ended is found."""


def page_of(server: Server, ref: str, entries: int = 1) -> ThreadPage | None:
    """The thread with its last entries. None where it cannot be had: what was asked for is done, and this is only said
    beside it."""
    try:
        return read(ThreadPage, server.get(f"/threads/{thread_part(ref)}", {"limit": entries}))
    except Fault:
        return None


def mark_page(server: Server, page: ThreadPage) -> None:
    """The entries of this page were shown."""
    if page.entries and page.thread.marks is not None and page.thread.marks.unread:
        server.post(f"/threads/{part(page.thread.id)}/read", {"entry": page.entries[-1].seq})


def mark_shown(server: Server, run: RunView, page: ThreadPage | None) -> None:
    """The reply of this run was shown. If another entry came after it, the thread stays unread."""
    if page is None or not page.entries or page.entries[-1].run != run.id:
        return
    try:
        mark_page(server, page)
    except Fault:
        # The reply was shown; that it counts as unread loses nothing.
        return
