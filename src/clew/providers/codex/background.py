"""Commands of a thread that are running, whichever turn began them.

Codex reports the end of a command also between turns; within a later turn it names the turn that began it.
"""

from collections.abc import Mapping

from clew.programs.faults import ProgramFault
from clew.programs.rpc import CallRefused
from clew.providers.codex.server import AppServer, Json

_LIST = "thread/backgroundTerminals/list"
_TERMINATE = "thread/backgroundTerminals/terminate"


class BackgroundCommands:
    def __init__(self, server: AppServer, thread: str) -> None:
        self._server, self._thread = server, {"threadId": thread}
        self._running: set[str] = set()

    def __bool__(self) -> bool:
        # They end with their program.
        return bool(self._running) and self._server.lives

    def note(self, method: str, arguments: Json) -> None:
        item = arguments.get("item")
        if arguments.get("threadId") != self._thread["threadId"] or not isinstance(item, Mapping):
            return
        if method == "item/started" and item.get("type") == "commandExecution":
            self._running.add(str(item.get("id")))
        elif method == "item/completed":
            self._running.discard(str(item.get("id")))

    async def refresh(self) -> None:
        """After a turn: forget the commands that Codex no longer lists. It may not have reported their end."""
        before = set(self._running)
        if not before or not self._server.lives:
            return
        try:
            listed = {str(each.get("itemId")) for each in await self._listed()}
        except CallRefused:
            listed = set()
        except ProgramFault:
            return
        self._running -= before - listed

    async def end(self, begun: Mapping[str, Json]) -> None:
        """Terminate the commands of an interrupted turn: Codex leaves them running."""
        for each in await self._listed():
            if each.get("itemId") in begun:
                await self._server.call(_TERMINATE, {**self._thread, "processId": each.get("processId")})

    async def _listed(self) -> list[Json]:
        return list((await self._server.call(_LIST, self._thread)).get("data") or ())
