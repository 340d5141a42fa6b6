"""`clew doctor`: which agents are installed and work, and how to fix the rest."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from clew.cli.answers import read_all
from clew.cli.client import NotRunning, Server
from clew.cli.exit import ExitStatus
from clew.cli.input import OPTIONS, Options
from clew.cli.output import table, tell_json
from clew.protocol.views import CheckView

_DEADLINE = 120.0
"""Every installed agent is started once."""


def doctor(*, options: Options = OPTIONS) -> ExitStatus:
    """Check which agents are installed and work, and how to fix the rest.

    The exit status is 1 if a check failed. Without a running server, only what is installed is checked.

    For example:

        clew doctor
    """
    checks = _checks(options)
    if options.json:
        tell_json(json.dumps([asdict(check) for check in checks], ensure_ascii=False))
    else:
        rows = [(check.name, check.state, f"{check.words} {check.remedy}") for check in checks]
        table(("check", "state", "message"), rows, "There is nothing to check.")
    return ExitStatus.FAILED if any(check.state == "failed" for check in checks) else ExitStatus.DONE


def _checks(options: Options) -> Sequence[CheckView]:
    try:
        return read_all(CheckView, Server(options.data).get("/doctor", deadline=_DEADLINE))
    except NotRunning as fault:
        # Imported only without a server: it loads every part.
        from clew.app.discovery import inspect_machine  # noqa: PLC0415

        return [CheckView("clew", "missing", fault.words, fault.remedy), *inspect_machine()]
