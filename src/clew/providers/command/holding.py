"""The lock of one open session: many a program names its session only in its first turn."""

from pathlib import Path

from clew.kernel import NativeId
from clew.programs.holding import Hold, must_lock, take


class Holding:
    """Without locks nothing is held: a session that nobody can resume needs none."""

    def __init__(self, locks: Path | None) -> None:
        self._locks = locks
        self._hold: Hold | None = None

    def begin(self, id_: NativeId | None) -> None:
        """Hold the session of that id; of one that has none yet, make sure that it can be held."""
        if self._locks is None or self._hold is not None:
            return
        if id_ is None:
            must_lock(self._locks)
        else:
            self._hold = take(self._locks, id_)

    def end(self) -> None:
        if self._hold is not None:
            self._hold.release()
        self._hold, self._locks = None, None
