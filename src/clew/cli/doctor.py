"""`clew doctor`: what is installed, what works, and what to do about the rest."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from clew.cli.client import NotRunning, Server
from clew.cli.ending import Ending
from clew.cli.options import OPTIONS, Options
from clew.cli.reading import read_all
from clew.cli.table import table
from clew.cli.telling import tell_as_is
from clew.protocol.views import CheckView

_DEADLINE = 120.0
"""Every installed agent is started once to see that it answers."""


def doctor(*, options: Options = OPTIONS) -> Ending:
    """Say what is installed, what works, and what to do about the rest.

    The exit status is 1 when something failed. While Clew is not running it looks at what is installed, and no further.

    For example:

        clew doctor
    """
    checks = _checks(options)
    if options.json:
        tell_as_is(json.dumps([asdict(check) for check in checks], ensure_ascii=False))
    else:
        rows = [(check.name, check.state, f"{check.words} {check.remedy}") for check in checks]
        table(("what", "state", "words"), rows, "There was nothing to look at.")
    return Ending.FAILED if any(check.state == "failed" for check in checks) else Ending.DONE


def _checks(options: Options) -> Sequence[CheckView]:
    try:
        return read_all(CheckView, Server(options.data).get("/doctor", deadline=_DEADLINE))
    except NotRunning as fault:
        # Wiring loads every part there is, so it is asked only when nobody else can be.
        from clew.app.examining import look_around  # noqa: PLC0415

        return [CheckView("clew", "missing", fault.words, fault.remedy), *look_around()]
