"""Usage: tokens and cost by agent, project or day, as the agents report them."""

import math
import time
from typing import get_args

from clew.control.actor import Actor
from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.protocol.usage import By, UsageRow, UsageView, UsedView
from clew.store.queries.usage import StartedRun, started_since, total_of

_NO_PROJECT = "(no project)"


async def show_usage(services: Services, actor: Actor, by: str, since: float) -> UsageView:
    """What the runs queued since then have used. Days are in the server's time zone."""
    grouping = _grouping(by)
    if not math.isfinite(since) or not 0 <= since < 2**40:
        raise BadRequest(f"{since} is not a time.", "Give seconds since the epoch.")
    started, used = await services.read(lambda tx: started_since(tx, since))
    groups: dict[str, list[StartedRun]] = {}
    for run in started:
        groups.setdefault(_name(run, grouping), []).append(run)
    rows = tuple(_row(name, groups[name], used) for name in sorted(groups))
    return UsageView(grouping, since, rows, _row("total", started, used))


def _grouping(by: str) -> By:
    for known in get_args(By):
        if by == known:
            grouping: By = known
            return grouping
    raise BadRequest(f"Usage cannot be shown by {by!r}.", f"Use one of: {', '.join(get_args(By))}.")


def _name(run: StartedRun, by: By) -> str:
    match by:
        case "agent":
            return run.agent
        case "project":
            return run.project or _NO_PROJECT
        case "day":
            return time.strftime("%Y-%m-%d", time.localtime(run.at))


def _row(name: str, runs: list[StartedRun], used: dict[str, UsedView]) -> UsageRow:
    reported = [used[run.id] for run in runs if run.id in used]
    return UsageRow(name, len(runs), len(reported), total_of(reported))
