"""`clew doctor`: what is installed, what works, and what to do about the rest."""

from clew.cli.client import Server
from clew.cli.ending import Ending
from clew.cli.options import OPTIONS, Options
from clew.cli.reading import read_all
from clew.cli.table import table
from clew.cli.telling import tell
from clew.wire.views import CheckView

_DEADLINE = 120.0
"""Every installed agent is started once to see that it answers."""


def doctor(*, options: Options = OPTIONS) -> Ending:
    """Say what is installed, what works, and what to do about the rest.

    The exit status is 1 when something failed.

    For example:

        clew doctor
    """
    said = Server(options.data).get("/doctor", deadline=_DEADLINE)
    checks = read_all(CheckView, said)
    if options.json:
        tell(said.decode())
    else:
        rows = [(check.name, check.state, f"{check.words} {check.remedy}") for check in checks]
        table(("what", "state", "words"), rows, "There was nothing to look at.")
    return Ending.FAILED if any(check.state == "failed" for check in checks) else Ending.DONE
