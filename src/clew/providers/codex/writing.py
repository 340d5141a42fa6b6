"""Whether Codex writes a turn down: it says that one is completed also when its disk is full, and knows nothing of it
later."""

import asyncio
import contextlib
from pathlib import Path

from clew.ports.events import ErrorCode, Failed
from clew.providers.codex.history import written

_PATIENCE = 5.0
"""Seconds. It has written by the time it says that a turn is over, unless it cannot."""


class Writing:
    """Of the turn that begins now, into the session's file."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._start = path, 0
        with contextlib.suppress(OSError):
            self._start = path.stat().st_size if path is not None else 0

    async def missed(self, turn: str | None) -> Failed | None:
        path, start = self._path, self._start
        if path is None or turn is None:
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while not await asyncio.to_thread(written, path, start, turn):
                    await asyncio.sleep(0.05)
                return None
        words = (
            f"Codex answered, and could not write the turn to {path}: it will not know of it. Make room on the disk."
        )
        return Failed(ErrorCode.UNKNOWN, words, retryable=False)
