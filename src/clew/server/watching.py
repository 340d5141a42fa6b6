"""What a client watches: a thread, a run, or everything. It is read as it is now, and what differs is told."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clew.control.actor import Actor
from clew.control.approvals import approvals_of, list_approvals
from clew.control.runs import list_events, list_runs, show_run
from clew.control.services import Services
from clew.control.threads import list_threads, show_thread
from clew.protocol.views import ApprovalView, LogView, RunView, ThreadView
from clew.server.stream import Mark, event

ANYTHING = "*"
"""The hint that hints were missed."""

_SHOWN = 100
_LINES = 200
_FOLLOWED = 32
"""So many runs' logs at once, the newest; the log of any run can be asked for by itself."""


@dataclass(frozen=True, slots=True)
class Seen:
    threads: tuple[ThreadView, ...] = ()
    runs: tuple[RunView, ...] = ()
    approvals: tuple[ApprovalView, ...] = ()

    def views(self) -> dict[tuple[str, str], object]:
        found: dict[tuple[str, str], object] = {("thread", each.id): each for each in self.threads}
        found |= {("run", each.id): each for each in reversed(self.runs)}
        return found | {("approval", each.id): each for each in self.approvals}


class Scope(Protocol):
    """What is watched. `logs`: whether the logs of its runs are told, too."""

    @property
    def logs(self) -> bool: ...

    async def look(self, services: Services, actor: Actor) -> Seen: ...

    def concerns(self, topics: frozenset[str], seen: Seen) -> bool:
        """Whether hints say that something of it changed."""
        ...


@dataclass(frozen=True, slots=True)
class Everything:
    logs: bool = False

    async def look(self, services: Services, actor: Actor) -> Seen:
        threads = await list_threads(services, actor, limit=_SHOWN)
        return Seen(
            threads, await list_runs(services, actor, limit=_SHOWN), await list_approvals(services, actor, "all")
        )

    def concerns(self, topics: frozenset[str], seen: Seen) -> bool:  # noqa: ARG002 - whatever was seen
        return any(topic.startswith(("thread:", "run:", ANYTHING)) for topic in topics)


@dataclass(frozen=True, slots=True)
class OneThread:
    id: str
    logs: bool = True
    _asked: set[str] = field(default_factory=set)

    async def look(self, services: Services, actor: Actor) -> Seen:
        page = await show_thread(services, actor, self.id, limit=1)
        # Those that wait, and what became of those that this client knows of.
        answered = [
            each for run in page.runs if run.id in self._asked for each in await approvals_of(services, actor, run.id)
        ]
        self._asked.update(each.run for each in page.approvals)
        return Seen((page.thread,), page.runs, (*page.approvals, *answered))

    def concerns(self, topics: frozenset[str], seen: Seen) -> bool:
        return not topics.isdisjoint((ANYTHING, f"thread:{self.id}", *(f"run:{run.id}" for run in seen.runs)))


@dataclass(frozen=True, slots=True)
class OneRun:
    id: str
    logs: bool = True

    async def look(self, services: Services, actor: Actor) -> Seen:
        run = await show_run(services, actor, self.id)
        return Seen(runs=(run,), approvals=await approvals_of(services, actor, self.id))

    def concerns(self, topics: frozenset[str], seen: Seen) -> bool:  # noqa: ARG002 - it is the only one
        return not topics.isdisjoint((ANYTHING, f"run:{self.id}"))


class Watch:
    """One client's view of its scope: what it was told last, and how far into the logs it is."""

    def __init__(self, services: Services, actor: Actor, scope: Scope, mark: Mark | None) -> None:
        self._services = services
        self._actor = actor
        self._scope = scope
        self._mark = mark
        self._seen = Seen()

    def concerns(self, topics: frozenset[str]) -> bool:
        return self._scope.concerns(topics, self._seen)

    async def news(self) -> AsyncIterator[bytes]:
        """What differs from the last time. Logs come before the views: when a run is said to have ended, all of its
        log was told."""
        seen = await self._scope.look(self._services, self._actor)
        mark = self._begin(seen)
        if self._scope.logs:
            followed = _followed(mark, seen.runs)
            for run in followed:
                async for line in self._lines(mark, run):
                    yield line
            _let_go(mark, followed)
        told = self._seen.views()
        self._seen = seen
        for (kind, key), view in seen.views().items():
            if told.get((kind, key)) != view:
                yield event(kind, view, mark)

    def _begin(self, seen: Seen) -> Mark:
        if self._mark is None:
            # A new client is told the logs of runs that go on, not of those that ended before it came.
            self._mark = Mark(max((run.ended_at or 0.0 for run in seen.runs), default=0.0))
        return self._mark

    async def _lines(self, mark: Mark, run: RunView) -> AsyncIterator[bytes]:
        while lines := await list_events(self._services, self._actor, run.id, after=mark.lines[run.id], limit=_LINES):
            for each in lines:
                mark.lines[run.id] = each.seq
                yield event("log", LogView(run.id, each.seq, each.kind, each.at, each.body), mark)


def _followed(mark: Mark, runs: Sequence[RunView]) -> list[RunView]:
    """Those whose log is told, oldest first: what the mark has, what goes on, and what ended since."""
    found = [run for run in runs if run.id in mark.lines or run.ended_at is None or run.ended_at > mark.ended]
    for run in found[:_FOLLOWED]:
        mark.lines.setdefault(run.id, 0)
    return found[_FOLLOWED - 1 :: -1]


def _let_go(mark: Mark, told: Sequence[RunView]) -> None:
    """A mark stays short, however long a client watches: it forgets runs that were told to their end."""
    over = [run for run in told if run.ended_at is not None]
    if len(mark.lines) > _FOLLOWED:
        for run in over:
            del mark.lines[run.id]
            mark.ended = max(mark.ended, run.ended_at or 0.0)
    while len(mark.lines) > 2 * _FOLLOWED:
        del mark.lines[next(iter(mark.lines))]
