"""A provider in a package of its own: an agent that repeats what it is told, and remembers it.

docs/provider-tutorial.md builds it step by step. Copy it, and put your agent in its place.
"""

import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NoReturn

from clew.kernel import (
    Answer,
    ApprovalId,
    Attestation,
    Capabilities,
    Cursor,
    Directory,
    Evidence,
    Landing,
    LandingField,
    PermissionMode,
    Probe,
    ProbeKind,
    PromptId,
    ProviderName,
    Sent,
)
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed, SessionNamed, Text
from clew.ports.fault import Fault
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, LiveSession, OpenSpec, Provider, Settings
from clew.programs.checks import check_directory, check_homes, check_opening, check_options, directory_at, expressed
from clew.programs.cursor import MALFORMED, CursorForm, busy_probe, failed_probe
from clew.programs.faults import HomeFailed, NoProgram, NotAble, NotUnderstood, Refused, SessionMissing
from clew.programs.locks import is_locked, lock_session
from clew.programs.program import environment_for
from clew.programs.session import OpenSession
from clew.programs.tasks import closed_provider


@dataclass
class Turn:
    """`id` is Clew's name for the prompt. There is no `reply` before the parrot has spoken."""

    prompt: str
    id: str
    reply: str | None = None


@dataclass
class Record:
    directory: str
    turns: list[Turn] = field(default_factory=list)


