"""What an agent plays back of a session that it has loaded; some go on with that after they have answered."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from clew.ports.provider import Deadlines
from clew.programs.faults import TooSlow

_KINDS = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
)
_QUIET = 0.3
"""Seconds without any of it, after which it is over. An agent plays back without a pause."""


class History:
    def __init__(self, deadlines: Deadlines) -> None:
        self._heard = time.monotonic()
        self._patience = deadlines.answer

    def hear(self, update: Mapping[str, Any]) -> None:
        if update.get("sessionUpdate") in _KINDS:
            self._heard = time.monotonic()

    async def over(self) -> None:
        """Wait for its end: what came after a prompt would be taken for the answer."""
        until = time.monotonic() + self._patience
        while (rest := self._heard + _QUIET - time.monotonic()) > 0:
            if time.monotonic() > until:
                words = "The agent does not come to an end of playing back the session."
                raise TooSlow(words, "Nothing was sent; try again.")
            await asyncio.sleep(rest)
