"""What agents ask, answered where it is shown: in a chat, and under --wait at a terminal."""

import sys
from collections.abc import Callable, Mapping

from clew.cli.activity import approval_lines
from clew.cli.answers import read
from clew.cli.client import Server, part
from clew.cli.output import note, tell_fault
from clew.ports.fault import Fault
from clew.protocol.views import ApprovalView

Ask = Callable[[str], str]
"""Shows a prompt and returns the typed line. Raises EOFError where the person leaves it open."""

_HOW = "  y: allow it once; n: deny it, and a reason may follow"
_ALWAYS = "; a: allow this command always in this thread"


def at_terminal(server: Server, *, as_json: bool) -> "Approver | None":
    """None where stdin or stderr is no terminal; the waiting command then prints the command that answers."""
    seen = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return Approver(server, _typed) if seen and not as_json else None


class Approver:
    """Asks the person and sends the answer."""

    def __init__(self, server: Server, ask: Ask) -> None:
        self._server = server
        self._ask = ask

    def __call__(self, approval: ApprovalView) -> ApprovalView | None:
        """The answered approval; None if it is still open, or was answered elsewhere."""
        how = "" if approval.kind == "question" else _HOW + (_ALWAYS if approval.command else "")
        for line in (*approval_lines(approval), how):
            if line:
                note(line, loud=True)
        try:
            if approval.kind == "question":
                return self._send(approval, {"allow": True, "text": self._answer(approval)})
            word, reason = self._decision(bool(approval.command))
        except EOFError:
            command = "answer" if approval.kind == "question" else "allow"
            note(f"Answer with `clew approvals {command} {approval.id}`.")
            return None
        if word == "a":
            return self._send(approval, {"allow": True, "always": True})
        return self._send(approval, {"allow": word == "y", "text": reason if word == "n" else ""})

    def _answer(self, approval: ApprovalView) -> str:
        text = ""
        while not text:
            text = self._ask("Answer: ").strip()
        if text.isdecimal() and 0 < int(text) <= len(approval.choices):
            return approval.choices[int(text) - 1]
        return text

    def _decision(self, is_command: bool) -> tuple[str, str]:
        """y, n or a; and the reason for n."""
        words = {"y": "y", "yes": "y", "n": "n", "no": "n"} | ({"a": "a", "always": "a"} if is_command else {})
        while True:
            word, _, reason = self._ask("Allow? ").strip().partition(" ")
            if found := words.get(word.lower()):
                return found, reason.strip()

    def _send(self, approval: ApprovalView, answer: Mapping[str, object]) -> ApprovalView | None:
        try:
            said = self._server.post(f"/approvals/{part(approval.id)}", answer)
        except Fault as fault:
            # Answered elsewhere, or the agent is gone: the turn shows the outcome.
            tell_fault(fault)
            return None
        answered = read(ApprovalView, said)
        if answered.state not in ("approved", "denied"):
            note(f"The request is {answered.state}.")
        return answered


def _typed(prompt: str) -> str:
    """On stderr: stdout has the agent's messages, and may be a pipe."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        raise EOFError
    return line
