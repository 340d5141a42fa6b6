"""A run's log for people: one event after the other, the parts of a message put together again, what is long cut and
said to be, and the answers of people where they came."""

from clew.cli.activity import text_of
from clew.cli.harmless import harmless, one_line
from clew.cli.telling import counted, tell
from clew.cli.times import clock
from clew.protocol.views import ApprovalView, EventView

LINES = 20
CHARACTERS = 2_000
"""Of one event, unless all of it is asked for. What the agent says is shown whole in any case."""

_NAME = 40

_BESIDE = frozenset({"steer", "thought", "plan", "used", "session"})
_BESIDE_STEPS = frozenset({"silence", "interrupt"})


class Logbook:
    def __init__(self, run: str, *, full: bool) -> None:
        self._run = run
        self._full = full
        self._parts: list[str] = []
        self._at = 0.0
        self._tools: dict[object, str] = {}
        self._asked: set[object] = set()
        self._answers: dict[str, ApprovalView] = {}

    def show(self, event: EventView) -> None:
        self._answered_before(event.at)
        if event.kind == "text":
            self._at = event.at
            text = str(event.body.get("text") or "")
            if not event.body.get("final", True):
                self._parts.append(text)
                return
            self._parts = [text]
        if not _beside(event):
            self._speak()
        match event.kind:
            case "tool-started":
                self._tools[event.body.get("id")] = str(event.body.get("name") or "")
            case "approval" | "question":
                self._asked.add(event.body.get("id"))
            case _:
                pass
        if told := text_of(event):
            # Some agents call a tool by all that it is to run.
            name = one_line(self._tools.get(event.body.get("id"), ""), _NAME) if event.kind == "tool-finished" else ""
            self._write(event.at, f"{name} {told}".strip())

    def answered(self, approval: ApprovalView) -> None:
        """Shown between the events before it and those after it, however early this is known."""
        if approval.ended_at is not None:
            self._answers.setdefault(approval.id, approval)

    def answers(self) -> None:
        """Whatever people answered is shown; a message that is not finished waits for its end."""
        self._answered_before(float("inf"))

    def so_far(self) -> None:
        """Whatever is known is shown, an unfinished message too."""
        self.answers()
        self._speak()

    def _answered_before(self, moment: float) -> None:
        due = [each for each in self._answers.values() if each.id in self._asked and (each.ended_at or 0.0) < moment]
        for each in sorted(due, key=lambda one: one.ended_at or 0.0):
            self._asked.remove(each.id)
            self._write(each.ended_at or 0.0, _answer(each))

    def _speak(self) -> None:
        if self._parts:
            text, self._parts = "".join(self._parts), []
            self._write(self._at, f"says: {text}", whole=True)

    def _write(self, at: float, text: str, *, whole: bool = False) -> None:
        first, *more = self._bounded(harmless(text), whole=whole or self._full)
        tell(f"{clock(at)}  {first}")
        for line in more:
            tell(f"    {line}")

    def _bounded(self, text: str, *, whole: bool) -> list[str]:
        text = text.rstrip()
        lines = text.splitlines() or [""]
        kept = lines if whole else text[:CHARACTERS].splitlines()[:LINES] or [""]
        left = len(text) - len("\n".join(kept))
        if left <= 0 or whole:
            return kept
        return [*kept, f"… {counted(left, 'character')} more: `clew logs {self._run} --full` shows them."]


def _beside(event: EventView) -> bool:
    """Whether it may fall into a message without ending it: the whole message still comes, and is shown once."""
    return event.kind in _BESIDE or (event.kind == "step" and event.body.get("what") in _BESIDE_STEPS)


def _answer(approval: ApprovalView) -> str:
    words = f": {one_line(approval.answer)}" if approval.answer else ""
    by = f" by {approval.answered_by}" if approval.answered_by else ""
    match approval.state:
        case "approved":
            done = "answered" if approval.kind == "question" else "allowed"
        case "stale":
            done, words = "unanswered", ": the run ended first"
        case other:
            done = other
    return f"{done}{by}{words} ({approval.id})"
