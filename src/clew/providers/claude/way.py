"""The way into a session: what is asked for, looked up in the home before any program starts."""

import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import Cursor, Directory, NativeId
from clew.ports.provider import OpenSpec
from clew.programs import locks as shared
from clew.programs.checks import check_id
from clew.programs.faults import CannotStart, NotAble, Refused
from clew.providers.claude import beside, holding
from clew.providers.claude.apart import apart
from clew.providers.claude.faults import NoSuchSession
from clew.providers.claude.holding import Hold
from clew.providers.claude.home import ID, Home
from clew.providers.claude.store import find

CURSOR_VERSION = 1


@dataclass
class Way:
    """A new session without `source`, a fork with `source` and no `hold`; with both, a session that goes on.

    `placed` are the copies that a fork begins with, until it is a session of its own. `claim` keeps its id ours.
    """

    native_id: NativeId
    source: Path | None = None
    turns: int = 0
    hold: Hold | None = None
    placed: beside.Placed | None = None
    claim: shared.SessionLock | None = None

    def give_up(self) -> None:
        """Give back what was taken, and take away what was made for nothing."""
        if self.hold is not None:
            self.hold.release()
        if self.placed is not None:
            self.placed.remove()
        if self.claim is not None:
            self.claim.release()


async def look_up(home: Home, spec: OpenSpec) -> Way:
    return await apart(lambda: _claimed(home, spec), Way.give_up)


def must_be_there(directory: Directory) -> None:
    """The system's own error would not tell a missing directory from a missing program."""
    if not Path(directory.path).is_dir():
        raise CannotStart(f"The directory {directory.path} is not there.", "Make it, or name another.")


def _claimed(home: Home, spec: OpenSpec) -> Way:
    way = _way(home, spec)
    try:
        way.claim = holding.claim(home, way.native_id)
    except BaseException:
        way.give_up()
        raise
    return way


def _way(home: Home, spec: OpenSpec) -> Way:
    must_be_there(spec.directory)
    fresh = NativeId(spec.fresh_id or str(uuid.uuid4()))
    if re.fullmatch(ID, fresh) is None:
        raise Refused(f"{fresh[:80]!r} is no id for a session of Claude Code.", "Use a lower-case UUID.")
    if home.copies(fresh) or holding.running(home, fresh):
        raise Refused(f"There is a session {fresh} in {home.root} already.", "Choose another id.")
    if spec.cursor is None:
        if spec.fork:
            raise Refused("A fork needs a session that it is made from.", "Name one, or begin afresh.")
        return Way(fresh)
    native_id = readable(spec.cursor)
    stored = find(home, native_id, spec.directory)
    if stored is None or not stored.summary.talks:
        raise NoSuchSession(f"Claude Code has no session {native_id} in {home.root}.", "Begin afresh.")
    if spec.fork:
        placed = beside.copy_for(home, stored.path, home.project(spec.directory), fresh)
        return Way(fresh, stored.path, stored.summary.turns, placed=placed)
    if not stored.here:
        raise NotAble(
            f"Session {native_id} belongs to {stored.directory}; it cannot go on in {spec.directory}.",
            "Fork it into that directory.",
        )
    return Way(native_id, stored.path, stored.summary.turns, holding.take(home, stored.path))


def readable(cursor: Cursor) -> NativeId:
    """Its id. What is none never reaches the program, which would take it for a title."""
    check_id(cursor, CURSOR_VERSION, ID, "Claude Code")
    return cursor.native_id
