"""Opening a session as told, and undoing what was made when that comes to nothing."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clew.kernel import Cursor, Landing, NativeId, PermissionMode, choose_mode
from clew.ports.provider import Deadlines, OpenSpec
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.choices import Choice, Matter, choice
from clew.programs.acp.connection import Connection, refused
from clew.programs.acp.history import History
from clew.programs.acp.lookup import Listed, find
from clew.programs.acp.session import Opened
from clew.programs.faults import NotAble, NotUnderstood, ProgramFault, Refused
from clew.programs.rpc import CallRefused

_NO_METHOD = -32601


@dataclass(frozen=True, slots=True)
class Opening:
    """One session on one connection. `mode` has been chosen among those that the agent can express.

    `hold` is called with the id of a session that is made here, so that nobody else opens it.
    """

    connection: Connection
    agent: AcpAgent
    spec: OpenSpec
    mode: PermissionMode
    deadlines: Deadlines
    hold: Callable[[NativeId], None]

    async def open(self) -> Opened:
        cursor = self.spec.cursor
        if cursor is not None and not self.spec.fork:
            answer, history = await self._resumed(cursor)
            _must_be(cursor.native_id, answer)
            if history is not None:
                # What is counted of it is complete only then.
                history.answered()
                await history.over()
            return await self._opened(cursor.native_id, answer, fresh=False, history=history)
        id_, answer = await self._made(cursor)
        if re.fullmatch(self.agent.id_shape, id_) is None:
            await self._delete(id_)
            # Nobody could come back to it.
            raise NotUnderstood(f"{id_[:80]!r} is no id of a session that can be kept.", "Update the agent, or Clew.")
        # One that another has is nothing that was made here, and so is not deleted.
        self.hold(id_)
        try:
            return await self._opened(id_, answer, fresh=cursor is None)
        except BaseException:
            await self._delete(id_)
            raise

    # ---------------------------------------------------------------- one of three ways

    async def _resumed(self, cursor: Cursor) -> tuple[Mapping[str, Any], History | None]:
        """The answer, and the history where it is played back. An agent whose list does not say how many turns a
        session has is asked to play it back, if it can: nothing else shows that the session is the one it was."""
        can, id_ = self.connection.abilities, cursor.native_id
        if not (can.resume or can.load):
            raise NotAble("The agent cannot resume a session.", "Start a new one.")
        known = await self._known(id_)
        if known is None and can.list and self.agent.list_is_whole:
            raise Refused(f"The agent has no session {id_}.", "Start a new one.")
        if known is None and can.list and not self.agent.list_is_short:
            words = f"Session {id_} is not on the agent's list, and the agent may open an empty one instead."
            raise Refused(words, "Say with the option list what its list holds, or start a new one.")
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
        # Nobody listens yet, so the history that it plays back now is counted, and not told again.
        history = History(id_, self.deadlines, self.agent.plays_late)
        self.connection.overhear(history)
        return await self._must("session/load", sessionId=id_), history

    async def _made(self, origin: Cursor | None) -> tuple[NativeId, Mapping[str, Any]]:
        """A new session, or a fork; what is called off while the agent makes it is undone once it is known."""
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
            raise Refused(f"The agent opened {id_} itself instead of a fork.", "Resume it, or start a new one.")
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

    # ---------------------------------------------------------------- then for all

    async def _opened(
        self, id_: NativeId, answer: Mapping[str, Any], fresh: bool, history: History | None = None
    ) -> Opened:
        modes = await self._with_mode(id_, choice(Matter.MODE, answer))
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
            modes,
            models,
            durable=known is not None or resumed,
            fresh=fresh,
            history=history,
        )

    async def _with_mode(self, id_: NativeId, modes: Choice) -> Choice:
        wanted = self.agent.modes[self.mode].id
        if wanted is None or modes.current == wanted:
            return modes
        chosen = await modes.choose(self.connection, id_, wanted)
        if chosen.current != wanted:
            raise Refused(f"The agent has the mode {chosen.current} instead of {wanted}.", "Look at its settings.")
        return chosen

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
        """Only ever of a session that was made here, and only when its opening came to nothing."""
        if self.connection.abilities.delete and self.connection.lives:
            with contextlib.suppress(ProgramFault, CallRefused):
                await self.connection.call("session/delete", {"sessionId": id_}, self.deadlines.close)

    async def _call(self, method: str, **arguments: str) -> Mapping[str, Any]:
        cwd = self.spec.directory.real or self.spec.directory.path
        told = {"cwd": cwd, "mcpServers": [], **({"_meta": self.agent.meta} if self.agent.meta else {}), **arguments}
        return await self.connection.call(method, told, self.deadlines.start)

    async def _must(self, method: str, **arguments: str) -> Mapping[str, Any]:
        try:
            return await self._call(method, **arguments)
        except CallRefused as refusal:
            raise refused(method, refusal, self.connection.redactor) from refusal


def expressible(agent: AcpAgent, wanted: PermissionMode) -> PermissionMode:
    mode = choose_mode(wanted, (), frozenset(agent.modes)).mode
    if mode is None:
        raise NotAble(
            f"{agent.name} can express neither {wanted} nor anything stricter.",
            f"It can be run as {', '.join(map(str, sorted(agent.modes)))}.",
        )
    return mode


def _must_be(id_: NativeId, answer: Mapping[str, Any]) -> None:
    """An answer need not name the session; one that names another is believed."""
    said = answer.get("sessionId")
    if said is not None and said != id_:
        words = f"Session {id_} was asked for, and the agent opened {str(said)[:80]}."
        raise Refused(words, "Nothing was sent. Look at the agent's own sessions, or start a new one.")


def _turns(known: Listed | None, fresh: bool, history: History | None) -> int | None:
    """How many the session has had: by the agent's list, or by what it played back; None where it shows neither. One
    that the agent has just made has had none."""
    if known is not None and known.turns is not None:
        return known.turns
    if history is not None:
        return len(history.prompts)
    return 0 if fresh else None


def _id_of(answer: Mapping[str, Any]) -> NativeId:
    id_ = answer.get("sessionId")
    if not isinstance(id_, str) or not id_:
        raise NotUnderstood("The agent opened a session and did not name it.", "Update the agent.")
    return NativeId(id_)
