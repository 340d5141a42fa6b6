"""Opening a session: made, found or forked, with the mode that was asked for, and what the server then says of it."""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.kernel import Landing, NativeId
from clew.ports.provider import OpenSpec
from clew.programs.faults import CannotStart, NotAble, ProgramEnded, ProgramFault, Refused
from clew.programs.locks import SessionLock, lock_session, must_be_lockable
from clew.programs.tasks import gather_or_cancel
from clew.providers.opencode.api import Api
from clew.providers.opencode.faults import CutOff, ModelUnknown
from clew.providers.opencode.home import directory_at, id_of
from clew.providers.opencode.http import Json, NotListening
from clew.providers.opencode.launch import Launch
from clew.providers.opencode.messages import left_running, turns_in
from clew.providers.opencode.modes import Agent, agent_in, apply, as_json
from clew.providers.opencode.restore import bring_into
from clew.providers.opencode.server import Server, Shared


@dataclass(frozen=True, slots=True)
class Opened:
    """`directory` is the session's own, as the server spells it. `left` are the tools that nobody ended."""

    id: str
    directory: str
    agent: Agent
    hold: SessionLock
    landing: Landing
    known: set[str]
    left: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Opening:
    server: Server
    shared: Shared
    launch: Launch
    locks: Path
    agent: str | None

    @property
    def api(self) -> Api:
        return Api(self.server)

    async def open(self, spec: OpenSpec) -> Opened:
        place = place_of(spec)
        must_be_lockable(self.locks)
        if spec.model is not None:
            await must_have(self.api, place, spec.model)
        if spec.cursor is None:
            return await self._new(spec, place)
        id_ = id_of(spec.cursor)
        if spec.fork:
            return await self._fork(spec, id_, place)
        hold = lock_session(self.locks, id_)
        try:
            return await self._land(spec, await self.api.session(id_), hold)
        except BaseException:
            hold.release()
            raise

    async def _new(self, spec: OpenSpec, place: str) -> Opened:
        agent = await agent_in(self.api, place, self.agent)
        asked: dict[str, object] = {"permission": as_json(agent.rules_for(spec.mode))}
        if spec.model is not None:
            provider, _, model = spec.model.partition("/")
            asked |= {"agent": agent.name, "model": {"providerID": provider, "id": model}}
        return await self._made(spec, self.api.create(place, asked))

    async def _fork(self, spec: OpenSpec, id_: str, place: str) -> Opened:
        return await self._made(spec, self.api.fork(id_, self.launch.deadlines.start), place)

    async def _made(self, spec: OpenSpec, making: Coroutine[Any, Any, Json], place: str | None = None) -> Opened:
        """A session that is there as soon as it is asked for; one that is not wanted any more is deleted again."""
        made = asyncio.ensure_future(making)
        hold: SessionLock | None = None
        try:
            session = await self._known(made)
            hold = lock_session(self.locks, str(session["id"]))
            if place is not None and directory_at(str(session["directory"])) != directory_at(place):
                session = await bring_into(self.api, self.launch, session, place)
            return await self._land(spec, session, hold)
        except BaseException:
            if hold is not None:
                hold.release()
            await asyncio.shield(asyncio.ensure_future(self._unmake(made)))
            raise

    async def _known(self, made: "asyncio.Future[Json]") -> Json:
        try:
            return await asyncio.shield(made)
        except NotListening:
            raise
        except ProgramEnded as fault:
            words = "OpenCode ended while it made a session."
            raise CutOff(words, "Open another; an empty one may be left in its list.") from fault

    async def _unmake(self, made: "asyncio.Future[Json]") -> None:
        """By whatever server there is: the one that made it may be gone by now."""
        with contextlib.suppress(ProgramFault):
            id_ = str((await made)["id"])
            await Api(await self.shared.running()).delete(id_)

    async def _land(self, spec: OpenSpec, session: Json, hold: SessionLock) -> Opened:
        if session.get("parentID"):
            raise Refused(f"Session {session['id']} belongs to a subagent.", "Open the session that it belongs to.")
        id_, where = str(session["id"]), str(session["directory"])
        agent, messages = await gather_or_cancel(
            agent_in(self.api, where, self.agent), self.api.messages(id_, self.launch.deadlines.start)
        )
        mode = await apply(self.api, session, spec.mode, agent)
        landing = Landing(
            native_id=NativeId(id_),
            directory=directory_at(where),
            mode=mode,
            model=_model(session, spec),
            turns=turns_in(messages),
        )
        known = {str(each["info"]["id"]) for each in messages}
        return Opened(id_, where, agent, hold, landing, known, tuple(left_running(messages)))


def place_of(spec: OpenSpec) -> str:
    if spec.fork and spec.cursor is None:
        raise Refused("A fork needs a session that it is made from.", "Name one, or begin afresh.")
    if spec.fresh_id is not None:
        raise NotAble("OpenCode names its sessions itself.", "Open it without an id; it says which it took.")
    place = Path(spec.directory.real or spec.directory.path)
    if not place.is_dir():
        # The server would take it, and make it when the first file is written.
        raise CannotStart(f"There is no directory {place}.", "Make it, or name another.")
    return str(place)


async def must_have(api: Api, directory: str, model: str) -> None:
    """A model that it does not know would stay with the session, and fail every later prompt."""
    if model not in await api.models(directory):
        raise ModelUnknown(f"OpenCode has no model {model!r} there.", "Name it as `opencode models` lists it.")


def _model(session: Json, spec: OpenSpec) -> str | None:
    """The one that it used last, unless another is told with the next prompt: of that nothing is said before."""
    told = session.get("model")
    name = f"{told.get('providerID')}/{told.get('id')}" if isinstance(told, dict) else None
    return name if spec.model in (None, name) else None
