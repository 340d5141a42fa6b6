"""What an agent asks of people while it works, and their answers."""

import hashlib
import logging
from collections.abc import Sequence

from clew.daemon.telling import question_of
from clew.kernel import Answer, ApprovalId, ApprovalState
from clew.ports.events import ApprovalAsked, QuestionAsked
from clew.ports.provider import LiveSession
from clew.protocol.orders import Order
from clew.protocol.reports import AnswerGiven, Asked

_log = logging.getLogger("clew.daemon")


class Questions:
    """An agent's own names for its questions are unique in its session at most; people know them by others."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._open: dict[ApprovalId, ApprovalId] = {}

    @property
    def open(self) -> bool:
        return bool(self._open)

    def ask(self, event: ApprovalAsked | QuestionAsked) -> Asked:
        known_as = self._name(event.id)
        self._open[known_as] = event.id
        return Asked(known_as, question_of(event))

    async def hear(self, answers: Sequence[AnswerGiven], live: LiveSession) -> bool:
        """Hand the answers on, each once; whether that left none open."""
        given = [(answer, self._open.pop(answer.approval)) for answer in answers if answer.approval in self._open]
        for answer, own in given:
            # Whatever else became of it, nobody has allowed it.
            said = Answer.APPROVE if answer.state == ApprovalState.APPROVED.value else Answer.DENY
            try:
                await live.answer(own, said, answer.words)
            except Exception as fault:  # noqa: BLE001 - the turn that asked tells what is wrong with its session
                _log.warning("run %s: an answer was not taken: %r", self._order.run, fault)
        return bool(given) and not self._open

    def drop(self) -> None:
        self._open.clear()

    def _name(self, own: ApprovalId) -> ApprovalId:
        text = f"{self._order.run}\0{self._order.attempt}\0{own}"
        return ApprovalId("ap_" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24])
