"""One wake shown from its acceptance to its end: what was decided, what the agent says and does, how it went.

What the agent says goes to stdout and all else to stderr, so that an answer can be piped.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict

from clew.cli.activity import Speech, asking, decision_of, ending_of_run, line_of
from clew.cli.client import Server, part
from clew.cli.ending import Ending
from clew.cli.following import HeldForPerson, Place, Seen, follow_run, must_go_on, next_run, see_run, see_wake
from clew.cli.harmless import one_line
from clew.cli.problem import tell_problem
from clew.cli.reading import parsed
from clew.cli.streaming import Absence
from clew.cli.telling import aside, tell_as_is
from clew.protocol.views import ApprovalView, EventView, RunView, WakeView

Answerer = Callable[[ApprovalView], None]

_UNSAID = frozenset({"thought", "used", "session", "done", "approval", "question", "failed", "step"})
"""Events that a log shows and a conversation does not; what matters of them is told in another way."""


class Turn:
    """`answer` is asked for every approval and question; without it a person is told how to answer elsewhere."""

    def __init__(
        self, server: Server, wake: WakeView, *, answer: Answerer | None = None, as_json: bool = False
    ) -> None:
        self._server = server
        self._wake = wake
        self._answer = answer
        self._json = as_json
        self._place: Place | None = None
        self._run: RunView | None = None
        self._speech = Speech()
        self._absence = Absence()
        self._absence.over()
        self._decision = ""
        self._noted = ""
        self._asked: set[str] = set()

    def watch(self) -> Ending:
        """For whoever only looks: an interrupt leaves, and the run goes on."""
        try:
            return self.show()
        except KeyboardInterrupt:
            self._note(f"It goes on. See `clew thread show {self._wake.thread}`.")
            raise

    def show(self) -> Ending:
        """May be left by an interrupt and called again: it goes on where it was. A run that is held for a person ends
        it: nothing more comes before that person has done something."""
        try:
            return self._show()
        except HeldForPerson as held:
            run = held.run
            self._speech.pause()
            tell_problem(run.code or "run:held", one_line(run.words or "The run is held."), as_json=self._json)
            return Ending.FAILED

    def _show(self) -> Ending:
        while True:
            if self._place is None:
                before = None if self._run is None else self._run.id
                self._wake = next_run(self._server, self._wake, before, self._note, self._absence)
                if self._wake.run is None or self._wake.run == before:
                    return self._end()
                self._place = Place(self._wake.run, absence=self._absence)
                self._speech.end()
            for seen in follow_run(self._server, self._place):
                self._see(seen)
            self._place = None
            self._wake = see_wake(self._server, self._wake.id, self._absence)

    def stop(self) -> None:
        """Interrupts the run, or takes the wake back when none has begun."""
        self._note("Interrupting. Once more leaves it alone.")
        if self._place is None:
            said = self._server.delete(f"/wakes/{part(self._wake.id)}")
        else:
            said = self._server.post(f"/runs/{part(self._place.run)}/interrupt")
        answer = parsed(said)
        self._note(str(answer.get("words") or "") if isinstance(answer, dict) else "")

    def _see(self, seen: Seen) -> None:
        if self._json:
            tell_as_is(json.dumps(asdict(seen), ensure_ascii=False))
            sys.stdout.flush()
        match seen:
            case EventView():
                if not self._decision and seen.kind == "step":
                    # A quick agent has spoken before its run is shown again; how it was decided comes first.
                    self._know(see_run(self._server, self._wake.run or "", self._absence))
                self._hear(seen)
            case RunView():
                self._know(seen)
            case ApprovalView():
                self._ask(seen)

    def _know(self, run: RunView) -> None:
        must_go_on(run)
        self._run = run
        if (decision := decision_of(run) or "") != self._decision:
            self._decision = decision
            self._note(decision)
        if run.state == "queued":
            self._note(run.words or "")

    def _hear(self, event: EventView) -> None:
        if self._json:
            return
        if event.kind == "text":
            self._speech.hear(event.body)
        elif event.kind == "done" and not self._speech.said and event.body.get("reply"):
            self._speech.hear({"text": event.body["reply"]})
        elif event.kind == "step" and event.body.get("what") == "silence":
            self._note(str(event.body.get("words") or ""))
        elif event.kind not in _UNSAID and (line := line_of(event)):
            self._note(line)

    def _ask(self, approval: ApprovalView) -> None:
        if approval.state != "pending" or approval.id in self._asked:
            return
        self._asked.add(approval.id)
        self._speech.pause()
        if self._answer is not None:
            self._answer(approval)
            return
        for line in asking(approval):
            self._note(line)
        how = "answer" if approval.kind == "question" else "allow"
        self._note(f"Answer with `clew approvals {how} {approval.id}`.")

    def _end(self) -> Ending:
        run = self._run
        if run is None or run.id != self._wake.run:
            # No run of it was seen: its receipt says why.
            tell_problem(self._wake.code, one_line(self._wake.words), as_json=self._json)
            return Ending.FAILED
        if run.state != "succeeded":
            if self._json:
                words, why = run.words or f"The run ended {run.state}.", f"See `clew why {run.id}`."
                tell_problem(run.code or f"run:{run.state}", words, why, as_json=True)
            else:
                self._note(ending_of_run(run))
            return Ending.FAILED
        if not self._speech.said and not self._json:
            self._note(f"{run.agent} ended its turn without a reply.")
        return Ending.DONE

    def _note(self, line: str) -> None:
        """Something beside what the agent says, once."""
        line = one_line(line)
        if not line or line == self._noted:
            return
        self._noted = line
        self._speech.pause()
        aside(f"· {line}")
