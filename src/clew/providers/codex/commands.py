"""Commands that a thread has begun and that have not ended, whichever turn began them.

Codex tells the end of one also between turns, and in a later turn as that of the turn which began it.
"""

from collections.abc import Mapping
from typing import Any

from clew.programs.faults import ProgramFault
from clew.programs.rpc import CallRefused
from clew.providers.codex.server import AppServer

_LIST = "thread/backgroundTerminals/list"
_TERMINATE = "thread/backgroundTerminals/terminate"
Json = Mapping[str, Any]


class Commands:
    def __init__(self, server: AppServer, thread: str) -> None:
        self._server, self._thread = server, {"threadId": thread}
        self._going: set[str] = set()

    def __bool__(self) -> bool:
        # They end with their program.
        return bool(self._going) and self._server.lives

    def told(self, method: str, arguments: Json) -> None:
        item = arguments.get("item")
        if arguments.get("threadId") != self._thread["threadId"] or not isinstance(item, Mapping):
            return
        if method == "item/started" and item.get("type") == "commandExecution":
            self._going.add(str(item.get("id")))
        elif method == "item/completed":
            self._going.discard(str(item.get("id")))

    async def settle(self) -> None:
        """After a turn: what Codex runs no more has ended, though it may not have said so."""
        before = set(self._going)
        if not before or not self._server.lives:
            return
        try:
            listed = {str(each.get("itemId")) for each in await self._listed()}
        except CallRefused:
            listed = set()
        except ProgramFault:
            return
        self._going -= before - listed

    async def end(self, begun: Mapping[str, Json]) -> None:
        """Those of an interrupted turn, which leaves them running behind it."""
        for each in await self._listed():
            if each.get("itemId") in begun:
                await self._server.call(_TERMINATE, {**self._thread, "processId": each.get("processId")})

    async def _listed(self) -> list[Json]:
        return list((await self._server.call(_LIST, self._thread)).get("data") or ())
