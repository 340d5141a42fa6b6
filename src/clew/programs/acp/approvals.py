"""What an agent asks before it acts: answered by the mode, or by a person, once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clew.kernel import Answer, ApprovalId
from clew.programs.acp.agent import EVERYTHING, READING, ModeRule
from clew.programs.acp.connection import Connection

# One yes is for one act: an answer that stands for ever would widen the mode, so it is not chosen.
_KINDS: Mapping[Answer, tuple[str, ...]] = {
    Answer.APPROVE: ("allow_once",),
    Answer.DENY: ("reject_once", "reject_always"),
}
CANCELLED = {"outcome": {"outcome": "cancelled"}}


@dataclass(frozen=True, slots=True)
class Question:
    number: int | str
    options: tuple[Mapping[str, Any], ...]


def by_rule(rule: ModeRule, kind: str, inside: bool) -> Answer | None:
    """The answer that the mode gives; None where a person is asked. What is not known to stay `inside` is not
    allowed by the mode, unless it only reads, or everything is allowed."""
    if kind in rule.allows and (inside or kind in READING or rule.allows >= EVERYTHING):
        return Answer.APPROVE
    return None if rule.asks else Answer.DENY


def outcome(question: Question, given: Answer) -> Mapping[str, Any]:
    """The option of that kind; an agent that offers none is told that nothing was chosen, which approves nothing."""
    for kind in _KINDS[given]:
        for option in question.options:
            if option.get("kind") == kind:
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return CANCELLED


class Questions:
    """The open questions of one session."""

    def __init__(self, connection: Connection, session: str) -> None:
        self._connection, self._session = connection, session
        self._open: dict[ApprovalId, Question] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._open)

    def ask(self, question: Question) -> ApprovalId:
        self._count += 1
        id_ = ApprovalId(f"{self._session}/{self._count}")
        self._open[id_] = question
        return id_

    def answer(self, id_: ApprovalId, given: Answer) -> bool:
        question = self._open.pop(id_, None)
        if question is None or not self._connection.lives:
            return False
        self._connection.reply(question.number, outcome(question, given))
        return True

    def drop(self) -> None:
        """Nobody answers them any more."""
        for question in self._open.values():
            self._connection.reply(question.number, CANCELLED)
        self._open.clear()

    def forget(self) -> None:
        """Whoever asked is gone."""
        self._open.clear()
