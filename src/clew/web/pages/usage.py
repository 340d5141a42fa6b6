"""Usage: tokens and cost by agent, project or day, and the limits that hold runs."""

import time
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from clew.control.runs import list_runs
from clew.control.usage import show_usage
from clew.protocol.usage import UsageRow
from clew.web.site import Site, actor_of

SPANS = {"24h": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400, "90d": 90 * 86_400}
_QUEUED = 200


@dataclass(frozen=True, slots=True)
class Bar:
    """A row with its share of the largest row, in per cent: of it read from a cache, and the rest."""

    row: UsageRow
    cached: float
    used: float


def add(site: Site) -> None:
    @site.page("/usage")
    async def usage(request: Request) -> Response:
        """`by` agent, project or day, of the runs `since` 24h, 7d, 30d or 90d."""
        actor, query = actor_of(request), request.query_params
        since = query.get("since", "7d")
        since = since if since in SPANS else "7d"
        found = await show_usage(site.services, actor, query.get("by", "agent"), time.time() - SPANS[since])
        queued = await list_runs(site.services, actor, state="queued", limit=_QUEUED)
        limited = [run for run in queued if run.held == "time" and run.not_before]
        return site.show(
            request, "usage.html", usage=found, bars=_bars(found.rows), since=since, spans=list(SPANS), limited=limited
        )


def _bars(rows: tuple[UsageRow, ...]) -> list[Bar]:
    most = max((_tokens(row) for row in rows), default=0) or 1
    return [
        Bar(row, round(100 * cached / most, 2), round(100 * (_tokens(row) - cached) / most, 2))
        for row in rows
        for cached in [0 if row.used is None else min(row.used.cached, _tokens(row))]
    ]


def _tokens(row: UsageRow) -> int:
    return 0 if row.used is None else row.used.input + row.used.output
