"""Opening a session: new, existing or forked, with the mode applied, and the landing from the server's answers."""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.kernel import Landing, NativeId
from clew.ports.provider import OpenSpec
from clew.programs.checks import check_directory, check_opening, directory_at
from clew.programs.faults import ProgramEnded, ProgramFault, Refused
from clew.programs.locks import SessionLock, lock_session, must_be_lockable
from clew.programs.tasks import gather_or_cancel
from clew.providers.opencode.api import Api
from clew.providers.opencode.faults import CutOff, ModelUnknown, NotListening
from clew.providers.opencode.home import AGENT, CURSORS
from clew.providers.opencode.launch import OpenCodeLaunch
from clew.providers.opencode.messages import Json, turns_in, unfinished_tools
from clew.providers.opencode.modes import Agent, agent_in, apply, as_json
from clew.providers.opencode.restore import move_to
from clew.providers.opencode.server import Server, SharedServer


@dataclass(frozen=True, slots=True)
class Opened:
    """`directory` is spelled as by the server. `known` holds the ids of all messages in the session."""

    id: str
    directory: str
    agent: Agent
    lock: SessionLock
    landing: Landing
    known: set[str]
    unfinished_tools: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Opener:
    server: Server
    shared: SharedServer
    launch: OpenCodeLaunch
    locks: Path
    agent: str | None

    @property
    def api(self) -> Api:
        return Api(self.server)

    async def open(self, spec: OpenSpec) -> Opened:
        place = checked_directory(spec)
        must_be_lockable(self.locks)
        if spec.model is not None:
            await check_model(self.api, place, spec.model)
        if spec.cursor is None:
            return await self._new(spec, place)
        id_ = CURSORS.id_of(spec.cursor)
        if spec.fork:
            return await self._fork(spec, id_, place)
        lock = lock_session(self.locks, id_)
        try:
            return await self._land(spec, await self.api.session(id_), lock)
        except BaseException:
            lock.release()
            raise

    async def _new(self, spec: OpenSpec, place: str) -> Opened:
        agent = await agent_in(self.api, place, self.agent)
        asked: dict[str, object] = {"permission": as_json(agent.rules_for(spec.mode))}
        if spec.model is not None:
            provider, _, model = spec.model.partition("/")
            asked |= {"agent": agent.name, "model": {"providerID": provider, "id": model}}
        return await self._create(spec, self.api.create(place, asked))

    async def _fork(self, spec: OpenSpec, id_: str, place: str) -> Opened:
        return await self._create(spec, self.api.fork(id_, self.launch.deadlines.start), place)

    async def _create(self, spec: OpenSpec, making: Coroutine[Any, Any, Json], place: str | None = None) -> Opened:
        """Create a session. If anything fails, or the caller is cancelled, it is deleted again."""
        made = asyncio.ensure_future(making)
        lock: SessionLock | None = None
        try:
            session = await self._created(made)
            lock = lock_session(self.locks, str(session["id"]))
            if place is not None and directory_at(str(session["directory"])) != directory_at(place):
                session = await move_to(self.api, self.launch, session, place)
            return await self._land(spec, session, lock)
        except BaseException:
            if lock is not None:
                lock.release()
            await asyncio.shield(asyncio.ensure_future(self._delete(made)))
            raise

    async def _created(self, made: "asyncio.Future[Json]") -> Json:
        try:
            return await asyncio.shield(made)
        except NotListening:
            raise
        except ProgramEnded as fault:
            words = "OpenCode ended while it created a session."
            raise CutOff(words, "Open another; an empty one may be left in its list.") from fault

    async def _delete(self, made: "asyncio.Future[Json]") -> None:
        """With the current server: the one that created it may have ended."""
        with contextlib.suppress(ProgramFault):
            id_ = str((await made)["id"])
            await Api(await self.shared.running()).delete(id_)

    async def _land(self, spec: OpenSpec, session: Json, lock: SessionLock) -> Opened:
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
        return Opened(id_, where, agent, lock, landing, known, tuple(unfinished_tools(messages)))


def checked_directory(spec: OpenSpec) -> str:
    """The server would accept a missing directory, and create it when the first file is written."""
    check_opening(spec, AGENT)
    place = Path(spec.directory.real or spec.directory.path)
    check_directory(place)
    return str(place)


async def check_model(api: Api, directory: str, model: str) -> None:
    """An unknown model would stay with the session and fail every later prompt."""
    if model not in await api.models(directory):
        raise ModelUnknown(
            f"OpenCode has no model {model!r} for {directory}.", "Name it as `opencode models` lists it."
        )


def _model(session: Json, spec: OpenSpec) -> str | None:
    """The model of the last prompt. None if another is wanted, which OpenCode learns only with the next prompt."""
    model = session.get("model")
    name = f"{model.get('providerID')}/{model.get('id')}" if isinstance(model, dict) else None
    return name if spec.model in (None, name) else None
