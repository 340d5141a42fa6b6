"""Whether a session took a prompt, by OpenCode's database.

The database is read directly, whether or not a server is running. Its word counts only once it is certain that no
process can still write the prompt or its answer.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from clew.kernel import Attestation, Evidence, Sent, digest_of
from clew.programs.faults import ProgramEnded, ProgramFault, TooSlow
from clew.programs.locks import is_locked
from clew.programs.secrets import Redactor
from clew.providers.opencode.api import Api
from clew.providers.opencode.events import GOES_ON
from clew.providers.opencode.messages import Json, message_id
from clew.providers.opencode.server import Server

_PATIENCE = 0.5
"""Seconds to wait for SQLite's lock. A writer blocks readers only for a moment."""

_FROM_IT_ON = """
    SELECT id, data FROM message
    WHERE session_id = :session
        AND (time_created, id) >= (SELECT time_created, id FROM message WHERE id = :message AND session_id = :session)
    ORDER BY time_created, id
"""
_REVERTED = """
    SELECT 1 FROM message AS first, message AS own
    WHERE first.id = :first AND own.id = :message AND (first.time_created, first.id) <= (own.time_created, own.id)
"""
_REMOVED = """
    SELECT 1 FROM event
    WHERE aggregate_id = :session AND type LIKE 'message.removed%' AND json_extract(data, '$.messageID') = :message
"""


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    info: Json
    parts: tuple[Json, ...]

    @property
    def is_prompt(self) -> bool:
        """Sent from outside, not written by OpenCode itself to continue a turn or to compact a history."""
        asked = (part for part in self.parts if part.get("type") == "text" and not part.get("synthetic"))
        return self.info.get("role") == "user" and any(asked)


@dataclass(frozen=True, slots=True)
class StoredPrompt:
    """`messages` begin with the prompt's own; none if the session does not hold it.

    `undone`: the session held it, and a person has undone it.
    """

    directory: str
    messages: tuple[Message, ...]
    undone: bool

    @property
    def holds_it(self) -> bool:
        """With its text: OpenCode writes that after the message, and ignores a message without any."""
        return bool(self.messages) and self.messages[0].is_prompt


def read_prompt(store: Path, session: str, message: str) -> StoredPrompt | None:
    """None if there is no such session. Raises `sqlite3.Error` or `ValueError` if it cannot be read."""
    with closing(sqlite3.connect(f"file:{quote(str(store))}?mode=ro", uri=True, timeout=_PATIENCE)) as database:
        database.isolation_level = None
        # One transaction: all reads see the same state.
        database.execute("BEGIN")
        about = {"session": session, "message": message}
        row = database.execute("SELECT directory, revert FROM session WHERE id = :session", about).fetchone()
        if row is None:
            return None
        rows = database.execute(_FROM_IT_ON, about).fetchall()
        messages = tuple(Message(id_, _object(data), _parts(database, id_)) for id_, data in rows)
        undone = _is_reverted(database, row[1], about) if rows else _is_removed(database, about)
        return StoredPrompt(str(row[0]), messages, undone)


def _parts(database: sqlite3.Connection, message: str) -> tuple[Json, ...]:
    rows = database.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id", (message,))
    return tuple(_object(data) for (data,) in rows)


def _is_removed(database: sqlite3.Connection, about: dict[str, str]) -> bool:
    return database.execute(_REMOVED, about).fetchone() is not None


def _is_reverted(database: sqlite3.Connection, revert: str | None, about: dict[str, str]) -> bool:
    """Whether the message was undone. With the next prompt OpenCode removes it and all after it."""
    if revert is None:
        return False
    first = {**about, "first": str(_object(revert).get("messageID"))}
    return database.execute(_REVERTED, first).fetchone() is not None


def _object(data: Any) -> Json:
    value = orjson.loads(data)
    if not isinstance(value, dict):
        raise ValueError("a row does not hold a JSON object")
    return value


_SAID = ("text", "reasoning", "tool", "file")
"""The parts that show work of the agent. The others mark a step that began, ended or was retried."""


def attestation(stored: StoredPrompt | None, sent: Sent, redactor: Redactor) -> Attestation:
    """What the database proves, if nothing runs in the session any more."""
    if stored is None:
        return Attestation(Evidence.UNSENT, "OpenCode has no such session.")
    if stored.undone:
        return Attestation(Evidence.UNKNOWN, "It was in the session, and was undone there.")
    if not stored.holds_it:
        return Attestation(
            Evidence.UNSENT, f"The session does not hold it{', only an empty message' * bool(stored.messages)}."
        )
    turn = _turn(stored.messages, sent.digest)
    if turn.answers and (turn.said[-1] is turn.answers[-1] or turn.answers[0].info.get("parentID") == turn.prompt):
        return Attestation(Evidence.FINISHED, "The session holds it and its answer.", redactor.text(turn.reply))
    if any(part.get("type") in _SAID for message in turn.said for part in message.parts):
        return Attestation(Evidence.CUT_OFF, f"The session holds it and part of a turn{turn.error}.")
    return Attestation(Evidence.TAKEN, f"The session holds it, and nothing follows{turn.error}.")


