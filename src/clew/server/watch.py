"""What a client watches (a thread, a run, or everything), and the changes since then as server-sent events."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import orjson

from clew.control.actor import Actor
from clew.control.approvals import approvals_of, list_approvals
from clew.control.runs import list_events, list_runs, show_run
from clew.control.services import Services
from clew.control.threads import list_threads, show_thread
from clew.protocol.views import ApprovalView, LogView, RunView, ThreadView

ANYTHING = "*"
"""The topic that means: hints were lost, read everything."""

KEEP_ALIVE = b": still here\n\n"
RETRY = b"retry: 1000\n\n"

_MAX_VIEWS = 100
_LOG_PAGE = 200
_FOLLOWED = 32
"""Logs of at most this many runs, the newest, are sent at once. A stream of one run has no such limit."""


_SHAPE = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)((?:,[A-Za-z0-9_-]{1,80}:\d{1,15}){0,100})")


@dataclass(slots=True)
class StreamPosition:
    """How far a client has read: the last log line of each run it follows, and when the last run ended that it has
    read completely. Runs that ended later, or not yet, are new to it. It is sent as the event id."""

    ended: float = 0.0
    lines: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.ended!r}" + "".join(f",{run}:{seq}" for run, seq in self.lines.items())


def read_position(text: str) -> StreamPosition | None:
    """None if the text was not written by `str(StreamPosition)`: the client then starts as a new one."""
    if not (found := _SHAPE.fullmatch(text)):
        return None
    pairs = (pair.split(":") for pair in found[2].split(",")[1:])
    return StreamPosition(float(found[1]), {run: int(seq) for run, seq in pairs})


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


def event(kind: str, view: object, position: StreamPosition | None = None) -> bytes:
    """One `data:` line is enough: JSON contains no raw line break."""
    event_id = b"" if position is None else f"id: {position}\n".encode()
    return b"%sevent: %s\ndata: %s\n\n" % (event_id, kind.encode(), _json(view))


def _json(view: object) -> bytes:
    try:
        return orjson.dumps(view)
    except TypeError:
        # A lone surrogate, from an agent that cut its output within a character: json writes it as an escape.
        return json.dumps(view, default=_fields).encode()


def _fields(view: Any) -> dict[str, object]:
    return {each.name: getattr(view, each.name) for each in fields(view)}
