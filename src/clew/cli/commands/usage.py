"""`clew usage`, and tokens and cost as other commands show them."""

import time
from typing import Literal

from clew.cli.answers import print_view
from clew.cli.client import Server
from clew.cli.input import OPTIONS, Options
from clew.cli.output import counted, table, tell
from clew.cli.times import seconds_of
from clew.protocol.usage import UsageRow, UsageView, UsedView


def usage(*, by: Literal["agent", "project", "day"] = "agent", since: str = "7d", options: Options = OPTIONS) -> None:
    """Show the tokens and the cost of runs, as the agents report them.

    An agent that reports none has none here: nothing is estimated. A run counts from the time it was queued.

    For example:

        clew usage

        clew usage --by day --since 4w

    Parameters
    ----------
    by
        agent, project or day.
    since
        How far to look back, such as 12h, 7d or 4w.
    """
    # Whole seconds: the server reads it from a query.
    query = {"by": by, "since": int(time.time() - seconds_of(since))}
    print_view(options, Server(options.data).get("/usage", query), UsageView, lambda found: _show(found, since))


def _show(found: UsageView, since: str) -> None:
    if not found.rows:
        tell(f"No runs in the last {since}.")
        return
    table([_row(row, found.by) for row in (*found.rows, found.total)], "", ("cached", "runs"))
    silent = found.total.runs - found.total.reported
    if silent:
        tell(f"{counted(silent, 'run')} reported no tokens.")


def _row(row: UsageRow, by: str) -> dict[str, str]:
    used = row.used
    return {
        by: row.name,
        "runs": str(row.runs),
        "tokens in": "" if used is None else f"{used.input:,}",
        "out": "" if used is None else f"{used.output:,}",
        "cached": "" if used is None else f"{used.cached:,}",
        "cost": cost_of(used),
    }


def tokens_of(used: UsedView | None) -> str:
    return "" if used is None else _short(used.input + used.output)


def cost_of(used: UsedView | None) -> str:
    return "" if used is None or used.cost is None else f"${used.cost:.2f}" if used.cost >= 0.1 else f"${used.cost:.4f}"


def used_words(used: UsedView | None) -> str:
    """For example: 12,300 tokens in, 450 out, $0.12."""
    if used is None:
        return ""
    parts = [f"{used.input:,} tokens in", f"{used.output:,} out", cost_of(used)]
    return ", ".join(filter(None, parts))


def _short(count: int) -> str:
    """For example: 950, 12.3k, 4.5M."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)
