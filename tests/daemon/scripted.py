"""An agent in memory that does what a test tells it: it hangs, refuses, asks, dies and lies when it is to."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

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
from clew.programs.faults import Refused, SessionBusy

GONE, REFUSED = "no-such-session", "session-refused"
ABLE = Capabilities(
    resume=True,
    fork=True,
    fork_into=True,
    choose_id=False,
    reapply_mode=True,
    change_model=True,
    steers=True,
    hears=True,
    modes=frozenset(PermissionMode),
    missing_signals=frozenset({GONE}),
    rejection_signals=frozenset({REFUSED}),
    reports=frozenset({LandingField.NATIVE_ID, LandingField.DIRECTORY, LandingField.MODE, LandingField.TURNS}),
)


@dataclass
class Kept:
    """A session in the agent's own store."""

    id: NativeId
    directory: Directory
    prompts: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    holds: dict[PromptId, str | None] = field(default_factory=dict)
    """Prompts by their ids, each with its reply once there is one."""


Turn = Callable[["Session", str], AsyncIterator[Event]]


class Loom:
    """The agent's home: what it keeps, and what a test wants of it. It outlives daemons."""

    def __init__(self, capabilities: Capabilities = ABLE) -> None:
        self.capabilities = capabilities
        self.kept: dict[NativeId, Kept] = {}
        self.open: set[NativeId] = set()
        self.turns: deque[Turn] = deque()
        self.probed: list[NativeId] = []
        self.opened: list[OpenSpec] = []
        self.closed: list[NativeId] = []
        self.modes: list[PermissionMode] = []
        self.answers: list[tuple[ApprovalId, Answer, str]] = []
        self.interrupts = 0
        self.go_on = asyncio.Event()
        self.steered: list[str] = []
        self.steer_with: Callable[[Session, str], Awaitable[bool]] | None = None
        self.asked: list[Sent] = []
        self.worked: set[PromptId] = set()
        self.heard_with: Callable[[Cursor, Directory, Sent], Awaitable[Attestation]] | None = None
        self.probe_with: Callable[[Cursor, Directory], Awaitable[Probe]] | None = None
        self.before_open: Callable[[OpenSpec], Awaitable[None]] | None = None
        self.lands: Callable[[Landing], Landing] = lambda landing: landing
        self.close_with: Callable[[Session], Awaitable[None]] | None = None
        self.set_mode_with: Callable[[PermissionMode], Awaitable[PermissionMode]] | None = None
        self.nameless = False
        """Whether its sessions have no id that anybody could be told."""
        self.ends_in: float | None = None
        """Seconds after which a session says that it ends a silent turn."""
        self._numbers = itertools.count(1)

    def make(self, settings: Settings) -> Provider:
        return Weaver(self, settings)

    def new(self, directory: Directory, of: Kept | None = None) -> Kept:
        id_ = NativeId(f"loom-{next(self._numbers)}")
        kept = self.kept[id_] = Kept(id_, directory)
        if of is not None:
            kept.prompts, kept.replies = list(of.prompts), list(of.replies)
        return kept

    @property
    def prompts(self) -> list[str]:
        """All that it was ever told, session by session."""
        return [prompt for kept in self.kept.values() for prompt in kept.prompts]


