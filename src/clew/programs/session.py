"""What the open sessions of all providers have in common: they close once, and have one turn at a time."""

import asyncio
from abc import ABC, abstractmethod

from clew.programs.faults import Refused


class OpenSession(ABC):
    _closing: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Every caller waits for the same end. A caller that is cancelled does not stop it."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

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
