"""The agent that does nothing, as a provider of its own: it lives in the daemon's process and answers at once.

Its turn is the body of the job, as the function is for the peers: it notes when it began, and ends.
"""

import os
import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from bench.process import ROOT
from bench.server import Server
from bench.store.peers.workload import STAMPS, WORKERS, Stamps
from clew.kernel import (
    Answer,
    ApprovalId,
    Attestation,
    Capabilities,
    Cursor,
    Directory,
    Evidence,
    Landing,
    NativeId,
    PermissionMode,
    Probe,
    ProbeKind,
    PromptId,
    ProviderName,
    Sent,
)
from clew.ports.events import Done, Ending, Event, SessionNamed
from clew.ports.provider import ArchiveFile, Discovery, FoundSession, LiveSession, OpenSpec, Settings
from clew.programs.faults import NotAble

NAME = "idle"
"""Of the provider and of its only agent."""

_JOB = re.compile(r"job (\d+)")
_ABLE = Capabilities(
    resume=True, reapply_mode=True, modes=frozenset(PermissionMode), missing_signals=frozenset({"gone"})
)


def install(directory: Path, stamps: Path) -> Mapping[str, str]:
    """The environment in which `clew up` finds the provider, by the entry point of a package in that directory."""
    package = directory / "clew_bench_agent-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: clew-bench-agent\nVersion: 1\n", encoding="utf-8")
    (package / "entry_points.txt").write_text(f"[clew.providers]\n{NAME} = {__name__}:make\n", encoding="utf-8")
    # A path without real agents: the server starts none of them to ask for its version.
    return {"PYTHONPATH": f"{directory}{os.pathsep}{ROOT}", "PATH": os.defpath, STAMPS: str(stamps)}


def add_agent(server: Server) -> None:
    server.post("/agents", {"name": NAME, "provider": NAME, "most": WORKERS})


def make(settings: Settings) -> "IdleProvider":  # noqa: ARG001 - every provider is made from its settings
    stamps = os.environ.get(STAMPS)
    return IdleProvider(None if stamps is None else Stamps(Path(stamps)))


class IdleProvider:
    def __init__(self, stamps: Stamps | None) -> None:
        self._stamps = stamps

    @property
    def name(self) -> ProviderName:
        return ProviderName(NAME)

    @property
    def capabilities(self) -> Capabilities:
        return _ABLE

    async def discover(self) -> Discovery:
        return Discovery(installed=True, home=NAME, version="1")

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:  # noqa: ARG002 - it opens any session
        return Probe(ProbeKind.FOUND_HERE, directory)

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:  # noqa: ARG002
        return Attestation(Evidence.UNKNOWN, "It stores nothing.", able=False)

    async def open(self, spec: OpenSpec) -> LiveSession:
        native = NativeId(uuid.uuid4().hex) if spec.cursor is None else spec.cursor.native_id
        return IdleSession(native, spec, self._stamps)

    async def sessions(self) -> Sequence[FoundSession]:
        return ()

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:  # noqa: ARG002
        raise NotAble("It stores nothing.", "Start a new session.")

    async def restore(self, archive: Path, directory: Directory) -> Cursor:  # noqa: ARG002
        raise NotAble("It stores nothing.", "Start a new session.")

    async def close(self) -> None:
        pass


class IdleSession:
    def __init__(self, native: NativeId, spec: OpenSpec, stamps: Stamps | None) -> None:
        self._cursor, self._stamps = Cursor(1, native), stamps
        self._landing = Landing(native, spec.directory, spec.mode)

    @property
    def landing(self) -> Landing:
        return self._landing

    @property
    def cursor(self) -> Cursor | None:
        return self._cursor

    @property
    def address(self) -> Cursor | None:
        return self._cursor

    async def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002, ARG002
        if self._stamps is not None and (jobs := _JOB.findall(prompt)):
            # The last: a prompt may repeat what was said before.
            self._stamps.add(int(jobs[-1]))
        yield SessionNamed(self._cursor.native_id, durable=True)
        yield Done(Ending.COMPLETED, "done")

    async def interrupt(self) -> None:
        pass

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002, ARG002
        raise NotAble("It takes no message during a turn.", "Send it in the next one.")

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:  # noqa: ARG002
        return False

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        return mode

    async def set_model(self, model: str) -> None:
        pass

    async def close(self) -> None:
        pass
