"""Approvals: what agents ask people."""

from clew.control.approvals import answer_approval, list_approvals
from clew.control.services import Services
from clew.protocol.requests import AnswerTo
from clew.protocol.views import ApprovalView
from clew.server.asked import Filter, Limit, Name
from clew.server.calls import Calls
from clew.server.identity import By


def approvals(calls: Calls, services: Services) -> None:
    calls = calls.below("/approvals", "approvals")

    @calls.get("")
    async def list_all(
        by: By, state: Filter = None, run: Filter = None, limit: Limit = 100
    ) -> tuple[ApprovalView, ...]:
        """What waits for an answer, the longest first; or what is in another `state`, or in any (`all`). With `run`,
        only what that run asked."""
        return await list_approvals(services, by, state or "pending", limit, run)

    @calls.post("/{approval}")
    async def answer(by: By, approval: Name, asked: AnswerTo) -> ApprovalView:
        """Allow or deny, or answer a question. The first answer counts."""
        return await answer_approval(services, by, approval, asked)
