"""The session that is to be opened, looked up in the home before any program starts."""

import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import NativeId
from clew.ports.provider import OpenSpec
from clew.programs.checks import check_directory
from clew.programs.faults import NotAble, Refused
from clew.programs.locks import SessionLock
from clew.programs.tasks import in_thread
from clew.providers.claude import locks, side_files
from clew.providers.claude.faults import HomeFailed, NoSuchSession
from clew.providers.claude.home import ID, Home, id_of
from clew.providers.claude.locks import TranscriptLock
from clew.providers.claude.transcript import find


@dataclass
class OpenTarget:
    """A new session has no `source`; a fork has a `source` and no `lock`; a resumed session has both.

    `copies` are the side files that were copied for a fork, until the fork is a session of its own. `claim` keeps the
    id from other providers of Clew.
    """

    native_id: NativeId
    source: Path | None = None
    turns: int = 0
    lock: TranscriptLock | None = None
    copies: side_files.Copies | None = None
    claim: SessionLock | None = None

    def release(self) -> None:
        """Release the locks, and remove copies that no session uses."""
        if self.lock is not None:
            self.lock.release()
        if self.copies is not None:
            self.copies.remove()
        if self.claim is not None:
            self.claim.release()


async def find_target(home: Home, spec: OpenSpec) -> OpenTarget:
    return await in_thread(lambda: _claimed(home, spec), HomeFailed, OpenTarget.release)


def _claimed(home: Home, spec: OpenSpec) -> OpenTarget:
    target = _target(home, spec)
    try:
        target.claim = locks.claim_id(home, target.native_id)
    except BaseException:
        target.release()
        raise
    return target


def _target(home: Home, spec: OpenSpec) -> OpenTarget:
    check_directory(Path(spec.directory.path))
    fresh = NativeId(spec.fresh_id or str(uuid.uuid4()))
    if re.fullmatch(ID, fresh) is None:
        raise Refused(f"{fresh[:80]!r} is not a session id for Claude Code.", "Use a lower-case UUID.")
    if home.copies(fresh) or locks.running_in(home, fresh):
        raise Refused(f"There is a session {fresh} in {home.root} already.", "Choose another id.")
    if spec.cursor is None:
        if spec.fork:
            raise Refused("A fork needs a session that it is made from.", "Name one, or begin afresh.")
        return OpenTarget(fresh)
    native_id = id_of(spec.cursor)
    stored = find(home, native_id, spec.directory)
    if stored is None or not stored.summary.talks:
        raise NoSuchSession(f"Claude Code has no session {native_id} in {home.root}.", "Begin afresh.")
    if spec.fork:
        copies = side_files.copy_for_fork(home, stored.path, home.project(spec.directory), fresh)
        return OpenTarget(fresh, stored.path, stored.summary.turns, copies=copies)
    if not stored.here:
        raise NotAble(
            f"Session {native_id} belongs to {stored.directory}; it cannot go on in {spec.directory}.",
            "Fork it into that directory.",
        )
    return OpenTarget(native_id, stored.path, stored.summary.turns, locks.lock_unused(home, stored.path))
