"""`clew replay`: past decisions under another policy."""

import json
import time
from pathlib import Path

from clew.cli.client import Server
from clew.cli.options import OPTIONS, Options
from clew.cli.reading import read
from clew.cli.table import table
from clew.cli.telling import counted, tell, tell_as_is
from clew.cli.times import moment, seconds_of
from clew.cli.why import place_of
from clew.ports.fault import Fault
from clew.protocol.views import ReplayView

_DEADLINE = 600.0
"""Every kept decision of that time is made again."""


class BadPolicy(Fault):
    code = "cli:bad-policy"


def replay(*, policy: Path, since: str = "7d", options: Options = OPTIONS) -> None:
    """Say which past decisions a changed policy would have made otherwise. Nothing is changed by it.

    One line is one decision. A run has one when it is claimed (step 0), and another for each answer of its agent that
    settles it otherwise; `clew why` shows them all.

    For example:

        clew replay --since 7d --policy stricter.json

    where stricter.json holds, for instance, `{"limits": {"turns": 50}}`. What it leaves out is as usual.

    Parameters
    ----------
    policy
        A JSON file with the policy.
    since
        How far to look back: 12h, 7d, 4w.
    """
    said = Server(options.data).post(
        "/replay", {"since": time.time() - seconds_of(since), "policy": _policy(policy)}, _DEADLINE
    )
    if options.json:
        return tell_as_is(said)
    found = read(ReplayView, said)
    table(
        ("run", "decision", "thread", "when", "was", "would be", "why"),
        [
            (each.run, place_of(each), each.thread, moment(each.at), each.was, each.now, each.words)
            for each in found.changed
        ],
        "Every decision would be the same.",
    )
    unreadable = f"; {found.unreadable} could not be read" if found.unreadable else ""
    return tell(f"{len(found.changed)} of {counted(found.looked_at, 'decision')} would be another{unreadable}.")


def _policy(file: Path) -> dict[str, object]:
    try:
        policy = json.loads(file.read_text(encoding="utf-8"))
    except OSError as fault:
        raise BadPolicy(f"{file} cannot be read: {fault.strerror}.", "Name a JSON file.") from fault
    except ValueError as fault:
        raise BadPolicy(f"{file} is not JSON: {fault}.", "Mend it, and ask again.") from fault
    if not isinstance(policy, dict):
        raise BadPolicy(f"{file} does not hold a policy.", "It must be a JSON object, as in `clew replay --help`.")
    return policy
