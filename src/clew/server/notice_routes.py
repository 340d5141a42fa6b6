"""The route of notices."""

from clew.control.notices import list_notices
from clew.control.services import Services
from clew.protocol.notices import NoticeView
from clew.server.router import By, Routes


def add_notice_routes(routes: Routes, services: Services) -> None:
    @routes.below("/notices", "notices").get("")
    async def notices(by: By) -> tuple[NoticeView, ...]:
        """Which threads need you, and in which a run was done lately, without their content. A client that notifies
        compares them with those that it had before."""
        return await list_notices(services, by)
