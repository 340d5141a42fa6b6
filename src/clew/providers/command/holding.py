"""The locks of one open session: many a program names its session only in its first turn, and may name it anew."""

from pathlib import Path

from clew.kernel import NativeId
from clew.programs.locks import SessionLock, lock_session, must_be_lockable


class Holding:
    """Without locks nothing is held: a session that nobody can resume needs none."""

    def __init__(self, locks: Path | None) -> None:
        self._locks = locks
        self._holds: dict[NativeId, SessionLock] = {}

    def begin(self, id_: NativeId | None) -> None:
        """Hold the session of that id, beside those it had before; of one that has none yet, make sure that it can be
        held."""
        if self._locks is None or id_ in self._holds:
            return
        if id_ is None:
            must_be_lockable(self._locks)
        else:
            self._holds[id_] = lock_session(self._locks, id_)

    def end(self) -> None:
        for hold in self._holds.values():
            hold.release()
        self._holds, self._locks = {}, None
