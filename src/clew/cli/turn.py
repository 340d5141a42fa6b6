"""One wake, shown live until it has ended: the decision, the agent's messages and tools, and the result.

The agent's messages go to stdout and everything else to stderr, so that a reply can be piped.
"""

import sys
import time
from collections.abc import Callable

from clew.cli.activity import Speech, activity_of, approval_lines, decision_of, ended, failure_of, line_of
from clew.cli.answers import get_thread, parsed, read, read_all
from clew.cli.approver import at_terminal
from clew.cli.changes import changes_by
from clew.cli.client import NoAnswer, NotRunning, Refused, Server, part
from clew.cli.hold import Hold
from clew.cli.live import (
    HeldForPerson,
    Outage,
    RunPosition,
    Seen,
    follow_run,
    get_run,
    get_wake,
    next_run,
    raise_if_held,
)
from clew.cli.marks import LATEST, mark_shown, page_of
from clew.cli.output import ExitStatus, note, tell, tell_json, tell_problem, with_remedy
from clew.cli.safe_text import one_line
from clew.protocol.views import ApprovalView, EventView, RunView, WakeView
from clew.protocol.why_views import WhyView

Answerer = Callable[[ApprovalView], ApprovalView | None]
"""Asks the person; returns the answered approval."""

TAKEN = "store:message-taken"
"""The code of a refusal: an agent has the message."""

READ_BACK = "served:read-back"
"""The code of a wake: its run was cut off, and the reply was read from the agent's own store afterwards."""

_QUIET = frozenset({"thought", "used", "session", "done", "approval", "question", "failed", "step"})
"""Events that `clew logs` shows and a conversation does not; what matters of them is shown in another way."""


_GOES_ON = frozenset({"text", "thought", "tool-started", "plan", "approval", "question"})
"""Events that show that a hold is over: the agent works again."""


