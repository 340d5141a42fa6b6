"""The calls of OpenCode's server that Clew uses. Each returns the server's answer, or raises the matching fault."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from clew.programs.faults import NotUnderstood, Refused, SessionMissing
from clew.providers.opencode.messages import Json
from clew.providers.opencode.server import Server

if TYPE_CHECKING:
    from clew.providers.opencode.http import Answer

NOT_FOUND = "NotFoundError"
_EVERY = 1_000_000
"""More sessions than any home has. Without a limit OpenCode lists a hundred."""


class Api:
    def __init__(self, server: Server) -> None:
        self.server = server

    # ---------------------------------------------------------------- sessions

    async def session(self, id_: str) -> Json:
        return _checked(await self._object("GET", _session(id_)))

    async def sessions(self) -> Sequence[Json]:
        """The sessions of all projects, newest first, without those of subagents."""
        found = await self._list(_query("/experimental/session", roots="true", limit=str(_EVERY)))
        return [_checked(each) for each in found]

    async def create(self, directory: str, asked: Json) -> Json:
        return await self._object("POST", _query("/session", directory=directory), asked)

    async def fork(self, id_: str, seconds: float) -> Json:
        return await self._object("POST", _session(id_, "fork"), {}, seconds)

    async def delete(self, id_: str) -> None:
        _check(await self.server.call("DELETE", _session(id_)), "the deletion of a session")

    async def children(self, id_: str) -> Sequence[Json]:
        return await self._list(_session(id_, "children"))

    async def todo(self, id_: str) -> Sequence[Json]:
        return await self._list(_session(id_, "todo"))

    async def messages(self, id_: str, seconds: float) -> Sequence[Json]:
        return await self._list(_session(id_, "message"), seconds)

    async def delete_message(self, id_: str, message: str) -> None:
        _check(await self.server.call("DELETE", _session(id_, "message", message)), "the deletion of a message")

    async def busy(self, id_: str, directory: str) -> bool:
        return id_ in await self._object("GET", _query("/session/status", directory=directory))

    # ---------------------------------------------------------------- rules

    async def add_rules(self, id_: str, rules: Sequence[Json]) -> Json:
        """Append rules to the session's own. OpenCode has no call that replaces them."""
        return await self._object("PATCH", _session(id_), {"permission": list(rules)})

    async def note(self, id_: str, agent: str, tools: dict[str, bool]) -> str:
        """Add a message that is not answered. The tools it names replace all rules of the session."""
        body = {"noReply": True, "parts": [], "agent": agent, "tools": tools}
        return str(_at(await self._object("POST", _session(id_, "message"), body), "info", "id"))

    # ---------------------------------------------------------------- turns

    async def prompt(self, id_: str, asked: Json) -> None:
        _check(await self.server.call("POST", _session(id_, "prompt_async"), asked), "a prompt")

    async def abort(self, id_: str) -> None:
        _check(await self.server.call("POST", _session(id_, "abort")), "an interrupt")

    async def permit(self, request: str, directory: str, reply: Json) -> bool:
        """False if the request is no longer open. OpenCode knows it only in the directory where it was asked."""
        return await self._answered(f"/permission/{quote(request, safe='')}/reply", directory, reply)

    async def reply(self, request: str, directory: str, answers: Sequence[Sequence[str]]) -> bool:
        path = f"/question/{quote(request, safe='')}/reply"
        return await self._answered(path, directory, {"answers": [list(answer) for answer in answers]})

    async def reject(self, request: str, directory: str) -> bool:
        return await self._answered(f"/question/{quote(request, safe='')}/reject", directory, {})

    async def _answered(self, path: str, directory: str, body: Json) -> bool:
        answer = await self.server.call("POST", _query(path, directory=directory), body)
        if answer.status == 404:
            return False
        _check(answer, "an answer")
        return True

    # ---------------------------------------------------------------- configuration

    async def config(self, directory: str) -> Json:
        return await self._object("GET", _query("/config", directory=directory))

    async def agents(self, directory: str) -> Sequence[Json]:
        return await self._list(_query("/agent", directory=directory))

    async def models(self, directory: str | None = None) -> tuple[str, ...]:
        where = {} if directory is None else {"directory": directory}
        found = await self._object("GET", _query("/config/providers", **where))
        return tuple(f"{_at(each, 'id')}/{model}" for each in _at(found, "providers") for model in _at(each, "models"))

    async def schemas(self) -> Json:
        """The JSON schemas of the values in its calls, by name."""
        found: Json = _at(await self._object("GET", "/doc"), "components", "schemas")
        return found

    # ---------------------------------------------------------------- answers

    async def _object(self, method: str, path: str, body: Json | None = None, seconds: float | None = None) -> Json:
        found: Json = await self._answer(dict, method, path, body, seconds)
        return found

    async def _list(self, path: str, seconds: float | None = None) -> Sequence[Json]:
        found: Sequence[Json] = await self._answer(list, "GET", path, None, seconds)
        return found

    async def _answer(self, kind: type, method: str, path: str, body: Json | None, seconds: float | None) -> Any:
        answer = await self.server.call(method, path, body, seconds)
        where = path.partition("?")[0]
        _check(answer, f"{method} {where}")
        if not isinstance(answer.data, kind):
            said = f"{answer.status} and {type(answer.data).__name__}"
            raise NotUnderstood(f"OpenCode answered {where} with {said}.", "Update OpenCode or Clew.")
        return answer.data


def _session(id_: str, *more: str) -> str:
    return "/".join(("/session", *(quote(part, safe="") for part in (id_, *more))))


def _query(path: str, **asked: str) -> str:
    return f"{path}?{urlencode(asked)}" if asked else path


def _checked(session: Json) -> Json:
    """Raises `NotUnderstood` if the session lacks a field that Clew uses."""
    for keys in (("id",), ("directory",), ("time", "updated")):
        _at(session, *keys)
    return session


def _at(data: Any, *keys: str) -> Any:
    for key in keys:
        if not isinstance(data, dict) or key not in data:
            raise NotUnderstood(f"OpenCode's answer lacks {'.'.join(keys)}.", "Update OpenCode or Clew.")
        data = data[key]
    return data


def _check(answer: "Answer", what: str) -> None:
    if answer.status in (200, 204):
        return
    name, words = _error_in(answer.data)
    # Both are required: a call that does not exist also gets 404, and another error may use that name.
    if answer.status == 404 and name == NOT_FOUND:
        raise SessionMissing(f"OpenCode has no such session: {words}", "Start a new session.")
    if answer.status == 401:
        raise Refused("OpenCode's server does not accept Clew's password.", "It is started again.")
    raise NotUnderstood(f"OpenCode answered {answer.status} to {what}: {words}", "Look at its own log.")


def _error_in(data: Any) -> tuple[str, str]:
    if not isinstance(data, dict):
        return "", "it said nothing"
    inner = data.get("data")
    words = inner.get("message") if isinstance(inner, dict) else data.get("message")
    return str(data.get("name", "")), str(words or data.get("name") or "it said nothing")
