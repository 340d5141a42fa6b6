"""What the open sessions of all providers have in common: one close, one turn at a time, and requests to a person."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

from clew.kernel import ApprovalId
from clew.programs.faults import Refused


class OpenSession(ABC):
    """`after_close` holds what is released once the session has closed, such as its locks."""

    def __init__(self) -> None:
        self.after_close = contextlib.ExitStack()
        self._closing: asyncio.Task[None] | None = None

    def listed_in(self, sessions: set[Self]) -> Self:
        """Add it to these sessions until it has closed."""
        sessions.add(self)
        self.after_close.callback(sessions.discard, self)
        return self

    async def close(self) -> None:
        """Every caller waits for the same end. A caller that is cancelled does not stop it."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_and_release())
        await asyncio.shield(self._closing)

    async def _close_and_release(self) -> None:
        with self.after_close:
            await self._close()

    @property
    def is_closed(self) -> bool:
        """Whether it is being closed, or has been."""
        return self._closing is not None

    def _must_be_open(self) -> None:
        if self.is_closed:
            raise Refused("The session is closed.", "Open it again.")

    def _must_be_idle(self, turn: object) -> None:
        """Refuse a turn on a closed session, or while `turn` is running."""
        self._must_be_open()
        if turn:
            raise Refused("A turn of this session is running.", "Wait for its end, or interrupt it.")

    @abstractmethod
    async def _close(self) -> None: ...


T = TypeVar("T")


@dataclass(slots=True)
class Request(Generic[T]):
    """One permission, or several questions that the agent wants answered together.

    `number` is the agent's own id of it. `parts` maps each question's id to the agent's name for it.

    An answer of None is a refusal.
    """

    number: int | str
    about: T
    parts: Mapping[ApprovalId, str]
    answers: dict[ApprovalId, str | None] = field(default_factory=dict)

    @property
    def is_answered(self) -> bool:
        return len(self.answers) == len(self.parts)


class OpenRequests(Generic[T]):
    """Each part can be answered once, and only while the agent waits for it."""

    def __init__(self) -> None:
        self._open: dict[ApprovalId, Request[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def add(self, request: Request[T]) -> None:
        self._open.update(dict.fromkeys(request.parts, request))

    def record(self, id_: ApprovalId, words: str | None) -> Request[T] | None:
        """Record the answer to one part and return its request; None when that part is not open."""
        request = self._open.pop(id_, None)
        if request is not None:
            request.answers[id_] = words
        return request

    def requests(self) -> Iterator[Request[T]]:
        """Each open request; once for each of its open parts."""
        yield from self._open.values()

    def withdraw(self, number: object) -> None:
        """The agent no longer waits for this request, whether it was answered or not."""
        self._open = {id_: request for id_, request in self._open.items() if request.number != number}

    def clear(self) -> None:
        self._open.clear()
