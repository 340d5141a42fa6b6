"""The changes of a thread: what an agent's worktree has that its base does not, and how a person takes it over."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from clew.control.runs import list_runs
from clew.control.threads import show_thread
from clew.control.work import choose_agent, show_diff
from clew.ports.fault import Fault
from clew.protocol.views import RunView
from clew.protocol.work_views import DiffView
from clew.web.diff import DiffFile, files_of
from clew.web.site import Site, actor_of

AT_ONCE = 300
"""Lines of a file that come with the page; a longer one is read when it is opened."""
SCREEN = 1_200
"""Lines of all files that come with the page."""
OPEN = 5
"""So many files are shown unfolded."""
LONGEST = 5_000
"""Lines of one file that a browser is given."""
_RUNS = 100


@dataclass(frozen=True, slots=True)
class ShownFile:
    """`here`: its lines come with the page."""

    file: DiffFile
    here: bool


def shown_files(files: Sequence[DiffFile]) -> tuple[ShownFile, ...]:
    room = SCREEN
    shown = []
    for file in files:
        here = file.whole and file.lines <= min(AT_ONCE, room)
        room -= file.lines if here else 0
        shown.append(ShownFile(file, here))
    return tuple(shown)


def add(site: Site) -> None:
    @site.page("/threads/{ref}/changes")
    async def changes(request: Request) -> Response:
        """Of `agent`; with `run`, what that run changed; with `path`, those files alone, in full."""
        actor, ref = actor_of(request), request.path_params["ref"]
        asked = request.query_params
        page = await show_thread(site.services, actor, ref, limit=1)
        agent, runs = asked.get("agent") or None, tuple[RunView, ...]()
        diff, fault = None, None
        try:
            agent = await choose_agent(site.services, actor, ref, agent, asked.get("run") or None)
            runs = await _runs(request, agent)
            # The part that follows what happens needs no diff, which is a matter of git and takes a while.
            diff = None if asked.get("part") == "work" else await _diff(request, agent)
        except Fault as refused:
            fault = refused
        files = files_of(diff.text) if diff is not None else ()
        return site.show(
            request,
            "changes.html",
            page=page,
            lane=next((lane for lane in page.lanes if lane.agent == agent), None),
            lanes=[lane for lane in page.lanes if lane.branch],
            diff=diff,
            runs=runs,
            fault=fault,
            files=shown_files(files),
            alone=bool(asked.getlist("path")),
            opened=len(files) <= OPEN,
            longest=LONGEST,
        )

    async def _diff(request: Request, agent: str) -> DiffView:
        asked = request.query_params
        return await show_diff(
            site.services,
            actor_of(request),
            request.path_params["ref"],
            agent,
            asked.get("run") or None,
            asked.getlist("path")[:2],
        )

    async def _runs(request: Request, agent: str) -> tuple[RunView, ...]:
        found = await list_runs(site.services, actor_of(request), request.path_params["ref"], agent, limit=_RUNS)
        return tuple(run for run in found if run.started_at is not None)
