"""Live events: how far the logs of a thread or a run were read, the lines after that, beats and changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from clew.protocol.views import LogView

TRACKED = 3
"""How many runs of each lane a position lists, the newest: the log of a run may be completed after its end."""


@dataclass(frozen=True, slots=True)
class ThreadLog:
    """The logs of all runs of a thread."""

    id: str


@dataclass(frozen=True, slots=True)
class RunLog:
    """The log of one run."""

    id: str


LogScope = ThreadLog | RunLog


@dataclass(frozen=True, slots=True)
class LogRun:
    id: str
    lane: str
    number: int
    ended: bool


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line with what its position is made of: the lane and the number of its run."""

    lane: str
    number: int
    view: LogView


@dataclass(frozen=True, slots=True)
class LogPosition:
    """How far the logs of one scope were read: for each lane its newest runs by number, each with its last line read.

    A lane has one run after another. So its runs before the first listed one were read, and those after it that are not
    listed were not, like all runs of a lane that is not listed."""

    lanes: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    def first(self, lane: str) -> int:
        """The number of the lane's first run that may have unread lines."""
        return min(self.lanes.get(lane, ()), default=0)

    def line(self, run: LogRun) -> int:
        """The last line read of a run that is not before `first`."""
        return self.lanes.get(run.lane, {}).get(run.number, 0)

    def last_line(self, run: LogRun) -> int | None:
        """Up to which line this position has a run; None for a run before `first`: all of it."""
        return None if run.number < self.first(run.lane) else self.line(run)

    def past(self, line: LogLine) -> "LogPosition":
        """The position after that line, which is the next one of its run."""
        runs = {**self.lanes.get(line.lane, {}), line.number: line.view.seq}
        return LogPosition({**self.lanes, line.lane: {number: runs[number] for number in sorted(runs)[-TRACKED:]}})

    def without(self, numbers: frozenset[int]) -> "LogPosition":
        """The same with these runs unread."""
        kept = {
            lane: {number: line for number, line in runs.items() if number not in numbers}
            for lane, runs in self.lanes.items()
        }
        return LogPosition({lane: runs for lane, runs in kept.items() if runs})

    def __str__(self) -> str:
        """As it stands in an event id: 17:45,18:3."""
        return ",".join(f"{number}:{line}" for runs in self.lanes.values() for number, line in runs.items())


@dataclass(frozen=True, slots=True)
class LogHead:
    """The position at the end of all logs, and the runs that it lists."""

    position: LogPosition
    runs: tuple[LogRun, ...]


@dataclass(frozen=True, slots=True)
class LogPage:
    """`runs` are those of which lines may come; `more`: the page is full, so there may be lines after it."""

    lines: tuple[LogLine, ...]
    runs: tuple[LogRun, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class BeatView:
    """Sent first and then every 10 seconds: the connection works, and this is how far it has come."""

    at: float
    version: str


@dataclass(frozen=True, slots=True)
class ChangedView:
    """What has changed, to be read anew by those who show it."""

    threads: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    all: bool = False
