"""A run: how it was continued and why, what it did, and the whole output of each step."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from clew.control.approvals import approvals_of
from clew.control.decisions import explain
from clew.control.runs import list_events, show_run
from clew.protocol.views import EventView
from clew.protocol.why_views import DecisionView
from clew.web.conversation import steps_until
from clew.web.site import Site, actor_of, number

STEPS = 200
"""Steps of one part."""
_LINES = 500
_HEADLINE = re.compile(r"([\w-]+): (.*?)(?: \[([^\]]*)\])?", re.DOTALL)


def add(site: Site) -> None:
    @site.page("/runs/{run}")
    async def run(request: Request) -> Response:
        """With `after`, the steps after that line of its log."""
        actor, ref = actor_of(request), request.path_params["run"]
        part = request.query_params.get("part")
        found = await show_run(site.services, actor, ref)
        if part == "output":
            return site.show(request, "run.html", run=found, output=await _output(request, found.id))
        why = await explain(site.services, actor, found.id) if part in (None, "head", "why") else None
        after = number(request, "after") or 0
        steps, more = await _steps(request, found.id, after) if part in (None, "steps") else ((), None)
        return site.show(
            request,
            "run.html",
            run=found,
            why=why,
            headline=None if why is None else headline(why.headline),
            decisions=() if why is None else folded(why.decisions),
            steps=steps,
            asks={ask.id: ask for ask in await approvals_of(site.services, actor, found.id)},
            after=after,
            more=more,
        )

    async def _steps(request: Request, run: str, after: int) -> tuple[Sequence[object], int | None]:
        lines: list[EventView] = []
        while page := await _events(request, run, lines[-1].seq if lines else after, _LINES):
            lines += page
            steps, more = steps_until(lines, STEPS)
            if more is not None:
                return steps, more
        return steps_until(lines, STEPS)

    async def _output(request: Request, run: str) -> str:
        """What the step at that line printed, or its whole text."""
        line = number(request, "line") or 0
        first = await _events(request, run, line - 1, 1) if line else ()
        if not first or first[0].seq != line:
            raise HTTPException(404)
        tool = first[0].body.get("id") if first[0].kind == "tool-started" else None
        seq = line
        while tool is not None and (page := await _events(request, run, seq, _LINES)):
            seq = page[-1].seq
            for event in page:
                if event.kind == "tool-finished" and event.body.get("id") == tool:
                    return _joined(first[0], str(event.body.get("output") or ""))
        return _joined(first[0], str(first[0].body.get("output") or ""))

    async def _events(request: Request, run: str, after: int, limit: int) -> Sequence[EventView]:
        return await list_events(site.services, actor_of(request), run, after=after, limit=limit)


def _joined(begun: EventView, output: str) -> str:
    """A step's command or text where it is too long for its line, then its output."""
    said = next((str(begun.body[name]) for name in ("command", "file", "text", "words") if begun.body.get(name)), "")
    return "\n\n".join(text for text in (said if len(said) > 300 or not output else "", output) if text)


def headline(text: str) -> tuple[str, str, str]:
    """The outcome, the sentence and the code of an explanation's headline."""
    found = _HEADLINE.fullmatch(text)
    return ("", text, "") if found is None else (found[1], found[2], found[3] or "")


def folded(decisions: Sequence[DecisionView]) -> list[list[DecisionView]]:
    """Decisions in a row that say the same are one."""
    alike = groupby(decisions, key=lambda each: replace(each, attempt=0, step=min(each.step, 0), at=0.0))
    return [list(same) for _, same in alike]
