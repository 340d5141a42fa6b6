"""A session to open, looked up in the home before any program starts; and the session once it is open: its process,
its place on disk, its mode, and its background tasks."""

import asyncio
import contextlib
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from clew.kernel import Cursor, Landing, NativeId, PermissionMode
from clew.ports.events import SessionNamed
from clew.ports.provider import Deadlines, OpenSpec
from clew.programs.checks import check_directory, check_fork
from clew.programs.faults import HomeFailed, NotAble, Refused, SessionBusy, SessionMissing
from clew.programs.locks import FileLock, SessionLock
from clew.programs.program import Program
from clew.programs.rpc import Message
from clew.programs.secrets import Redactor
from clew.programs.tasks import in_thread
from clew.providers.claude import locks, modes, side_files, transcript
from clew.providers.claude.approvals import Approvals
from clew.providers.claude.connection import Connection
from clew.providers.claude.events import EventReader, Usage
from clew.providers.claude.home import AGENT, CURSORS, Home, real
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
    lock: FileLock | None = None
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
    return await in_thread(lambda: _claimed(home, spec), AGENT, OpenTarget.release)


def _claimed(home: Home, spec: OpenSpec) -> OpenTarget:
    target = _target(home, spec)
    try:
        target.claim = locks.claim_id(home, target.native_id)
    except BaseException:
        target.release()
        raise
    return target


def _target(home: Home, spec: OpenSpec) -> OpenTarget:
    check_fork(spec)
    check_directory(Path(spec.directory.path))
    fresh = NativeId(spec.fresh_id or str(uuid.uuid4()))
    if re.fullmatch(CURSORS.shape, fresh) is None:
        raise Refused(f"{fresh[:80]!r} is not a session id for Claude Code.", "Use a lower-case UUID.")
    if home.copies(fresh) or locks.running_in(home, fresh):
        raise Refused(f"There is a session {fresh} in {home.root} already.", "Choose another id.")
    if spec.cursor is None:
        return OpenTarget(fresh)
    native_id = CURSORS.id_of(spec.cursor)
    stored = find(home, native_id, spec.directory)
    if stored is None or not stored.summary.talks:
        raise SessionMissing(f"Claude Code has no session {native_id} in {home.root}.", "Start a new session.")
    if spec.fork:
        copies = side_files.copy_for_fork(home, stored.path, home.project(spec.directory), fresh)
        return OpenTarget(fresh, stored.path, stored.summary.turns, copies=copies)
    if not stored.here:
        raise NotAble(
            f"Session {native_id} belongs to {stored.directory}; it cannot go on in {spec.directory}.",
            "Fork it into that directory.",
        )
    return OpenTarget(native_id, stored.path, stored.summary.turns, locks.lock_unused(home, stored.path))


_WRITING = 5.0
"""Seconds. The program writes a line to its transcript a little after it has sent the same."""
_RUNNING = frozenset({"pending", "running"})


class BackgroundTasks:
    """Commands and agents that outlast their turn. The program reports their begin and end, also between turns."""

    def __init__(self) -> None:
        self._tasks: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def note(self, message: Message) -> None:
        if message.get("type") != "system":
            return
        task = str(message.get("task_id"))
        match message.get("subtype"):
            case "task_started":
                self._tasks.add(task)
            case "task_notification":
                self._tasks.discard(task)
            case "task_updated" if (message.get("patch") or {}).get("status", "running") not in _RUNNING:
                self._tasks.discard(task)
            case _:
                pass


@dataclass
class Opened:
    """`mode` is in force; `next_mode` is the next turn's. `started_full`: the process was started in the full mode."""

    program: Program
    connection: Connection
    home: Home
    redactor: Redactor
    deadlines: Deadlines
    landing: Landing
    native_id: NativeId
    mode: PermissionMode
    next_mode: PermissionMode
    started_full: bool
    model: str | None
    approvals: Approvals
    target: OpenTarget
    cursor: Cursor | None = None
    transcript: Path | None = None
    usage: Usage = field(default_factory=Usage)
    applying: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def named(self) -> SessionNamed:
        return SessionNamed(self.native_id, self.cursor is not None)

    def reader(self) -> EventReader:
        return EventReader(self.redactor, self.home.tasks(self.native_id))

    @property
    def needs_restart(self) -> bool:
        """Whether the next mode needs another process: full or not full is fixed when the process starts."""
        return self.next_mode is not self.mode and self.started_full is not (self.next_mode is PermissionMode.FULL)

    async def apply_mode(self) -> PermissionMode:
        """Put the next mode into force, unless it needs a restart. One at a time: the last one applied counts."""
        async with self.applying:
            if self.next_mode is not self.mode and not self.needs_restart:
                wanted = self.next_mode
                self.mode = await modes.apply(self.connection, wanted, self.deadlines.answer)
                if self.next_mode is wanted:
                    self.next_mode = self.mode
            return self.mode

    def count_usage(self, result: Message) -> None:
        _, self.usage = Usage.of_turn(result, self.usage)

    def mismatch(self, native_id: object, place: object, word: object) -> str | None:
        """How the program's session, directory or mode differs from its landing; None when all are as they were."""
        landing, mode = self.landing, modes.meant(word)
        if native_id != self.native_id:
            return f"Claude Code is in session {native_id}, not in {self.native_id}."
        if place is not None and landing.directory is not None and str(place) != real(landing.directory):
            return f"Claude Code works in {place}, not in {landing.directory}."
        if mode is None or mode > self.mode:
            return f"Claude Code has the mode {word}, which is more than {self.mode}."
        return None

    @property
    def is_stored(self) -> bool:
        """False once the transcript is gone."""
        try:
            return self.transcript is None or self.transcript.exists()
        except OSError:
            return False

    def find_transcript(self) -> None:
        """For a program that had no chance to name its transcript at the gate."""
        if self.transcript is None:
            self.transcript = next(iter(self.home.copies(self.native_id)), None)

    async def wait_written(self, uuid: str) -> bool:
        """Wait until that line is in the transcript; False when it is not within 5 seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WRITING):
                while not self._has(uuid):
                    await asyncio.sleep(0.02)
                return True
        return False

    async def wait_steer_written(self, id_: str, ended: Callable[[], bool]) -> bool:
        """Whether words that the program echoed are kept.

        It writes them within a tenth of a second; what it has not written when it ends is lost.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WRITING):
                while not self._has(id_):
                    if ended():
                        return self._has(id_)
                    await asyncio.sleep(0.02)
        # A program that runs and cannot write has the words all the same.
        return True

    def _has(self, uuid: str) -> bool:
        return self.transcript is not None and transcript.holds(self.transcript, uuid)

    async def make_durable(self) -> SessionNamed | None:
        """Lock the new transcript: from now on other processes can find the session."""
        path = self.transcript
        if self.cursor is not None or path is None:
            return None
        # A session that was made just now is locked by no other process; if it is, the turn that made it still counts.
        with contextlib.suppress(SessionBusy, HomeFailed):
            self.target.lock = await in_thread(lambda: locks.lock_transcript(path), AGENT, FileLock.release)
        self.cursor, self.target.copies = CURSORS.cursor(self.native_id), None
        return self.named

    async def end(self) -> None:
        """End the process with all it started, and release the session."""
        try:
            await self.program.end(self.deadlines.close)
            await self.connection.close()
        finally:
            self.target.release()
