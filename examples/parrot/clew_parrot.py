"""A provider in a package of its own: an agent that repeats what it is told. Copy it, and put your agent in its place.

What it cannot do it declares, by leaving it out of `Capabilities`, and refuses with `NotAble`: here that is resuming,
forking, listing and carrying. `tests/providers/contract/` says what each of them must do once it is declared.
"""

import uuid
from collections.abc import AsyncIterator, Sequence
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
    NativeId,
    PermissionMode,
    Probe,
    ProbeKind,
    PromptId,
    ProviderName,
    Sent,
)
from clew.ports.events import Done, Ending, Event, SessionNamed, Text
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, LiveSession, OpenSpec, Provider, Settings
from clew.programs.checks import check_options
from clew.programs.faults import NotAble, Refused

# It does nothing, so nothing of it needs to be forbidden: the strictest mode stands for all of them.
MODE = PermissionMode.READ


def make(settings: Settings) -> Provider:
    """What the entry point names."""
    return Parrot(settings)


class Parrot:
    def __init__(self, settings: Settings) -> None:
        check_options(settings.options, {"word"}, "A parrot")
        self._word = settings.options.get("word", "")
        self._sessions: set[Session] = set()

    @property
    def name(self) -> ProviderName:
        return ProviderName("parrot")

    @property
    def capabilities(self) -> Capabilities:
        reports = frozenset({LandingField.NATIVE_ID, LandingField.DIRECTORY, LandingField.MODE})
        return Capabilities(modes=frozenset({MODE}), reapply_mode=True, reports=reports)

    async def discover(self) -> Discovery:
        return Discovery(installed=True, home="parrot", version="1.0", program=("parrot",))

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:  # noqa: ARG002
        return Probe(ProbeKind.UNREACHABLE, detail="a parrot remembers nothing")

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:  # noqa: ARG002
        """It keeps nothing that could be asked, and declares so by leaving `hears` out."""
        return Attestation(Evidence.UNKNOWN, "a parrot remembers nothing", able=False)

    async def open(self, spec: OpenSpec) -> LiveSession:
        if spec.cursor is not None or spec.fresh_id is not None or spec.model is not None:
            _not_able("goes on with a session, takes an id or has models")
        if not Path(spec.directory.path).is_dir():
            raise Refused(f"{spec.directory} is no directory.", "Make it first.")
        session = Session(spec.directory, self._word)
        self._sessions.add(session)
        return session

    async def sessions(self) -> Sequence[FoundSession]:
        _not_able("lists its sessions")

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:  # noqa: ARG002
        _not_able("gives a session out")

    async def restore(self, archive: Path, directory: Directory) -> Cursor:  # noqa: ARG002
        _not_able("takes a session in")

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()


class Session:
    # Another process cannot find it, so there is no cursor.
    cursor: Cursor | None = None

    def __init__(self, directory: Directory, word: str) -> None:
        self._word, self._open = word, True
        self._id = NativeId(f"parrot-{uuid.uuid4().hex[:8]}")
        self._landing = Landing(native_id=self._id, directory=directory, mode=MODE)

    @property
    def landing(self) -> Landing:
        return self._landing

    @property
    def address(self) -> Cursor | None:
        return None

    async def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002, ARG002
        if not self._open:
            raise Refused("The session is closed.", "Open another.")
        yield SessionNamed(self._id, durable=False)
        said = f"{prompt} {self._word}".strip()
        yield Text(said)
        yield Done(Ending.COMPLETED, said)

    async def interrupt(self) -> None:
        """It has always ended by then."""

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002, ARG002
        _not_able("listens while it talks")

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:  # noqa: ARG002
        return False

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:  # noqa: ARG002
        return MODE

    async def set_model(self, model: str) -> None:  # noqa: ARG002
        _not_able("has models")

    async def close(self) -> None:
        self._open = False


def _not_able(what: str) -> NoReturn:
    raise NotAble(f"No parrot {what}.", "Use another provider.")