class Weaver:
    def __init__(self, loom: Loom, settings: Settings) -> None:
        self.loom, self.settings = loom, settings
        self.live: set[Session] = set()

    @property
    def name(self) -> ProviderName:
        return ProviderName("loom")

    @property
    def capabilities(self) -> Capabilities:
        return self.loom.capabilities

    async def discover(self) -> Discovery:
        return Discovery(installed=True, home=self.settings.home.get("LOOM_HOME", "loom"), version="1")

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        self.loom.probed.append(cursor.native_id)
        if self.loom.probe_with is not None:
            return await self.loom.probe_with(cursor, directory)
        kept = self.loom.kept.get(cursor.native_id)
        if kept is None:
            return Probe(ProbeKind.MISSING, signal=GONE, detail="there is none")
        if kept.id in self.loom.open:
            return Probe(ProbeKind.BUSY, holder="somebody", detail="it is open")
        if kept.directory != directory:
            return Probe(ProbeKind.FOUND_ELSEWHERE, kept.directory)
        return Probe(ProbeKind.FOUND_HERE, directory)

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:
        self.loom.asked.append(sent)
        if self.loom.heard_with is not None:
            return await self.loom.heard_with(cursor, directory, sent)
        kept = self.loom.kept.get(cursor.native_id)
        if kept is None or sent.id not in kept.holds:
            return Attestation(Evidence.UNSENT, "it is not in the store")
        reply = kept.holds[sent.id]
        if reply is not None:
            return Attestation(Evidence.FINISHED, "its reply is in the store", reply)
        worked = sent.id in self.loom.worked
        return Attestation(Evidence.CUT_OFF if worked else Evidence.TAKEN, "it is in the store")

    async def open(self, spec: OpenSpec) -> LiveSession:
        loom = self.loom
        loom.opened.append(spec)
        if loom.before_open is not None:
            await loom.before_open(spec)
        origin = None if spec.cursor is None else loom.kept.get(spec.cursor.native_id)
        if spec.cursor is not None and origin is None:
            raise Refused("There is no such session.", "Start a new one.")
        kept = origin if origin is not None and not spec.fork else loom.new(spec.directory, origin)
        if kept.id in loom.open:
            raise SessionBusy("It is open.", "Wait.")
        loom.open.add(kept.id)
        session = Session(self, kept, spec)
        self.live.add(session)
        return session

    async def sessions(self) -> Sequence[FoundSession]:
        return [FoundSession(Cursor(1, kept.id), kept.directory) for kept in self.loom.kept.values()]

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:
        raise NotImplementedError

    async def restore(self, archive: Path, directory: Directory) -> Cursor:
        raise NotImplementedError

    async def close(self) -> None:
        for session in list(self.live):
            await session.close()


class Session:
    def __init__(self, weaver: Weaver, kept: Kept, spec: OpenSpec) -> None:
        self.weaver, self.loom, self.kept, self.spec = weaver, weaver.loom, kept, spec
        self.durable = bool(kept.prompts) or spec.cursor is not None
        self.interrupted = asyncio.Event()
        self.answered: asyncio.Queue[tuple[ApprovalId, Answer, str]] = asyncio.Queue()
        self.told: asyncio.Queue[str] = asyncio.Queue()
        self.closed = False
        self.prompt_id: PromptId | None = None
        self.steer_id: PromptId | None = None
        landing = Landing(kept.id, kept.directory, spec.mode, spec.model, turns=len(kept.replies))
        self._landing = self.loom.lands(landing)

    @property
    def landing(self) -> Landing:
        return self._landing

    @property
    def ends_in(self) -> float | None:
        return self.loom.ends_in

    @property
    def cursor(self) -> Cursor | None:
        return Cursor(1, self.kept.id) if self.durable else None

    @property
    def address(self) -> Cursor | None:
        return None if self.loom.nameless else Cursor(1, self.kept.id)

    async def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002
        if self.closed:
            raise Refused("It is closed.", "Open it again.")
        self.prompt_id = id
        self.interrupted.clear()
        plays = self.loom.turns.popleft() if self.loom.turns else plain
        async for event in plays(self, prompt):
            yield event

    async def interrupt(self) -> None:
        self.loom.interrupts += 1
        self.interrupted.set()

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002
        self.steer_id = id
        self.loom.steered.append(prompt)
        if self.loom.steer_with is not None:
            return await self.loom.steer_with(self, prompt)
        self.take(prompt, id)
        self.told.put_nowait(prompt)
        return True

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:
        self.loom.answers.append((approval, given, words))
        self.answered.put_nowait((approval, given, words))
        return True

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        if self.loom.set_mode_with is not None:
            return await self.loom.set_mode_with(mode)
        self.loom.modes.append(mode)
        return mode

    async def set_model(self, model: str) -> None:
        self.spec = replace(self.spec, model=model)

    async def close(self) -> None:
        if self.loom.close_with is not None:
            await self.loom.close_with(self)
        if not self.closed:
            self.closed = True
            self.interrupted.set()
            self.loom.open.discard(self.kept.id)
            self.loom.closed.append(self.kept.id)
            self.weaver.live.discard(self)

    def take(self, prompt: str, id_: PromptId | None = None) -> None:
        """The prompt is in its store from here on."""
        self.kept.prompts.append(prompt)
        self.kept.holds[id_ or self.prompt_id or PromptId(f"prompt-{len(self.kept.prompts)}")] = None
        self.durable = True

    def reply(self, text: str) -> None:
        """The turn is finished in its store, too."""
        self.kept.replies.append(text)
        self.kept.holds = dict.fromkeys(self.kept.holds, text)


async def plain(session: Session, prompt: str) -> AsyncIterator[Event]:
    session.take(prompt)
    yield SessionNamed(session.kept.id, durable=True)
    reply = f"reply {len(session.kept.prompts)}"
    yield Text(reply)
    session.reply(reply)
    yield Done(Ending.COMPLETED, reply)
