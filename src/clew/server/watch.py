"""What a client watches (a thread, a run, or everything), and the changes since it was last read."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clew.control.actor import Actor
from clew.control.approvals import approvals_of, list_approvals
from clew.control.runs import list_events, list_runs, show_run
from clew.control.services import Services
from clew.control.threads import list_threads, show_thread
from clew.protocol.views import ApprovalView, LogView, RunView, ThreadView
from clew.server.stream import StreamPosition, event

ANYTHING = "*"
"""The topic that means: hints were lost, read everything."""

_MAX_VIEWS = 100
_LOG_PAGE = 200
_FOLLOWED = 32
"""Logs of at most this many runs, the newest, are sent at once. A stream of one run has no such limit."""


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
    """`logs`: whether log lines of its runs are sent too."""

    @property
    def logs(self) -> bool: ...

    async def read(self, services: Services, actor: Actor) -> Seen: ...

    def concerns(self, topics: frozenset[str], seen: Seen) -> bool:
        """Whether these hints mean that something in it may have changed."""
        ...


@dataclass(frozen=True, slots=True)
class Everything:
    logs: bool = False

    async def read(self, services: Services, actor: Actor) -> Seen:
        threads = await list_threads(services, actor, limit=_MAX_VIEWS)
        return Seen(
            threads, await list_runs(services, actor, limit=_MAX_VIEWS), await list_approvals(services, actor, "all")
        )

    def concerns(self, topics: frozenset[str], seen: Seen) -> bool:  # noqa: ARG002 - part of the protocol
        return any(topic.startswith(("thread:", "run:", ANYTHING)) for topic in topics)


@dataclass(frozen=True, slots=True)
class OneThread:
    id: str
    logs: bool = True
    _asked: set[str] = field(default_factory=set)

    async def read(self, services: Services, actor: Actor) -> Seen:
        page = await show_thread(services, actor, self.id, limit=1)
        # Pending approvals, and the outcome of those that this client has seen pending.
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

    async def read(self, services: Services, actor: Actor) -> Seen:
        run = await show_run(services, actor, self.id)
        return Seen(runs=(run,), approvals=await approvals_of(services, actor, self.id))

    def concerns(self, topics: frozenset[str], seen: Seen) -> bool:  # noqa: ARG002 - part of the protocol
        return not topics.isdisjoint((ANYTHING, f"run:{self.id}"))


class Watch:
    """One client: the views it was sent last, and its position in the logs."""

    def __init__(self, services: Services, actor: Actor, scope: Scope, position: StreamPosition | None) -> None:
        self._services = services
        self._actor = actor
        self._scope = scope
        self._position = position
        self._seen = Seen()

    def concerns(self, topics: frozenset[str]) -> bool:
        return self._scope.concerns(topics, self._seen)

    async def changes(self) -> AsyncIterator[bytes]:
        """Events for what changed since the last call. Log lines come before views: when a run's view says that it
        ended, its whole log was sent."""
        seen = await self._scope.read(self._services, self._actor)
        position = self._start(seen)
        if self._scope.logs:
            followed = _followed(position, seen.runs)
            for run in followed:
                async for line in self._log_lines(position, run):
                    yield line
            _forget(position, followed)
        sent = self._seen.views()
        self._seen = seen
        for (kind, key), view in seen.views().items():
            if sent.get((kind, key)) != view:
                yield event(kind, view, position)

    def _start(self, seen: Seen) -> StreamPosition:
        if self._position is None:
            # A new client gets the logs of live runs, not of those that ended before it connected.
            self._position = StreamPosition(max((run.ended_at or 0.0 for run in seen.runs), default=0.0))
        return self._position

    async def _log_lines(self, position: StreamPosition, run: RunView) -> AsyncIterator[bytes]:
        while lines := await list_events(
            self._services, self._actor, run.id, after=position.lines[run.id], limit=_LOG_PAGE
        ):
            for each in lines:
                position.lines[run.id] = each.seq
                yield event("log", LogView(run.id, each.seq, each.kind, each.at, each.body), position)


def _followed(position: StreamPosition, runs: Sequence[RunView]) -> list[RunView]:
    """Runs whose log is sent, oldest first: those in the position, the live ones, and those that ended since."""
    found = [run for run in runs if run.id in position.lines or run.ended_at is None or run.ended_at > position.ended]
    for run in found[:_FOLLOWED]:
        position.lines.setdefault(run.id, 0)
    return found[_FOLLOWED - 1 :: -1]


def _forget(position: StreamPosition, sent: Sequence[RunView]) -> None:
    """Keeps the position short: drops runs whose log was sent completely."""
    ended = [run for run in sent if run.ended_at is not None]
    if len(position.lines) > _FOLLOWED:
        for run in ended:
            del position.lines[run.id]
            position.ended = max(position.ended, run.ended_at or 0.0)
    while len(position.lines) > 2 * _FOLLOWED:
        del position.lines[next(iter(position.lines))]
