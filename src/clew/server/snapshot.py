"""The views of a thread or a run as they are now: what a stream sends at its start, and again after every change."""

from dataclasses import replace

from clew.control.actor import Actor
from clew.control.approvals import approvals_of
from clew.control.runs import show_run
from clew.control.services import Services
from clew.control.threads import show_screen
from clew.protocol.live import LogScope, RunLog, ThreadLog
from clew.protocol.views import ApprovalView, RunView, ThreadView

Snapshot = dict[tuple[str, str], ThreadView | RunView | ApprovalView]
"""By the kind of event and the id, in the order in which they are sent."""


class Snapshots:
    """`asked` are the runs of a thread that have had a pending approval: its outcome is sent, too."""

    def __init__(self, scope: LogScope) -> None:
        self._scope = scope
        self._asked: set[str] = set()

    async def read(self, services: Services, actor: Actor) -> Snapshot:
        match self._scope:
            case ThreadLog(thread):
                return await self._thread(services, actor, thread)
            case RunLog(run):
                view = await show_run(services, actor, run)
                return _by_id((), (view,), await approvals_of(services, actor, run))

    async def _thread(self, services: Services, actor: Actor, thread: str) -> Snapshot:
        page = await show_screen(services, actor, thread, limit=1)
        answered = [
            each for run in page.runs if run.id in self._asked for each in await approvals_of(services, actor, run.id)
        ]
        self._asked.update(each.run for each in page.approvals)
        # Every client of the feed gets the same event, whoever it is.
        return _by_id((replace(page.thread, marks=None),), page.runs, (*page.approvals, *answered))


def _by_id(threads: tuple[ThreadView, ...], runs: tuple[RunView, ...], approvals: tuple[ApprovalView, ...]) -> Snapshot:
    found: Snapshot = {("thread", each.id): each for each in threads}
    found |= {("run", each.id): each for each in reversed(runs)}
    return found | {("approval", each.id): each for each in approvals}
