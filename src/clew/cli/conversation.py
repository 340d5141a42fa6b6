"""A conversation in one thread: typed at a terminal, from a pipe, or a single message."""

import sys
from collections.abc import Callable, Iterable

from clew.cli.activity import asking
from clew.cli.client import Server, part
from clew.cli.ending import Ending
from clew.cli.problem import tell_fault
from clew.cli.reading import read
from clew.cli.saying import send
from clew.cli.telling import aside, tell, tell_as_is
from clew.cli.texts import BadText, checked
from clew.cli.turn import Answerer, Turn
from clew.ports.fault import Fault
from clew.protocol.views import ApprovalView, Spoken, ThreadView


class Leave(Exception):
    """Whoever types has had enough. What is going goes on."""


class Conversation:
    def __init__(self, server: Server, thread: ThreadView, agent: str | None, *, as_json: bool) -> None:
        self._server = server
        self._thread = thread
        self._agent = agent
        self._json = as_json

    def say(self, text: str, answer: Answerer | None = None) -> Ending:
        """One message and all that comes of it. An interrupt is passed on to the agent; a second one leaves."""
        said = send(self._server, self._thread.ref, {"text": checked(text), "agent": self._agent})
        if self._json:
            tell_as_is(said)
        wake = read(Spoken, said).wake
        if wake is None:
            aside("Nobody is woken by it.")
            return Ending.DONE
        turn = Turn(self._server, wake, answer=answer, as_json=self._json)
        try:
            return turn.show()
        except KeyboardInterrupt:
            try:
                turn.stop()
            except Fault as fault:
                tell_fault(fault, as_json=self._json)
            return turn.show()

    def piped(self, lines: Iterable[str]) -> Ending:
        """One line after another, each when the one before is answered."""
        return max(map(self.say, lines), default=Ending.DONE)

    def typed(self) -> Ending:
        # Editing and history of the line that is typed.
        import readline  # noqa: F401, PLC0415

        thread = self._thread
        aside(f"{thread.ref} with {thread.assignee or self._agent}. Ctrl-C interrupts a turn, Ctrl-D leaves.")
        while True:
            try:
                text = _asked("> ")
                if text.strip():
                    self.say(text, self._answer)
            except Leave:
                break
            except KeyboardInterrupt:
                aside("\nCtrl-D leaves.")
            except Fault as fault:
                # What was refused is told; the conversation goes on.
                tell_fault(fault)
        aside(f"{thread.ref} stays. Go on with `clew chat --in {thread.ref}`.")
        return Ending.DONE

    def _answer(self, approval: ApprovalView) -> None:
        for line in asking(approval):
            tell(line)
        text = _until("Answer: ", _any_of(approval)) if approval.kind == "question" else _until("Allow? y/n: ", _yes_no)
        allow, words = (True, text) if approval.kind == "question" else _decided(text)
        answer = {"allow": allow, "text": words}
        try:
            said = self._server.post(f"/approvals/{part(approval.id)}", answer)
        except Fault as fault:
            # Somebody else answered, or the agent is gone: the turn says what comes of it.
            tell_fault(fault)
            return
        state = read(ApprovalView, said).state
        if state not in ("approved", "denied"):
            aside(f"It is {state}.")


def _yes_no(text: str) -> str | None:
    return text if text.partition(" ")[0].lower() in ("y", "yes", "n", "no") else None


def _decided(text: str) -> tuple[bool, str]:
    """`n use the other one` says why not."""
    word, _, why = text.partition(" ")
    return word.lower() in ("y", "yes"), why.strip()


def _any_of(approval: ApprovalView) -> Callable[[str], str | None]:
    def chosen(text: str) -> str | None:
        if text.isdecimal() and 0 < int(text) <= len(approval.choices):
            return approval.choices[int(text) - 1]
        return text or None

    return chosen


def _until(prompt: str, understood: Callable[[str], str | None]) -> str:
    while (answer := understood(_asked(prompt).strip())) is None:
        pass
    return answer


def _asked(prompt: str) -> str:
    try:
        return input(prompt)
    except EOFError:
        sys.stdout.write("\n")
        raise Leave from None
    except UnicodeDecodeError as fault:
        raise BadText("That was not valid UTF-8.", "Type it again.") from fault
