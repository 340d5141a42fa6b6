"""A chat at a terminal: messages, slash words, and the turns that follow, shown while the next message is typed."""

import queue
import re
import threading
import time
from collections.abc import Callable
from typing import Any

from clew.cli.answers import read
from clew.cli.approver import Approver
from clew.cli.chat_screen import PROMPT, Screen
from clew.cli.client import Server, part
from clew.cli.commands.say import STARTS, send
from clew.cli.input import Options, checked
from clew.cli.live import WAKE_ENDED, Outage, get_wake
from clew.cli.output import ExitStatus, note, tell_fault
from clew.cli.program import program, run_command
from clew.cli.times import every
from clew.cli.turn import Turn
from clew.ports.fault import Fault
from clew.protocol.views import AgentView, ApprovalView, Spoken, ThreadView, WakeView

_SLASH = re.compile(r"/[a-z?]*", re.IGNORECASE)
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

_BUSY = {"accepted:queued": "Queued", "accepted:steered": "Steered", "accepted:interrupts": "Interrupting"}
"""What happens to a message that was typed during a turn."""

HELP = """\
/diff          what the agent changed
/why           how the latest run was decided
/mode [MODE]   show or set what the agent may do without asking: read, ask, edit or full
/fresh [TEXT]  start the next message in a new conversation, without the earlier one
/help          this list
/exit          leave; so does Ctrl-D
Enter sends. A line ended by \\ goes on, and so does Alt-Enter. A pasted text is one message.
Ctrl-C interrupts the turn. What you type during a turn waits for the next, unless the thread steers.
A message that begins with a slash: put a space before it."""


class TypedChat:
    """The main thread reads what is typed; another one shows the turns. Approvals are asked at the typed line."""

    def __init__(self, options: Options, thread: ThreadView, agent: str | None) -> None:
        self._server = Server(options.data)
        self._data = str(options.data)
        self._thread = thread
        self._agent = agent
        self._fresh = False
        self._wakes: queue.SimpleQueue[WakeView] = queue.SimpleQueue()
        self._turn: Turn | None = None
        self._shown: set[str] = set()
        """Runs that were shown: a message that was steered into one of them has nothing more to show."""
        self._asking = False
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        """What is typed while the agent asks; None if the question is left open."""
        self._approver = Approver(self._server, self._ask)
        self._screen = Screen(self._status)
        self._commands: dict[str, Callable[[str], object]] = {
            "/help": lambda _: note(HELP, loud=True),
            "/diff": lambda _: self._run("diff"),
            "/why": lambda _: self._run("why"),
            "/mode": self._mode,
            "/fresh": self._start_fresh,
        }

    def run(self) -> ExitStatus:
        thread = self._thread
        with self._screen.printing_above():
            threading.Thread(target=self._show_turns, daemon=True).start()
            note(f"{thread.ref} with {self._whom}. Ctrl-C interrupts a turn, Ctrl-D leaves, /help lists more.")
            while self._goes_on():
                pass
            if self._turn is not None:
                note(f"The run continues. See `clew thread show {thread.ref}`.")
            note(f"Continue with `clew chat --in {thread.ref}`.")
        return ExitStatus.DONE

    @property
    def _whom(self) -> str:
        return self._agent or self._thread.assignee or ""

    # ---------------------------------------------------------------- what is typed

    def _goes_on(self) -> bool:
        try:
            text = self._screen.read()
            if text.strip() in ("/exit", "/quit"):
                return False
            self._take(text)
        except EOFError:
            return False
        except KeyboardInterrupt:
            self._interrupt()
        except Fault as fault:
            # Show the error; the conversation continues.
            tell_fault(fault)
        return True

    def _take(self, text: str) -> None:
        if self._asking:
            self._answers.put(text)
            return
        if not text.strip():
            return
        word, _, rest = text.partition(" ")
        if not _SLASH.fullmatch(word):
            self._say(text)
        elif command := self._commands.get(word.lower()):
            command(rest.strip())
        else:
            note(f"There is no {word}, and nothing was sent. /help lists what there is.", loud=True)

    def _say(self, text: str) -> None:
        body: dict[str, Any] = {"text": checked(text), "agent": self._agent, "fresh": self._fresh}
        wake = read(Spoken, send(self._server, self._thread.ref, body)).wake
        self._fresh = False
        if wake is None:
            note("No agent is woken.")
            return
        if label := _BUSY.get(wake.code):
            note(f"· {label}{STARTS[wake.code].format(agent=wake.agent)}.")
        self._wakes.put(wake)

    def _interrupt(self) -> None:
        turn = self._turn
        if turn is None:
            note("Press Ctrl-D to leave.")
            return
        if self._asking:
            self._answers.put(None)
        try:
            turn.stop("Interrupting.")
        except Fault as fault:
            tell_fault(fault)

    # ---------------------------------------------------------------- slash words

    def _run(self, command: str) -> None:
        words = [command, self._thread.ref, "--data", self._data]
        run_command(lambda: program(command)(words))

    def _mode(self, mode: str) -> None:
        path = f"/agents/{part(self._whom)}"
        said = self._server.patch(path, {"mode": mode}) if mode else self._server.get(path)
        agent = read(AgentView, said)
        note(f"{agent.name}'s mode is {agent.mode}, in all its threads, from its next turn.", loud=True)

    def _start_fresh(self, text: str) -> None:
        self._fresh = True
        if text:
            self._say(text)
        else:
            note("Your next message starts a new conversation.", loud=True)

    # ---------------------------------------------------------------- turns, in the other thread

    def _show_turns(self) -> None:
        while True:
            wake = self._wakes.get()
            try:
                self._show(wake)
            except Fault as fault:
                tell_fault(fault)
            finally:
                self._turn = None

    def _show(self, wake: WakeView) -> None:
        if self._shown:
            wake = get_wake(self._server, wake.id, Outage())
            if wake.state in WAKE_ENDED and wake.run in self._shown:
                return
        self._turn = turn = Turn(self._server, wake, answer=self._approve)
        turn.show()
        self._shown |= turn.runs

    def _approve(self, approval: ApprovalView) -> ApprovalView | None:
        """From now on what is typed is the answer, so this is set before the question is shown."""
        self._asking = True
        try:
            return self._approver(approval)
        finally:
            self._asking, self._screen.prompt = False, PROMPT

    def _ask(self, prompt: str) -> str:
        self._screen.prompt = prompt
        answer = self._answers.get()
        if answer is None:
            raise EOFError
        return answer

    def _status(self) -> str:
        turn = self._turn
        if turn is None or self._asking:
            return ""
        now = time.monotonic()
        frame = _FRAMES[int(now * 5) % len(_FRAMES)]
        return f"{frame} {every(int(now - turn.started)) if now - turn.started >= 1 else '0s'} {turn.doing}"
