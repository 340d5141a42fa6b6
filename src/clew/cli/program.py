"""The program `clew`: its commands by name, each loaded when it is asked for."""

from cyclopts import App, Parameter

from clew import __version__
from clew.cli.ending import ending_of

_ABOUT = """\
Wake coding agents, each in its right conversation.

The exit status is 0 when a command did what it says, 1 when it could not, 2 when it was not understood, and 70 for a
bug. What went wrong stands on stderr: a sentence, what to do, and a code.
"""


def program() -> App:
    app = App(
        name="clew",
        help=_ABOUT,
        version=__version__,
        # A switch is given or left out; none needs a second one that says no.
        default_parameter=Parameter(negative=(), show_default=False),
        help_format="markdown",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    app.command("clew.cli.db:app", name="db", help="Upgrade, back up, restore and check the database.")
    return app


def main() -> None:
    """Run the command that was typed, and end with its status."""
    raise SystemExit(ending_of(program()))
