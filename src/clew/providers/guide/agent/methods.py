"""The methods of the protocol that the guide offers."""

import asyncio
import datetime
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from clew import __version__
from clew.providers.guide.agent.rpc import (
    INTERNAL,
    INVALID,
    NO_METHOD,
    NOT_FOUND,
    PROMPT_ID,
    STEER,
    CallError,
    Json,
    Rpc,
)
from clew.providers.guide.agent.tools import MODES
from clew.providers.guide.agent.turn import RunningTurn, play_back
from clew.providers.guide.memory import FINISHED, Busy, Damaged, Memory, Missing, Session, Turn

_PAGE = 50
_ABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": False, "audio": False, "embeddedContext": False},
    "sessionCapabilities": {"list": {}, "resume": {}, "fork": {}, "delete": {}, "close": {}},
}


class Methods:
    def __init__(self, home: Path) -> None:
        self._memory = Memory(home)
        self._sessions: dict[str, Session] = {}
        self._modes: dict[str, str] = {}
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, RunningTurn] = {}
        self._rpc = Rpc(self._handle, self._hear)
        self._methods: dict[str, Callable[[Json], Awaitable[Json]]] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/delete": self._delete,
            "session/close": self._close,
            "session/set_mode": self._set_mode,
            "session/prompt": self._prompt,
            STEER: self._steer,
        }

    async def serve(self) -> None:
        await self._rpc.serve()

    async def _handle(self, method: str, said: Json) -> Json:
        if method not in self._methods:
            raise CallError(NO_METHOD, f"The guide has no {method}.")
        with _call_errors():
            return await self._methods[method](said)

    def _hear(self, method: str, said: Json) -> None:
        if method == "session/cancel" and (turn := self._turns.get(str(said.get("sessionId")))) is not None:
            turn.cancel()

    # ---------------------------------------------------------------- sessions

    async def _initialize(self, said: Json) -> Json:  # noqa: ARG002 - the same for every client
        info = {"name": "clew-guide", "title": "The guide of Clew", "version": __version__}
        return {"protocolVersion": 1, "agentCapabilities": _ABILITIES, "agentInfo": info, "authMethods": []}

    async def _new(self, said: Json) -> Json:
        session = self._memory.create(_place(said), [])
        return {"sessionId": session.id, **self._opened(session)}

    async def _fork(self, said: Json) -> Json:
        origin = self._memory.load(said["sessionId"])
        session = self._memory.create(_place(said), origin.turns)
        return {"sessionId": session.id, **self._opened(session)}

    async def _resume(self, said: Json) -> Json:
        session = self._memory.load(said["sessionId"])
        if Path(session.directory) != Path(_place(said)):
            raise CallError(INVALID, f"{session.id} works in {session.directory}.", {"cwd": session.directory})
        self._memory.lock(session.id)
        return self._opened(session)

    async def _load(self, said: Json) -> Json:
        answer = await self._resume(said)
        play_back(self._sessions[said["sessionId"]], lambda each: self._rpc.notify("session/update", each))
        return answer

    async def _list(self, said: Json) -> Json:
        place = said.get("cwd")
        found = [each for each in self._memory.all() if place is None or Path(each.directory) == Path(place).resolve()]
        start = int(said.get("cursor") or 0)
        page = found[start : start + _PAGE]
        following = {"nextCursor": str(start + _PAGE)} if len(found) > start + _PAGE else {}
        return {"sessions": [_entry(each) for each in page], **following}

    async def _delete(self, said: Json) -> Json:
        self._memory.delete(said["sessionId"])
        self._sessions.pop(said["sessionId"], None)
        return {}

    async def _close(self, said: Json) -> Json:
        self._sessions.pop(said["sessionId"], None)
        self._memory.release(said["sessionId"])
        return {}

    async def _set_mode(self, said: Json) -> Json:
        session = self._open(said)
        if said.get("modeId") not in MODES:
            raise CallError(INVALID, f"The guide has no mode {said.get('modeId')}.")
        self._modes[session.id] = said["modeId"]
        return {}

    # ---------------------------------------------------------------- turns

    async def _prompt(self, said: Json) -> Json:
        session = self._open(said)
        if session.id in self._turns:
            raise CallError(INVALID, "A turn of this session is running.")
        *told, prompt = [block.get("text", "") for block in said["prompt"] if block.get("type") == "text"]
        turn = Turn(prompt, "\n".join(told), ids=_ids(said))
        session.turns.append(turn)
        self._save(session)
        running = self._running[session.id] = RunningTurn(self._rpc, session, self._modes[session.id], self._save)
        task = self._turns[session.id] = asyncio.create_task(running.run(prompt))
        try:
            await task
            turn.ending = FINISHED
        except asyncio.CancelledError:
            turn.ending = "cancelled"
        except CallError:
            turn.ending = "failed"
            raise
        finally:
            task.cancel()
            del self._turns[session.id], self._running[session.id]
            running.stop_steering()
            turn.reply = running.said
            self._save(session)
        return {"stopReason": turn.ending, "usage": _usage(turn)}

    async def _steer(self, said: Json) -> Json:
        running = self._running.get(self._open(said).id)
        words = "\n".join(block.get("text", "") for block in said["prompt"] if block.get("type") == "text")
        return {"taken": running is not None and await running.steer(words, _ids(said))}

    def _open(self, said: Json) -> Session:
        session = self._sessions.get(said["sessionId"])
        if session is None:
            raise Missing(said["sessionId"])
        return session

    def _save(self, session: Session, lasting: bool = True) -> None:
        session.updated = max(datetime.datetime.now(datetime.UTC).timestamp(), session.updated)
        self._memory.save(session, lasting)

    def _opened(self, session: Session) -> Json:
        """Every opening begins in the strictest mode."""
        self._sessions[session.id] = session
        self._modes[session.id] = "read"
        offered = [{"id": mode, "name": mode.capitalize(), "description": words} for mode, words in MODES.items()]
        return {"modes": {"currentModeId": "read", "availableModes": offered}}


def _place(said: Json) -> str:
    place = Path(said["cwd"])
    if not place.is_absolute() or not place.is_dir():
        raise CallError(INVALID, f"{place} is not a directory.")
    return str(place.resolve())


def _ids(said: Json) -> list[str]:
    meta = said.get("_meta")
    id_ = meta.get(PROMPT_ID) if isinstance(meta, dict) else None
    return [id_] if isinstance(id_, str) and id_ else []


def _entry(session: Session) -> Json:
    when = datetime.datetime.fromtimestamp(session.updated, datetime.UTC).isoformat()
    meta = {"turns": len(session.turns)}
    return {"sessionId": session.id, "cwd": session.directory, "title": session.title, "updatedAt": when, "_meta": meta}


def _usage(turn: Turn) -> Json:
    """Counted in words: the guide has no tokens."""
    read, said = len(turn.prompt.split()), len(turn.reply.split())
    return {"inputTokens": read, "outputTokens": said, "totalTokens": read + said}


@contextmanager
def _call_errors() -> Iterator[None]:
    try:
        yield
    except Missing as fault:
        raise CallError(NOT_FOUND, "Resource not found", {"uri": str(fault)}) from fault
    except Damaged as fault:
        raise CallError(INTERNAL, f"The session cannot be read: {fault}.", {"reason": "damaged"}) from fault
    except Busy as fault:
        raise CallError(INTERNAL, f"{fault} is open in another process.", {"reason": "busy"}) from fault
    except OSError as fault:
        raise CallError(INTERNAL, f"The guide cannot use its home: {fault}.", {"reason": "home"}) from fault
