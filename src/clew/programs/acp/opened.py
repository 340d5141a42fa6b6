"""Opens a session: new, resumed or forked. One that was created by an opening that fails is deleted again."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clew.kernel import Cursor, Directory, Landing, NativeId, PermissionMode
from clew.ports.provider import Deadlines, OpenSpec
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.choices import Choice, Matter, OwnMode, choice
from clew.programs.acp.connection import Connection, refused
from clew.programs.acp.history import History
from clew.programs.acp.lookup import Listed, find
from clew.programs.faults import NotAble, NotUnderstood, ProgramFault, Refused
from clew.programs.rpc import CallRefused

_NO_METHOD = -32601


@dataclass(slots=True)
class Opened:
    """A session as it was opened. `durable`: another process could find it by now. `fresh`: it is new, not a fork.

    `history` is what the agent played back, if it did.
    """

    id: NativeId
    directory: Directory
    landing: Landing
    mode: PermissionMode
    own_mode: OwnMode
    models: Choice
    durable: bool
    fresh: bool
    history: History | None


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens one session on one connection. `mode` is one that the agent can express.

    `lock` is called with the id of a session that is created here, so that no other process opens it.
    """

    connection: Connection
    agent: AcpAgent
    spec: OpenSpec
    mode: PermissionMode
    deadlines: Deadlines
    lock: Callable[[NativeId], None]

    async def open(self) -> Opened:
        cursor = self.spec.cursor
        if cursor is not None and not self.spec.fork:
            answer, history = await self._resumed(cursor)
            _check_id(cursor.native_id, answer)
            if history is not None:
                # Its turns are counted, so it must be complete.
                history.answered()
                await history.over()
            return await self._opened(cursor.native_id, answer, fresh=False, history=history)
        id_, answer = await self._made(cursor)
        if re.fullmatch(self.agent.id_shape, id_) is None:
            await self._delete(id_)
            # It could not be resumed.
            raise NotUnderstood(
                f"The agent named its session {id_[:80]!r}, which is no id of it.", "Update the agent or Clew."
            )
        # Outside of the try: a session that another process has was not created here, and is not deleted.
        self.lock(id_)
        try:
            return await self._opened(id_, answer, fresh=cursor is None)
        except BaseException:
            await self._delete(id_)
            raise

    # ---------------------------------------------------------------- resumed, new or forked

    async def _resumed(self, cursor: Cursor) -> tuple[Mapping[str, Any], History | None]:
        """The answer, and the history if it is played back.

        An agent whose list does not count turns is asked to play the session back, if it can: nothing else shows that
        the session is still the same.
        """
        can, id_ = self.connection.abilities, cursor.native_id
        if not (can.resume or can.load):
            raise NotAble("The agent cannot resume a session.", "Start a new one.")
        known = await self._known(id_)
        if known is None and can.list and self.agent.list_is_whole:
            raise Refused(f"The agent has no session {id_}.", "Start a new one.")
        if known is None and can.list and not self.agent.list_is_short:
            words = f"Session {id_} is not on the agent's list, and the agent might open an empty one instead."
            raise Refused(words, "Say with the option `list` whether its list is whole, or start a new session.")
        if known is not None and known.directory not in (None, self.spec.directory):
            raise Refused(
                f"Session {id_} belongs to {known.directory}, not to {self.spec.directory}.",
                "Fork it, or open it there.",
            )
        if can.resume and (not can.load or (known is not None and known.turns is not None)):
            try:
                return await self._call("session/resume", sessionId=id_), None
            except CallRefused as refusal:
                if refusal.code != _NO_METHOD or not can.load:
                    raise refused("session/resume", refusal, self.connection.redactor) from refusal
        # There is no listener yet: what it plays back now is counted, and becomes no event.
        history = History(id_, self.deadlines, self.agent.plays_late)
        self.connection.record(history)
        return await self._must("session/load", sessionId=id_), history

    async def _made(self, origin: Cursor | None) -> tuple[NativeId, Mapping[str, Any]]:
        """A new session, or a fork. If the caller is cancelled meanwhile, it is deleted once its id is known."""
        making = asyncio.create_task(self._must("session/new") if origin is None else self._forked(origin))
        try:
            answer = await asyncio.shield(making)
        except asyncio.CancelledError:
            with contextlib.suppress(ProgramFault, TimeoutError):
                async with asyncio.timeout(self.deadlines.close):
                    made = await making
                await self._delete(_id_of(made))
            raise
        id_ = _id_of(answer)
        if origin is not None and id_ == origin.native_id:
            raise Refused(f"The agent opened {id_} itself instead of a fork.", "Resume it, or start a new session.")
        return id_, answer

    async def _forked(self, origin: Cursor) -> Mapping[str, Any]:
        if not self.connection.abilities.fork:
            raise NotAble("The agent cannot fork a session.", "Resume it, or start a new one.")
        known = await self._known(origin.native_id)
        if not self.agent.fork_into and known is not None and known.directory not in (None, self.spec.directory):
            raise NotAble(
                f"The agent forks a session only in its own directory, {known.directory}.", "Start a new one instead."
            )
        return await self._must("session/fork", sessionId=origin.native_id)

    # ---------------------------------------------------------------- mode, model, landing

    async def _opened(
        self, id_: NativeId, answer: Mapping[str, Any], fresh: bool, history: History | None = None
    ) -> Opened:
        own_mode = OwnMode(self.connection, id_, self.agent, choice(Matter.MODE, answer))
        await own_mode.apply(self.mode)
        models = await self._with_model(id_, choice(Matter.MODEL, answer))
        known = await self._known(id_)
        resumed = self.spec.cursor is not None and not self.spec.fork
        landing = Landing(
            native_id=id_,
            directory=None if known is None else known.directory,
            mode=self.mode,
            model=models.current,
            turns=_turns(known, fresh, history),
        )
        return Opened(
            id_,
            self.spec.directory,
            landing,
            self.mode,
            own_mode,
            models,
            durable=known is not None or resumed,
            fresh=fresh,
            history=history,
        )

    async def _with_model(self, id_: NativeId, models: Choice) -> Choice:
        wanted = self.spec.model
        if wanted is None or models.current == wanted:
            return models
        if not models.offered:
            raise NotAble("The agent offers no choice of models.", "Choose the model in the agent's own settings.")
        return await models.choose(self.connection, id_, wanted)

    async def _known(self, id_: NativeId) -> Listed | None:
        if not self.connection.abilities.list:
            return None
        return await find(self.connection, id_, self.spec.directory)

    async def _delete(self, id_: NativeId) -> None:
        """Only for a session that was created here and whose opening failed."""
        if self.connection.abilities.delete and self.connection.lives:
            with contextlib.suppress(ProgramFault, CallRefused):
                await self.connection.call("session/delete", {"sessionId": id_}, self.deadlines.close)

    async def _call(self, method: str, **arguments: str) -> Mapping[str, Any]:
        cwd = self.spec.directory.real or self.spec.directory.path
        parameters = {
            "cwd": cwd,
            "mcpServers": [],
            **({"_meta": self.agent.meta} if self.agent.meta else {}),
            **arguments,
        }
        return await self.connection.call(method, parameters, self.deadlines.start)

    async def _must(self, method: str, **arguments: str) -> Mapping[str, Any]:
        try:
            return await self._call(method, **arguments)
        except CallRefused as refusal:
            raise refused(method, refusal, self.connection.redactor) from refusal


def _check_id(id_: NativeId, answer: Mapping[str, Any]) -> None:
    """An answer need not name the session. If it names another, that one was opened."""
    said = answer.get("sessionId")
    if said is not None and said != id_:
        words = f"Session {id_} was asked for, and the agent opened {str(said)[:80]}."
        raise Refused(words, "Nothing was sent. Look at the agent's own sessions, or start a new session.")


def _turns(known: Listed | None, fresh: bool, history: History | None) -> int | None:
    """By the agent's list, or by the history it played back; None if it shows neither. A new session has none."""
    if known is not None and known.turns is not None:
        return known.turns
    if history is not None:
        return len(history.prompts)
    return 0 if fresh else None


def _id_of(answer: Mapping[str, Any]) -> NativeId:
    id_ = answer.get("sessionId")
    if not isinstance(id_, str) or not id_:
        raise NotUnderstood("The agent opened a session and did not name its id.", "Update the agent.")
    return NativeId(id_)
