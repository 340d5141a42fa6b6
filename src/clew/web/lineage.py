"""Where everything of a thread's lineage is drawn: a row for each session, its runs along it, edges between rows. Pure.

A step to the right is the next run of the thread, not an hour: a thread that slept for a week stays readable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from clew.kernel import Outcome, SessionState
from clew.protocol.lineage import LineageView, TurnDecision
from clew.protocol.views import RunView, SessionView
from clew.web.words import plain

LEFT, TOP, ROOM = 16.0, 34.0, 90.0
"""Space at the left, above and at the right."""
LABEL, SENTENCE, BAR, APART = 22.0, 18.0, 10.0, 16.0
"""The height of a session's name, of the sentence that says how it began, of its bar, and of the space below."""
NARROWEST, STEPS = 960.0, (14.0, 56.0)
TICK = 160.0
"""From one moment that is named to the next, at least."""
_LETTER = 6.6
"""About the width of a letter of a sentence."""

_BREAKS = frozenset({Outcome.RESEED, Outcome.BLANK})


@dataclass(frozen=True, slots=True)
class Dot:
    """A run that used the session."""

    x: float
    run: RunView


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session and where it is drawn. `began` is the decision that made it, if it is known; `parent`, the session
    before it; `broke`: what that one knew was lost, or left behind on purpose."""

    session: SessionView
    machine: str
    top: float
    y: float
    start: float
    end: float
    dots: tuple[Dot, ...]
    began: TurnDecision | None
    by: RunView | None
    """The run of that decision."""
    parent: str | None
    broke: bool
    current: bool
    """The one that the next message goes to."""
    live: bool
    """A run uses it now."""
    label: str
    sentence: str
    """Cut to the width of the drawing."""


@dataclass(frozen=True, slots=True)
class Edge:
    """From the end of a session to the start of the one that came of it, as an SVG path."""

    path: str
    outcome: str
    words: str
    broke: bool


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    at: float


@dataclass(frozen=True, slots=True)
class Drawing:
    width: float
    height: float
    rows: tuple[SessionRow, ...]
    edges: tuple[Edge, ...]
    ticks: tuple[Tick, ...]


def draw(view: LineageView) -> Drawing:
    sessions = sorted(view.sessions, key=lambda each: (each.agent, each.scope != "lane", each.born_at, each.generation))
    used: dict[str, list[RunView]] = {each.id: [] for each in sessions}
    for run in view.runs:
        if run.session in used:
            used[run.session].append(run)
    columns = _columns(sessions, used)
    step = min(max(NARROWEST / max(len(columns), 1), STEPS[0]), STEPS[1])
    width = max(NARROWEST, LEFT + step * max(len(columns) - 1, 0) + ROOM)
    xs = {at: LEFT + step * index for index, at in enumerate(columns)}
    rows = _rows(view, sessions, used, xs, width)
    height = rows[-1].y + BAR + APART if rows else TOP
    return Drawing(width, height, rows, _edges(rows), _ticks(columns, xs))


def _when(run: RunView) -> float:
    return run.started_at or run.queued_at


def _columns(sessions: Sequence[SessionView], used: Mapping[str, Sequence[RunView]]) -> list[float]:
    """The moments that have a place of their own: each run, and the birth of a session that no known run used."""
    moments = {_when(run) for runs in used.values() for run in runs}
    return sorted(moments | {each.born_at for each in sessions if not used[each.id]})


def _rows(
    view: LineageView,
    sessions: Sequence[SessionView],
    used: Mapping[str, Sequence[RunView]],
    xs: Mapping[float, float],
    width: float,
) -> tuple[SessionRow, ...]:
    began = _beginnings(view, used)
    runs = {run.id: run for run in view.runs}
    before: dict[tuple[str, str], SessionView] = {}
    newest = {each.id for each in {each.agent: each for each in sessions if each.scope == "lane"}.values()}
    rows: list[SessionRow] = []
    top = TOP
    for session in sessions:
        lane = (session.agent, session.scope)
        decision, earlier = began.get(session.id), before.get(lane)
        before[lane] = session
        parent = (decision.session if decision is not None else None) or (None if earlier is None else earlier.id)
        broke = decision is not None and decision.outcome in _BREAKS and earlier is not None
        known = sorted(used[session.id], key=_when)
        at = [xs[_when(run)] for run in known] or [xs[session.born_at]]
        sentence = "" if decision is None else decision.words
        y = top + LABEL + (SENTENCE if sentence else 0.0)
        rows.append(
            SessionRow(
                session=session,
                machine=view.machines.get(session.runtime, ""),
                top=top,
                y=y,
                start=at[0],
                end=at[-1],
                dots=tuple(Dot(xs[_when(run)], run) for run in known),
                began=decision,
                by=None if decision is None else runs.get(decision.run),
                parent=parent,
                broke=broke,
                current=session.id in newest and session.state == SessionState.HEALTHY,
                live=any(run.ended_at is None for run in known),
                label=_cut(_label(session, view.machines.get(session.runtime, "")), width),
                sentence=_cut(plain(sentence), width - 70),
            )
        )
        top = y + BAR + APART
    return tuple(rows)


def _beginnings(view: LineageView, used: Mapping[str, Sequence[RunView]]) -> dict[str, TurnDecision]:
    """The decision that made each session: the last one of its first run before it was born."""
    by_run: dict[str, list[TurnDecision]] = {}
    for each in view.decisions:
        by_run.setdefault(each.run, []).append(each)
    oldest = min((run.queued_at for run in view.runs), default=0.0)
    found = {}
    for session in view.sessions:
        if not used[session.id] or (view.more and session.born_at < oldest):
            continue
        first = min(used[session.id], key=lambda run: run.queued_at)
        made = [each for each in by_run.get(first.id, ()) if each.at <= session.born_at and each.session != session.id]
        if made:
            found[session.id] = made[-1]
    return found


def _label(session: SessionView, machine: str) -> str:
    """ada, session 3 on laptop in shop/issue-12."""
    directory = "/".join(PurePosixPath(session.directory).parts[-2:])
    where = f" on {machine}" if machine else ""
    alone = "" if session.scope == "lane" else ", for one run"
    return plain(f"{session.agent}, session {session.generation}{alone}{where} in {directory}")


def _cut(text: str, width: float) -> str:
    most = int(width / _LETTER)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _edges(rows: Sequence[SessionRow]) -> tuple[Edge, ...]:
    by_id = {row.session.id: row for row in rows}
    edges = []
    for row in rows:
        parent = by_id.get(row.parent or "")
        if parent is None or parent is row:
            continue
        # From where the parent was when the child began; a fork may leave it in the middle.
        start = max((dot.x for dot in parent.dots if dot.x < row.start), default=min(parent.start, row.start))
        middle = (start + row.start) / 2
        y_from, y_to = parent.y + BAR / 2, row.y + BAR / 2
        path = f"M{start:g} {y_from:g}C{middle:g} {y_from:g} {start:g} {y_to:g} {row.start:g} {y_to:g}"
        outcome, words = ("", "") if row.began is None else (row.began.outcome, row.began.words)
        edges.append(Edge(path, outcome, words, row.broke))
    return tuple(edges)


def _ticks(columns: Sequence[float], xs: Mapping[float, float]) -> tuple[Tick, ...]:
    """Where there is room for the words above them."""
    ticks: list[Tick] = []
    for at in columns:
        if not ticks or xs[at] - ticks[-1].x >= TICK:
            ticks.append(Tick(xs[at], at))
    return tuple(ticks)
