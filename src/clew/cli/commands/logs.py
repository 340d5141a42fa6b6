"""`clew logs`: the log of a run, with long events cut, message parts joined, and answers in their place."""

import sys
from functools import partial
from typing import Annotated

from cyclopts import Parameter

from clew.cli.activity import failure_of, text_of
from clew.cli.answers import read, read_all
from clew.cli.client import Server, thread_part
from clew.cli.input import OPTIONS, Options
from clew.cli.live import PAGE, RunPosition, events_after, follow_run
from clew.cli.output import counted, tell, tell_answer, tell_json
from clew.cli.pager import paged
from clew.cli.safe_text import one_line, safe
from clew.cli.times import clock
from clew.protocol.views import ApprovalView, EventView, RunView


def logs(
    run: Annotated[str, Parameter(metavar="RUN|THREAD")],
    /,
    *,
    follow: Annotated[bool, Parameter(alias="-f")] = False,
    full: bool = False,
    options: Options = OPTIONS,
) -> None:
    """Show the log of a run: the agent's messages, its tools and their output, its questions and who answered.

    Long events are cut, with a note of how much is missing.

    For example:

        clew logs issue-3

        clew logs run-17 -f

    Parameters
    ----------
    run
        Its name (run-17), a thread (its latest run), its id or a unique prefix.
    follow
        Follow the run until it ends. With --json, prints one event per line.
    full
        Show everything.
    """
    server = Server(options.data)
    found = read(RunView, server.get(f"/runs/{thread_part(run)}"))
    place, log = RunPosition(found.id), _LogPrinter(found.ref, full=full)
    place.outage.over()
    if not follow:
        every = list(events_after(server, place))
        if options.json:
            return tell_json(every)
        for answered in read_all(
            ApprovalView, server.get("/approvals", {"run": found.id, "state": "all", "limit": PAGE})
        ):
            log.answered(answered)
        with paged():
            for event in every:
                log.show(event)
            log.flush()
            if found.held:
                # The log of a held run does not say why it is held.
                tell(f"The run is held: {one_line(found.words or '')}")
        return None
    for seen in follow_run(server, place):
        if isinstance(seen, EventView):
            tell_answer(seen, partial(log.show, seen), as_json=options.json)
            sys.stdout.flush()
        elif isinstance(seen, ApprovalView):
            if seen.state != "pending" and not options.json:
                log.answered(seen)
                log.flush_answers()
        else:
            found = seen
    if not options.json:
        log.flush()
        tell(failure_of(found) or "The run succeeded.")
    return None


LINES = 20
CHARACTERS = 2_000
"""Shown of one event without --full. The agent's messages are never cut."""

_NAME = 40

_WITHIN_MESSAGE = frozenset({"steer", "thought", "plan", "used", "session"})
_STEPS_WITHIN_MESSAGE = frozenset({"silence", "interrupt"})


class _LogPrinter:
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
        if not _within_message(event):
            self._speak()
        match event.kind:
            case "tool-started":
                self._tools[event.body.get("id")] = str(event.body.get("name") or "")
            case "approval" | "question":
                self._asked.add(event.body.get("id"))
            case _:
                pass
        if told := text_of(event):
            # Some agents use the whole command as a tool's name.
            name = one_line(self._tools.get(event.body.get("id"), ""), _NAME) if event.kind == "tool-finished" else ""
            self._write(event.at, f"{name} {told}".strip())

    def answered(self, approval: ApprovalView) -> None:
        """Remembers an answer; it is printed in order of time."""
        if approval.ended_at is not None:
            self._answers.setdefault(approval.id, approval)

    def flush_answers(self) -> None:
        """Prints all answers, but not an unfinished message."""
        self._answered_before(float("inf"))

    def flush(self) -> None:
        """Prints everything, also an unfinished message."""
        self.flush_answers()
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
        first, *more = self._bounded(safe(text), whole=whole or self._full)
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
        return [*kept, f"… {counted(left, 'character')} more; see `clew logs {self._run} --full`."]


def _within_message(event: EventView) -> bool:
    """Whether the event can occur within a message: the message continues after it, and is printed once."""
    return event.kind in _WITHIN_MESSAGE or (event.kind == "step" and event.body.get("what") in _STEPS_WITHIN_MESSAGE)


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
