"""Permission requests of an agent: answered by the mode, or by a person."""

from collections.abc import Mapping
from typing import Any

from clew.kernel import Answer, ApprovalId
from clew.programs.acp.agent import EVERYTHING, READING, ModeRule
from clew.programs.acp.connection import Connection
from clew.programs.session import OpenRequests, Request

# Never "allow_always": an approval is for one act, and a lasting one would widen the mode.
_KINDS: Mapping[Answer, tuple[str, ...]] = {
    Answer.APPROVE: ("allow_once",),
    Answer.DENY: ("reject_once", "reject_always"),
}
CANCELLED = {"outcome": {"outcome": "cancelled"}}

Options = tuple[Mapping[str, Any], ...]


def by_rule(rule: ModeRule, kind: str, inside: bool) -> Answer | None:
    """The mode's answer; None if a person must be asked.

    A tool that is not known to stay `inside` the directory is approved only if it reads, or everything is allowed.
    """
    if kind in rule.allows and (inside or kind in READING or rule.allows >= EVERYTHING):
        return Answer.APPROVE
    return None if rule.asks else Answer.DENY


def outcome(options: Options, given: Answer) -> Mapping[str, Any]:
    """The option for that answer. If the agent offers none, `cancelled`, which approves nothing."""
    for kind in _KINDS[given]:
        for option in options:
            if option.get("kind") == kind:
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return CANCELLED


class Approvals(OpenRequests[Options]):
    """The open requests of one session."""

    def __init__(self, connection: Connection, session: str) -> None:
        super().__init__()
        self._connection, self._session = connection, session
        self._count = 0

    def ask(self, number: int | str, options: Options) -> ApprovalId:
        self._count += 1
        id_ = ApprovalId(f"{self._session}/{self._count}")
        self.add(Request(number, options, {id_: ""}))
        return id_

    def answer(self, id_: ApprovalId, given: Answer) -> bool:
        request = self.record(id_, None)
        if request is None or not self._connection.lives:
            return False
        self._connection.reply(request.number, outcome(request.about, given))
        return True

    def cancel(self) -> None:
        """Tell the agent that the open requests get no answer."""
        for request in self.requests():
            self._connection.reply(request.number, CANCELLED)
        self.clear()
