"""`clew open`: show the page, or a thread's page, in a browser."""

from urllib.parse import quote

from clew.cli.answers import get_thread, parsed
from clew.cli.browser import has_browser, show_page
from clew.cli.client import Server
from clew.cli.input import OPTIONS, Options
from clew.cli.output import tell, tell_answer


def open_page(thread: str | None = None, *, options: Options = OPTIONS) -> None:
    """Open the page in your browser, or the page of a thread. Without a browser here, print the link.

    The link logs a browser in. It works once, for 15 minutes.

    For example:

        clew open

        clew open issue-3

    Parameters
    ----------
    thread
        The thread, such as issue-3.
    """
    server = Server(options.data)
    to = ""
    if thread is not None:
        # Refused here, where the person can see it, and not on a page that they have to close again.
        to = f"&to={quote(f'/threads/{get_thread(server, thread).ref}', safe='')}"
    link = f"{parsed(server.post('/tickets'))['link']}{to}"
    shown = not options.json and has_browser() and show_page(link)
    tell_answer({"link": link}, lambda: tell("Opened in your browser." if shown else link), as_json=options.json)
