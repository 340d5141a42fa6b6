"""A thread as a conversation: entries and runs in one order, where continuity broke, and the steps of a run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from clew.control.threads import RUNS_SHOWN
from clew.kernel import Outcome
from clew.protocol.views import EntryView, EventView, RunView, ThreadPage

_BREAKS = frozenset({Outcome.FORK, Outcome.TRANSFER, Outcome.RESEED, Outcome.BLANK})


@dataclass(frozen=True, slots=True)
class Item:
    """An entry, a run without an entry, or an entry with the run whose agent wrote it. `breaks`: the run did not go on
    in the session that its lane had before."""

    entry: EntryView | None = None
    run: RunView | None = None
    breaks: bool = False

    @property
    def id(self) -> str:
        """Stays the same however often the item is shown."""
        return f"e-{self.entry.seq}" if self.entry is not None else f"r-{self.run.id}" if self.run is not None else ""

    @property
    def live(self) -> bool:
        return self.entry is None and self.run is not None and self.run.ended_at is None


def items_of(page: ThreadPage, after: int = 0) -> tuple[Item, ...]:
    """In the order of the journal. A run that wrote nothing stands after the last entry before it started; one that has
    not ended stands last. `after`: only what is newer than that entry, with which the page begins."""
    runs = {run.id: run for run in page.runs}
    # With few runs all of them are known, also where only what is newer was asked for.
    whole = not page.earlier or len(page.runs) < RUNS_SHOWN
    first = _first_runs(page.runs) if whole else frozenset[str]()
    items = [_of_entry(entry, runs, first) for entry in page.entries if entry.seq > after]
    wrote = {entry.run for entry in page.entries}
    silent = sorted((run for run in page.runs if run.id not in wrote), key=lambda run: (run.queued_at, run.id))
    since = page.entries[0].at if page.entries and (page.earlier or after) else 0.0
    for run in silent:
        item = Item(run=run, breaks=_breaks(run, first))
        if run.ended_at is None:
            items.append(item)
        elif (run.ended_at if after else run.started_at or run.ended_at) >= since:
            items.insert(_place(items, run.started_at or run.ended_at), item)
    return tuple(items)


def _of_entry(entry: EntryView, runs: dict[str, RunView], first: frozenset[str]) -> Item:
    run = runs.get(entry.run or "") if entry.author_kind == "agent" else None
    return Item(entry, run, run is not None and _breaks(run, first))


def _breaks(run: RunView, first: frozenset[str]) -> bool:
    return run.decision in _BREAKS and run.id not in first


def _first_runs(runs: Iterable[RunView]) -> frozenset[str]:
    """The first run of each agent begins a conversation, and breaks none."""
    found: dict[str, RunView] = {}
    for run in runs:
        if run.agent not in found or run.queued_at < found[run.agent].queued_at:
            found[run.agent] = run
    return frozenset(run.id for run in found.values())


def _place(items: Sequence[Item], at: float) -> int:
    for index in range(len(items), 0, -1):
        entry = items[index - 1].entry
        if entry is not None and entry.at <= at:
            return index
    return 0


@dataclass(frozen=True, slots=True)
class Step:
    """A line of a run's log as a person reads it. `output` is shown when it is asked for."""

    seq: int
    kind: str
    at: float
    title: str
    text: str = ""
    output: str = ""
    ok: bool = True
    lasted: float | None = None
    """Seconds, for a tool that has finished."""
    ask: str = ""
    """The id of what the agent asked a person here."""


_QUIET = frozenset({"text", "used", "session", "done"})
"""What the page shows elsewhere."""


def steps_of(events: Sequence[EventView]) -> tuple[Step, ...]:
    """A tool's start and end are one step."""
    return steps_until(events, len(events))[0]


def steps_until(events: Sequence[EventView], most: int) -> tuple[tuple[Step, ...], int | None]:
    """The first steps, and the last line that they are made of if there are more. A tool that ends after that line is
    shown as running; its end is a step of the next page."""
    steps: list[Step] = []
    running: dict[str, int] = {}
    last = 0
    for event in events:
        if event.kind in _QUIET:
            last = event.seq
            continue
        tool = _text(event, "id")
        if event.kind == "tool-finished" and tool in running:
            place = running.pop(tool)
            begun = steps[place]
            steps[place] = replace(
                begun, output=_text(event, "output"), ok=bool(event.body.get("ok")), lasted=event.at - begun.at
            )
            last = event.seq
            continue
        if len(steps) == most:
            return tuple(steps), last
        step = _step(event)
        if event.kind == "tool-started":
            running[tool] = len(steps)
        steps.append(step)
        last = event.seq
    return tuple(steps), None


def streamed_text(events: Sequence[EventView]) -> str:
    """What the agent has written in the message that it is at: its parts since the last whole one."""
    parts = ""
    for event in events:
        if event.kind == "text":
            parts = "" if event.body.get("final", True) else parts + _text(event, "text")
    return parts


def last_words(events: Sequence[EventView]) -> str:
    """What an agent does now, in a line: what it writes, or the step that it is at."""
    for event in reversed(events):
        if event.kind == "text":
            return (streamed_text(events) or _text(event, "text")).strip().rpartition("\n")[2]
        if event.kind not in _QUIET and event.kind != "tool-finished":
            step = _step(event)
            return " ".join(f"{step.title} {step.text}".split())
    return ""


def _step(event: EventView) -> Step:
    said, words = _text(event, "text"), _text(event, "words")
    match event.kind:
        case "tool-started":
            return Step(
                event.seq, "tool", event.at, _text(event, "name"), _text(event, "command") or _text(event, "file")
            )
        case "tool-finished":
            ok = bool(event.body.get("ok"))
            return Step(event.seq, "tool", event.at, "Result", output=_text(event, "output"), ok=ok)
        case "thought":
            return Step(event.seq, "thought", event.at, "Thinks", said)
        case "plan":
            steps = event.body.get("steps")
            shown = steps if isinstance(steps, list) else []
            return Step(event.seq, "plan", event.at, "Plan", "\n".join(map(_plan_step, shown)))
        case "approval" | "question":
            about = _text(event, "command") or _text(event, "file") or words
            return Step(event.seq, "ask", event.at, "Asks", about, ask=_text(event, "id"))
        case "steer":
            taken = "Told during the turn" if event.body.get("taken") else "Not told during the turn"
            return Step(event.seq, "steer", event.at, taken, said)
        case "failed" | "retrying":
            return Step(event.seq, "trouble", event.at, event.kind.capitalize(), words, ok=False)
        case _:
            return Step(event.seq, "step", event.at, _text(event, "what").capitalize() or event.kind, words or said)


def _plan_step(step: object) -> str:
    return " ".join(map(str, step)) if isinstance(step, list) else str(step)


def _text(event: EventView, name: str) -> str:
    found = event.body.get(name)
    return found if isinstance(found, str) else ""
