"""`clew doctor` and `clew runtimes`: which agents are installed and work, and where they run."""

import shutil
import sys
import time
from collections.abc import Sequence

from clew.cli.answers import print_table, read_all
from clew.cli.client import NotRunning, Server
from clew.cli.columns import GAP
from clew.cli.input import OPTIONS, Options
from clew.cli.logins import with_keys_here
from clew.cli.output import ExitStatus, table, tell, tell_answer
from clew.cli.safe_text import width
from clew.cli.times import moment, until
from clew.protocol.views import CheckView, RuntimeView

_DEADLINE = 120.0
"""Every installed agent is started once."""


def doctor(*, options: Options = OPTIONS) -> ExitStatus:
    """Check which agents are installed and work, and how to fix the rest.

    For each agent it says which login it has, or how to give it one; no key is ever shown. `clew agent test` tries a
    first prompt. An agent whose runs are held is a warning that says why. The exit status is 1 if a check failed or the
    program of an agent is missing. Without a running server, only what is installed is checked.

    For example:

        clew doctor
    """
    checks = _checks(options)
    tell_answer(checks, lambda: _show(checks), as_json=options.json)
    return ExitStatus.FAILED if any(map(_is_wrong, checks)) else ExitStatus.DONE


def _is_wrong(check: CheckView) -> bool:
    """A provider that nobody uses may be missing."""
    return check.state == "failed" or (check.state == "missing" and check.name.startswith("agent "))


def _words(check: CheckView) -> str:
    return check.words if check.until is None else f"Held {until(check.until, time.time())}: {check.words}"


def _show(checks: Sequence[CheckView]) -> None:
    """At a terminal, what the table cuts and what to do stand below it."""
    below = sys.stdout.isatty()
    room = shutil.get_terminal_size().columns - sum(
        max((width(text) for text in column), default=0) + GAP
        for column in ([each.name for each in checks], [each.state for each in checks])
    )
    rows = [
        {
            "check": each.name,
            "state": each.state,
            "message": _words(each) if below else f"{_words(each)} {with_keys_here(each.remedy)}".strip(),
        }
        for each in checks
    ]
    table(rows, "There is nothing to check.")
    for check in checks if below else ():
        cut = _words(check) if width(_words(check)) > room else ""
        if said := f"{cut} {with_keys_here(check.remedy)}".strip():
            tell(f"{check.name}: {said}")


def _checks(options: Options) -> Sequence[CheckView]:
    try:
        return read_all(CheckView, Server(options.data).get("/doctor", deadline=_DEADLINE))
    except NotRunning as fault:
        # Imported only without a server: it loads every part.
        from clew.app.discovery import inspect_machine  # noqa: PLC0415

        return [CheckView("clew", "missing", fault.words, fault.remedy), *inspect_machine()]


def runtimes(*, options: Options = OPTIONS) -> None:
    """List the runtimes: each is one provider in one home on one machine.

    For example:

        clew runtimes
    """
    print_table(
        options, Server(options.data).get("/runtimes"), RuntimeView, _row, "There are no runtimes yet.", _NARROW
    )


_NARROW = ("seen", "waiting", "account", "running", "machine")


def _row(runtime: RuntimeView) -> dict[str, str]:
    return {
        "runtime": runtime.id,
        "provider": runtime.provider,
        "machine": runtime.machine,
        "home": runtime.home,
        "account": ", ".join(runtime.accounts),
        "state": "online" if runtime.online else "offline",
        "running": f"{runtime.live} of {runtime.most}",
        "waiting": str(runtime.waiting),
        "seen": moment(runtime.seen_at),
    }
