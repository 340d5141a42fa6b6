"""`clew thread show`: one thread in full."""

from cyclopts import App

from clew.cli.options import OPTIONS, Options
from clew.cli.threads import show_page

app = App(name="thread", help="Show a thread.", help_format="markdown")


@app.command
def show(ref: str, /, *, last: int = 20, options: Options = OPTIONS) -> None:
    """Show a thread: what goes on in it, where its agents work, and what was said.

    For example:

        clew thread show chat-1

        clew thread show issue-3 --last 200

    Parameters
    ----------
    ref
        The thread: issue-3, chat-1, own-ada, or an id.
    last
        How many of the latest entries to show.
    """
    show_page(options, ref, last)