class Memory:
    """The parrot's store: a file for each session."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def path(self, id_: str) -> Path:
        return self.home / f"{id_}.json"

    def read(self, id_: str) -> Record:
        try:
            stored = json.loads(self.path(id_).read_text(encoding="utf-8"))
            return Record(stored["directory"], [Turn(**turn) for turn in stored["turns"]])
        except FileNotFoundError as fault:
            raise SessionMissing(f"The parrot has no session {id_}.", "Start a new one.") from fault
        except OSError as fault:
            raise HomeFailed.because("the parrot", fault) from fault
        except (ValueError, KeyError, TypeError) as fault:
            raise NotUnderstood(f"Session {id_} cannot be read.", "Look at its file.") from fault

    def write(self, id_: str, record: Record) -> None:
        """Whole or not at all: a crash leaves the file as it was."""
        self.home.mkdir(parents=True, exist_ok=True)
        part = self.path(id_).with_suffix(".part")
        part.write_text(json.dumps(asdict(record)), encoding="utf-8")
        part.replace(self.path(id_))

    def ids(self) -> list[str]:
        """The newest first."""
        files = sorted(self.home.glob("*.json"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        return [file.stem for file in files]


HOME = "PARROT_HOME"
NO_FILE = "no-file"
CURSORS = CursorForm("a parrot", r"parrot-[0-9a-f]{12}")
# It does nothing, so nothing of it needs to be forbidden: the strictest mode stands for all of them.
MODE = PermissionMode.READ


class Session(OpenSession):
    """An open session. `OpenSession` has what all of them share: closing, and one turn at a time."""

    def __init__(self, parrot: "Parrot", cursor: Cursor, record: Record) -> None:
        super().__init__()
        self._parrot, self._cursor, self._record = parrot, cursor, record
        self._turn: Turn | None = None
        place, turns = directory_at(record.directory), len(record.turns)
        self.landing = Landing(cursor.native_id, place, MODE, turns=turns)

    @property
    def cursor(self) -> Cursor | None:
        """Only once there is a file: another process could not find the session before."""
        return self._cursor if self._record.turns else None

    @property
    def address(self) -> Cursor | None:
        return self._cursor

    async def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002
        self._must_be_idle(self._turn)
        turn = self._turn = Turn(prompt, id or "")
        try:
            # The prompt is stored before the agent acts on it, so that `heard` can tell whether it was taken.
            self._record.turns.append(turn)
            self._store()
            yield SessionNamed(self._cursor.native_id, durable=True)
            turn.reply = self._parrot.reply([each.prompt for each in self._record.turns])
            yield Text(turn.reply)
            self._store()
            yield Done(Ending.COMPLETED, turn.reply)
        except HomeFailed as fault:
            yield Failed(ErrorCode.UNKNOWN, str(fault), retryable=False)
            yield Done(Ending.FAILED)
        finally:
            self._turn = None

    def _store(self) -> None:
        try:
            self._parrot.memory.write(self._cursor.native_id, self._record)
        except OSError as fault:
            raise HomeFailed.because("the parrot", fault) from fault

    async def interrupt(self) -> None:
        """It has always ended by then."""

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002, ARG002
        _not_able("listens while it talks")

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:  # noqa: ARG002
        return False

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        return expressed(mode, {MODE}, "A parrot")

    async def set_model(self, model: str) -> None:  # noqa: ARG002
        _not_able("has models")

    async def _close(self) -> None:
        """Nothing runs. An agent with a process ends it here."""


class Parrot:
    def __init__(self, settings: Settings) -> None:
        check_options(settings.options, {"word"}, "A parrot")
        environment = environment_for(settings.home)
        check_homes(environment, {HOME, "HOME"})
        home = environment.get(HOME) or f"{environment.get('HOME', '')}/.parrot"
        self._word, self._program = settings.options.get("word", ""), settings.program
        self.memory = Memory(Path(home).resolve())
        self._locks = self.memory.home / "locks"
        self._sessions: set[Session] = set()
        self._closed = False

    def reply(self, prompts: Sequence[str]) -> str:
        """What it says to the last prompt. Here an agent asks its model."""
        return f"{prompts[-1]} {self._word}".strip()

    @property
    def name(self) -> ProviderName:
        return ProviderName("parrot")

    @property
    def capabilities(self) -> Capabilities:
        reports = {LandingField.NATIVE_ID, LandingField.DIRECTORY, LandingField.MODE, LandingField.TURNS}
        return Capabilities(
            resume=True,
            reapply_mode=True,
            warm=False,
            hears=True,
            modes=frozenset({MODE}),
            cursor_versions=frozenset({CURSORS.version}),
            id_shape=CURSORS.shape,
            missing_signals=frozenset({NO_FILE}),
            rejection_signals=frozenset({MALFORMED}),
            reports=frozenset(reports),
        )

    async def discover(self) -> Discovery:
        home = str(self.memory.home)
        if self._program:
            return Discovery(False, home, missing="A parrot has no program: leave it out.")
        return Discovery(True, home, version="1.0", program=("parrot",))

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        try:
            id_ = CURSORS.id_of(cursor)
            if is_locked(self._locks, id_):
                return busy_probe()
            place = directory_at(self.memory.read(id_).directory)
        except SessionMissing as fault:
            return Probe(ProbeKind.MISSING, signal=NO_FILE, detail=fault.words)
        except Fault as fault:
            return failed_probe(fault)
        return Probe(ProbeKind.FOUND_HERE if place == directory else ProbeKind.FOUND_ELSEWHERE, place)

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:  # noqa: ARG002 - one store
        if not self.memory.home.is_dir():
            return Attestation(Evidence.UNKNOWN, f"{self.memory.home} is gone.")
        try:
            lock = lock_session(self._locks, CURSORS.id_of(cursor))
        except Fault as fault:
            return Attestation(Evidence.UNKNOWN, fault.words)
        try:
            turns = self.memory.read(cursor.native_id).turns
        except SessionMissing as fault:
            return Attestation(Evidence.UNSENT, fault.words)
        except Fault as fault:
            return Attestation(Evidence.UNKNOWN, fault.words)
        finally:
            lock.release()
        found = next((turn for turn in turns if turn.id == sent.id), None)
        if found is None:
            return Attestation(Evidence.UNSENT, "Its file does not have the prompt.")
        if found.reply is None:
            return Attestation(Evidence.TAKEN, "Its file has the prompt, and no reply.")
        return Attestation(Evidence.FINISHED, "Its file has the prompt and the reply.", found.reply)

    async def open(self, spec: OpenSpec) -> LiveSession:
        if self._closed:
            raise closed_provider()
        if self._program:
            raise NoProgram("A parrot has no program.", "Leave it out.")
        check_opening(spec, "A parrot")
        if spec.fork or spec.model is not None:
            _not_able("forks a session or has models")
        expressed(spec.mode, {MODE}, "A parrot")
        check_directory(Path(spec.directory.path))
        place = directory_at(spec.directory.path)
        cursor = spec.cursor or CURSORS.cursor(f"parrot-{uuid.uuid4().hex[:12]}")
        lock = lock_session(self._locks, CURSORS.id_of(cursor))
        try:
            record = Record(place.real or place.path) if spec.cursor is None else self.memory.read(cursor.native_id)
            if directory_at(record.directory) != place:
                raise Refused(f"Session {cursor.native_id} works in {record.directory}.", "Open it there.")
        except BaseException:
            lock.release()
            raise
        session = Session(self, cursor, record)
        session.after_close.callback(lock.release)
        return session.listed_in(self._sessions)

    async def sessions(self) -> Sequence[FoundSession]:
        found = []
        for id_ in self.memory.ids():
            # A file that cannot be read hides no other.
            with suppress(Fault, OSError):
                record, changed = self.memory.read(id_), self.memory.path(id_).stat().st_mtime
                place, title = directory_at(record.directory), record.turns[0].prompt[:60] if record.turns else ""
                found.append(FoundSession(CURSORS.cursor(id_), place, title, changed, len(record.turns)))
        return found

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:  # noqa: ARG002
        _not_able("gives a session out")

    async def restore(self, archive: Path, directory: Directory) -> Cursor:  # noqa: ARG002
        _not_able("takes a session in")

    async def close(self) -> None:
        self._closed = True
        for session in tuple(self._sessions):
            await session.close()


def _not_able(what: str) -> NoReturn:
    raise NotAble(f"No parrot {what}.", "Use another provider.")


def make(settings: Settings) -> Provider:
    """What the entry point names."""
    return Parrot(settings)
