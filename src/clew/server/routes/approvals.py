"""Routes of approvals: permissions and questions that agents ask people."""

from clew.control.approvals import answer_approval, list_approvals
from clew.control.services import Services
from clew.protocol.requests import AnswerTo
from clew.protocol.views import ApprovalView
from clew.server.identity import By
from clew.server.params import Filter, Limit, Name
from clew.server.router import Routes


def approvals(routes: Routes, services: Services) -> None:
    routes = routes.below("/approvals", "approvals")

    @routes.get("")
    async def list_all(
        by: By, state: Filter = None, run: Filter = None, limit: Limit = 100
    ) -> tuple[ApprovalView, ...]:
        """Approvals, the oldest first: pending ones, or those in another `state` (`all` for any). With `run`, only
        those of that run."""
        return await list_approvals(services, by, state or "pending", limit, run)

    @routes.post("/{approval}")
    async def answer(by: By, approval: Name, asked: AnswerTo) -> ApprovalView:
        """Allow or deny, or answer a question. Only the first answer counts."""
        return await answer_approval(services, by, approval, asked)
