"""Where the time of a run went: waiting, opening its session, and its turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from clew.protocol.views import EventView, RunView

_FEW = 4
"""An axis is at most so many times as long as the run in the middle: one long wait must not hide all others."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, with its place on the axis in per cent."""

    kind: str
    seconds: float
    start: float = 0.0
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class Bar:
    run: RunView
    spans: tuple[Span, ...]
    cut: bool = False
    """Whether it is longer than the axis."""


def opened_at(events: Sequence[EventView]) -> float | None:
    """When the session was found as planned, from the first lines of a log. A run that opened twice has two."""
    checks = [event.at for event in events if event.kind == "step" and event.body.get("what") == "verify"]
    return checks[-1] if checks else None


def spans_of(run: RunView, opened: float | None, now: float) -> tuple[Span, ...]:
    end = run.ended_at or now
    started = end if run.started_at is None else run.started_at
    spans = [Span("waiting", max(0.0, started - run.queued_at))]
    if run.started_at is not None:
        turn = run.started_at if opened is None else min(max(opened, run.started_at), end)
        if opened is not None:
            spans.append(Span("opening", turn - run.started_at))
        spans.append(Span("turn", max(0.0, end - turn)))
    return tuple(spans)


def bars_of(runs: Sequence[tuple[RunView, tuple[Span, ...]]]) -> tuple[tuple[Bar, ...], float]:
    """Each run's spans on one axis that begins when it was queued, and the seconds of that axis."""
    lengths = [sum(span.seconds for span in spans) for _, spans in runs]
    axis = max(0.001, min(max(lengths, default=0.0), _FEW * median(lengths) if lengths else 0.0))
    return tuple(_bar(run, spans, axis) for run, spans in runs), axis


def _bar(run: RunView, spans: tuple[Span, ...], axis: float) -> Bar:
    placed: list[Span] = []
    at = 0.0
    for span in spans:
        start = min(100.0, 100 * at / axis)
        end = min(100.0, 100 * (at + span.seconds) / axis)
        placed.append(Span(span.kind, span.seconds, round(start, 2), round(end - start, 2)))
        at += span.seconds
    return Bar(run, tuple(placed), at > axis * 1.001)