@dataclass
class _Turn:
    """`said`: the agent's messages from the prompt to the end of its turn. `steered`: it got more prompts."""

    prompt: str
    said: list[Message] = field(default_factory=list)
    steered: bool = False

    @property
    def answers(self) -> Sequence[Message]:
        return [message for message in self.said if _is_final(message)]

    @property
    def reply(self) -> str:
        """Of a turn with an answer, the same as `TurnFollower.reply`: the last text, or all answers if steered."""
        answers = [text for text in map(_text, self.answers) if text]
        if self.steered and len(answers) > 1:
            return "\n\n".join(answers)
        whole = self.said[: self.said.index(self.answers[-1]) + 1]
        return next((text for text in map(_text, reversed(whole)) if text), "")

    @property
    def error(self) -> str:
        error = self.said[-1].info.get("error") if self.said else None
        return f" ({error.get('name')})" if isinstance(error, dict) else ""


def _turn(messages: Sequence[Message], digest: str) -> _Turn:
    turn, last = _Turn(messages[0].id), None
    for message in messages[1:]:
        if message.info.get("role") == "assistant":
            last = message
            if not message.info.get("summary"):
                turn.said.append(message)
        elif message.is_prompt:
            if last is None or not (_came_during(last, message) or _is_repeated(last, message, digest)):
                break
            turn.steered = turn.steered or not last.info.get("summary")
    return turn


def _came_during(last: Message, prompt: Message) -> bool:
    completed, created = _time(last, "completed"), _time(prompt, "created")
    return completed is not None and created is not None and created <= completed


def _is_repeated(last: Message, prompt: Message, digest: str) -> bool:
    """When a history is too long, OpenCode compacts it during the turn, and then adds the same prompt again."""
    return bool(last.info.get("summary")) and digest_of(_text(prompt)) == digest


def _is_final(message: Message) -> bool:
    """By the same rule as OpenCode ends a turn."""
    info = message.info
    if info.get("error") or _time(message, "completed") is None or info.get("finish") in (None, *GOES_ON):
        return False
    return not any(part.get("type") == "tool" and not _needs_no_answer(part) for part in message.parts)


def _needs_no_answer(tool: Json) -> bool:
    """Run by the model's own provider, or interrupted: its result is not sent to the model."""
    state, own = tool.get("state") or {}, tool.get("metadata") or {}
    called_off = state.get("status") == "error" and (state.get("metadata") or {}).get("interrupted") is True
    return bool(own.get("providerExecuted")) or called_off


def _text(message: Message) -> str:
    return "\n".join(str(part["text"]) for part in message.parts if part.get("type") == "text" and part.get("text"))


def _time(message: Message, of: str) -> int | None:
    value = (message.info.get("time") or {}).get(of)
    return value if isinstance(value, int) else None


_ANSWER = 2.0
"""Seconds for a server to say whether the session is busy. Without an answer, it is asked again later."""


@dataclass(frozen=True, slots=True)
class Witness:
    store: Path
    locks: Path
    redactor: Redactor

    async def heard(self, session: str, sent: Sent, server: Server | None, ours: bool) -> Attestation:
        """`server` is the one that was started last. `ours`: this provider has the session open."""
        try:
            return await self._attest(session, sent, server, ours)
        except ProgramFault as fault:
            return Attestation(Evidence.UNKNOWN, fault.words)
        except (sqlite3.Error, OSError, ValueError) as fault:
            return Attestation(Evidence.UNKNOWN, f"OpenCode's database {self.store} cannot be read: {fault}.")

    async def _attest(self, session: str, sent: Sent, server: Server | None, ours: bool) -> Attestation:
        message = message_id(sent.id)
        stored = await self._read(session, message)
        may_come, busy = False, False
        if stored is not None and server is not None:
            may_come = server.alive and not stored.holds_it and not server.gate.shut(message)
            running = await _is_busy(server, session, stored.directory)
            may_come, busy = may_come and running is not None, bool(running)
            stored = await self._read(session, message)
        attested = attestation(stored, sent, self.redactor)
        if attested.evidence is Evidence.FINISHED:
            return attested
        if busy:
            return Attestation(Evidence.UNKNOWN, "A turn of the session is running.")
        if attested.evidence is Evidence.UNSENT and may_come:
            return Attestation(Evidence.UNKNOWN, "OpenCode has accepted it, and is writing it.")
        if not ours and is_locked(self.locks, session):
            return Attestation(Evidence.UNKNOWN, "Another process of Clew has the session open.")
        return attested

    async def _read(self, session: str, message: str) -> StoredPrompt | None:
        if not self.store.exists():
            raise FileNotFoundError("it is not there")
        return await asyncio.to_thread(read_prompt, self.store, session, message)


async def _is_busy(server: Server, session: str, directory: str) -> bool | None:
    """Whether a turn of the session is running; None if the server has ended, so that it writes nothing more."""
    if server.alive:
        try:
            async with asyncio.timeout(_ANSWER):
                return await Api(server).busy(session, directory)
        except TimeoutError as fault:
            words = f"OpenCode's server did not say within {_ANSWER:g} s whether the session is busy."
            raise TooSlow(words, "It is asked again.") from fault
        except ProgramEnded:
            pass
    if not await server.is_gone():
        raise TooSlow("OpenCode's server is being ended.", "It is asked again.")
    return None
