"""`clew replay`: past decisions under another policy."""

import json
import time
from pathlib import Path

from clew.cli.answers import read
from clew.cli.client import Server
from clew.cli.commands.why import place_of
from clew.cli.input import OPTIONS, Options
from clew.cli.output import counted, table, tell, tell_json
from clew.cli.times import moment, seconds_of
from clew.ports.fault import Fault
from clew.protocol.views import ReplayView

_DEADLINE = 600.0
"""Every recorded decision in that time is made again."""


class BadPolicy(Fault):
    code = "cli:bad-policy"


def replay(*, policy: Path, since: str = "7d", options: Options = OPTIONS) -> None:
    """Show which past decisions another policy would change. Read-only.

    One line is one decision. A run has one when it is claimed (step 0), and another each time its agent's answer
    changes the plan; `clew why` shows them all.

    For example:

        clew replay --since 7d --policy stricter.json

    where stricter.json contains, for example, `{"limits": {"turns": 50}}`. Settings that it leaves out keep their
    defaults.

    Parameters
    ----------
    policy
        A JSON file with the policy.
    since
        How far to look back, such as 12h, 7d or 4w.
    """
    said = Server(options.data).post(
        "/replay", {"since": time.time() - seconds_of(since), "policy": _policy(policy)}, _DEADLINE
    )
    if options.json:
        return tell_json(said)
    found = read(ReplayView, said)
    table(
        ("run", "decision", "thread", "when", "was", "would be", "reason"),
        [
            (each.run, place_of(each), each.thread, moment(each.at), each.was, each.now, each.words)
            for each in found.changed
        ],
        "No decision would change.",
    )
    unreadable = f"; {found.unreadable} could not be read" if found.unreadable else ""
    return tell(f"{len(found.changed)} of {counted(found.looked_at, 'decision')} would change{unreadable}.")


def _policy(file: Path) -> dict[str, object]:
    try:
        policy = json.loads(file.read_text(encoding="utf-8"))
    except OSError as fault:
        raise BadPolicy(f"{file} cannot be read: {fault.strerror}.", "Name a JSON file.") from fault
    except ValueError as fault:
        raise BadPolicy(f"{file} is not JSON: {fault}.", "Fix the file, and try again.") from fault
    if not isinstance(policy, dict):
        raise BadPolicy(f"{file} does not contain a policy.", "It must be a JSON object, as in `clew replay --help`.")
    return policy