class Turn:
    """`answer` is called for every approval and question. Without it, the command to answer with is shown."""

    def __init__(
        self, server: Server, wake: WakeView, *, answer: Answerer | None = None, as_json: bool = False
    ) -> None:
        self._server = server
        self._wake = wake
        self._answer = answer
        self._json = as_json
        self._place: RunPosition | None = None
        self._run: RunView | None = None
        self._speech = Speech()
        self._absence = Outage()
        self._absence.over()
        self._decision = ""
        self._hold = Hold()
        self._noted = ""
        self._asked: set[str] = set()
        self._tools: dict[object, str] = {}
        self._denied: set[str] = set()
        """Commands and files that a person denied."""
        self.started = time.monotonic()
        self.doing = "starting"
        """What the agent does now, in a few words."""
        self.runs: set[str] = set()
        """The runs that were shown."""

    def watch(self) -> ExitStatus:
        """Ctrl-C stops watching; the run continues. At a terminal, what the agent asks is answered here."""
        self._answer = self._answer or at_terminal(self._server, as_json=self._json)
        try:
            return self.show()
        except KeyboardInterrupt:
            self._note(f"Stopped watching; the run continues. See `clew thread show {self._wake.thread}`.")
            if self._json:
                raise
            return ExitStatus.STOPPED

    def show(self) -> ExitStatus:
        """After KeyboardInterrupt it can be called again and continues where it was. Returns when the run is held for a
        person: nothing happens before that person acts."""
        try:
            return self._show()
        except HeldForPerson as held:
            run = held.run
            self._speech.pause()
            words, remedy = with_remedy(one_line(run.words or "The run is held."))
            tell_problem(run.code or "run:held", words, remedy, as_json=self._json)
            return ExitStatus.FAILED
        except (NotRunning, NoAnswer) as gone:
            self._speech.pause()
            words = f"{gone.words} What you asked for is stored ({self._wake.id}) and is served when Clew runs again."
            remedy = f"Do not send it again: start Clew with `clew up` and see `clew thread show {self._wake.thread}`."
            tell_problem(gone.code, words, remedy, as_json=self._json)
            return ExitStatus.FAILED

    def _show(self) -> ExitStatus:
        while True:
            if self._place is None:
                before = None if self._run is None else self._run.id
                self._wake = next_run(self._server, self._wake, before, self._waits, self._absence)
                if self._wake.run is None or self._wake.run == before:
                    return self._end()
                if self._wake.run in self.runs and self._wake.code == READ_BACK:
                    # What it did was shown before it was cut off; another run has found its reply meanwhile.
                    self._run = get_run(self._server, self._wake.run, self._absence)
                    return self._end()
                self._place = RunPosition(self._wake.run, outage=self._absence)
                self.runs.add(self._wake.run)
                self._speech.end()
            for seen in follow_run(self._server, self._place):
                self._see(seen)
            self._place = None
            self._wake = get_wake(self._server, self._wake.id, self._absence)

    def stop(self, words: str = "Interrupting. Press Ctrl-C again to stop watching.") -> None:
        """Interrupts the run, or cancels the wake if no run has started."""
        self._note(words)
        answer = parsed(self._taken_back() or self._interrupted())
        self._note(str(answer.get("words") or "") if isinstance(answer, dict) else "")

    def _taken_back(self) -> bytes | None:
        """None where a run has the message."""
        if self._place is not None:
            return None
        try:
            return self._server.delete(f"/wakes/{part(self._wake.id)}")
        except Refused as refused:
            self._wake = get_wake(self._server, self._wake.id, self._absence)
            if refused.code != TAKEN or self._wake.run is None:
                raise
            return None

    def _interrupted(self) -> bytes:
        run = self._wake.run if self._place is None else self._place.run
        return self._server.post(f"/runs/{part(run or '')}/interrupt")

    def _see(self, seen: Seen) -> None:
        if self._json:
            tell_json(seen)
            sys.stdout.flush()
        match seen:
            case EventView():
                if not self._decision and seen.kind == "step":
                    # A fast agent may speak before the run's view arrives; show the decision first.
                    self._update(get_run(self._server, self._wake.run or "", self._absence))
                self._show_event(seen)
            case RunView():
                self._update(seen)
            case ApprovalView():
                self._ask(seen)

    def _update(self, run: RunView) -> None:
        raise_if_held(run)
        self._run = run
        if (decision := decision_of(run) or "") != self._decision:
            self._decision = decision
            # A resume is what everybody expects, and a first conversation too; anything else is said aloud.
            loud = run.decision not in ("resume", "blank")
            if loud or not self._hold.lasts:
                self._note(decision, loud=loud)
        self.doing = run.words or run.state if run.state in ("queued", "waiting") else self.doing
        if run.state == "queued" and not self._hold.lasts:
            self._note(run.words or "")

    def _waits(self, run: RunView | None, otherwise: str) -> None:
        self.doing = (run.words if run is not None else "") or otherwise
        self._note(self._hold.words_of(run, otherwise))

    def _show_event(self, event: EventView) -> None:
        if self._json:
            return
        self.doing = activity_of(event) or self.doing
        if self._hold.lasts and event.kind == "retrying":
            return
        if self._hold.lasts and event.kind in _GOES_ON:
            self._hold.over()
            self._note(self._decision)
        if event.kind == "text":
            self._speech.add(event.body)
        elif event.kind == "done" and not self._speech.said and event.body.get("reply"):
            self._speech.add({"text": event.body["reply"]})
        elif event.kind == "step" and event.body.get("what") in ("silence", "notice"):
            self._note(str(event.body.get("words") or ""))
        elif event.kind not in _QUIET and (line := self._denial(event) or line_of(event)):
            self._note(line)

    def _denial(self, event: EventView) -> str | None:
        """For a tool that failed because a person denied it."""
        tool = event.body.get("id")
        if event.kind == "tool-started":
            self._tools[tool] = str(event.body.get("command") or event.body.get("file") or "")
        elif event.kind == "tool-finished" and not event.body.get("ok") and self._tools.get(tool) in self._denied:
            return f"Denied: {self._tools[tool]}"
        return None

    def _ask(self, approval: ApprovalView) -> None:
        if approval.state == "denied":
            self._denied.update(about for about in (approval.command, approval.file) if about)
        if approval.state != "pending" or approval.id in self._asked:
            return
        self._asked.add(approval.id)
        self._speech.pause()
        if self._answer is not None:
            if (answered := self._answer(approval)) is not None:
                self._ask(answered)
            return
        for line in approval_lines(approval):
            self._note(line)
        how = "answer" if approval.kind == "question" else "allow"
        self._note(f"Answer with `clew approvals {how} {approval.id}`.")

    def _end(self) -> ExitStatus:
        run = self._run
        if run is None or run.id != self._wake.run:
            # It ended without a run; the wake says why.
            words, remedy = with_remedy(one_line(self._wake.words))
            tell_problem(self._wake.code, words, remedy, as_json=self._json)
            return ExitStatus.FAILED
        if self._wake.code == READ_BACK and run.state != "succeeded":
            return self._read_back(run)
        if run.state != "succeeded":
            if self._json:
                words, why = run.words or f"{ended(run)}.", f"See `clew why {run.ref}`."
                tell_problem(run.code or f"run:{run.state}", words, why, as_json=True)
            else:
                self._note(failure_of(run))
            return ExitStatus.FAILED
        if not self._speech.said and not self._json:
            self._note(f"{run.agent} ended its turn without a reply.")
        if not self._json:
            page = page_of(self._server, run.thread)
            self._note(changes_by(run, page))
            mark_shown(self._server, run, page)
        return ExitStatus.DONE

    def _read_back(self, run: RunView) -> ExitStatus:
        page = page_of(self._server, run.thread, LATEST)
        replies = [] if page is None else [each for each in page.entries if each.run == run.id]
        for reply in replies:
            if self._json:
                tell_json(reply)
            else:
                self._note(f"{one_line(run.words or 'It was cut off.')} {run.agent} had finished; this is its reply:")
                self._speech.add({"text": reply.text, "final": True})
        if not replies:
            self._note(f"{run.agent} had finished. Its reply is in `clew thread show {run.thread}`.")
        self._speech.end()
        if not self._json:
            self._note(changes_by(run, page))
            mark_shown(self._server, run, page)
        return ExitStatus.DONE

    def _note(self, line: str, *, loud: bool = False) -> None:
        """A line beside the agent's messages; an immediate repetition is dropped."""
        line = one_line(line)
        if not line or line == self._noted:
            return
        self._noted = line
        self._speech.pause()
        note(f"· {line}", loud=loud)


def watch_thread(server: Server, ref: str, *, as_json: bool) -> ExitStatus:
    """Watches the wake of the thread's newest run, if there is one."""
    runs = read_all(RunView, server.get("/runs", {"thread": ref, "limit": 1}))
    if not runs:
        thread = get_thread(server, ref)
        tell(thread.words or f"{ref} has no runs.")
        return ExitStatus.DONE
    wakes = read(WhyView, server.get(f"/why/{part(runs[0].id)}")).wakes
    if not wakes:
        return ExitStatus.DONE
    return Turn(server, wakes[-1], as_json=as_json).watch()
