"""Calls to the app-server about a thread: start, resume, fork, bind and probe it, and end its background commands.

Codex refuses everything with the same error code, so why it refused is read from the files of the home.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import Directory, Landing, NativeId, PermissionMode, Probe, ProbeKind
from clew.ports.provider import OpenSpec
from clew.programs.checks import directory_at
from clew.programs.faults import NotUnderstood, ProgramFault, Refused, SessionBusy, SessionMissing
from clew.programs.rpc import CallRefused
from clew.programs.tasks import run_to_end
from clew.providers.codex import modes
from clew.providers.codex.home import Home
from clew.providers.codex.locks import has_writer_lock, is_loaded, lock_threads
from clew.providers.codex.rollout import CURSORS, Broken, Rollout, head_of
from clew.providers.codex.server import AppServer, Json
from clew.providers.codex.store import Index, SessionArchived, rollouts_of
from clew.providers.codex.trust import check_mode

_PAGE = 100

NO_ROLLOUT = "codex:no-rollout"
"""No file holds the thread's history. Codex does not know the thread, or only where its file used to be."""

DAMAGED = "codex:damaged-rollout"
"""The file does not start with the first line of a history. Codex lists such a thread, but cannot open it."""


@dataclass(frozen=True, slots=True)
class Opened:
    """`instructions` go with the first turn; None if there are none to send. `forked`: this opening made the thread,
    and its file is on disk."""

    id: str
    path: Path | None
    policy: modes.Policy
    model: str
    landing: Landing
    instructions: Json | None
    forked: bool


# ---------------------------------------------------------------- open


async def open_thread(server: AppServer, spec: OpenSpec, home: Home) -> Opened:
    place = spec.directory.real or str(directory_at(spec.directory.path).real)
    check_mode(home, spec.mode, place)
    asked = {**modes.asked(spec.mode), **({"model": spec.model} if spec.model else {})}
    if spec.cursor is None:
        # Without `cwd`: in a mode that may write, Codex would store a directory named here as trusted in the home. The
        # server was started in the directory, and that is enough.
        return await _landed(server, spec, await _call(server, "thread/start", asked), new=True)
    id_ = CURSORS.id_of(spec.cursor)
    asked |= {"cwd": place, "threadId": id_, "excludeTurns": True}
    try:
        if spec.fork:
            return await _fork(server, spec, home, asked)
        await _check_queue(server, id_)
        answer = await _call(server, "thread/resume", asked)
    except CallRefused as fault:
        raise _refused(home, id_, fault, busy=not spec.fork) from fault
    landed = await _landed(server, spec, answer)
    if landed.id != id_:
        raise Refused(f"Session {id_} was asked for, and Codex opened {landed.id}.", "Look at the files of this home.")
    return landed


async def _landed(server: AppServer, spec: OpenSpec, answer: Json, new: bool = False, forked: bool = False) -> Opened:
    thread, policy = _thread(answer), modes.policy_in(answer)
    if policy.mode > spec.mode:
        raise Refused(
            f"The mode is {spec.mode}, and Codex keeps the wider {policy.mode} for this session.",
            "Look at the settings of this home; no prompt was sent.",
        )
    id_, path, model = str(thread["id"]), thread.get("path"), str(answer.get("model"))
    landing = Landing(
        native_id=NativeId(id_),
        directory=directory_at(str(answer["cwd"])),
        mode=policy.mode,
        model=model,
        turns=0 if new else await _turns(server, id_),
    )
    return Opened(
        id=id_,
        path=Path(path) if isinstance(path, str) else None,
        policy=policy,
        model=model,
        landing=landing,
        instructions=_instructions(spec, answer, forked),
        forked=forked,
    )


def _instructions(spec: OpenSpec, answer: Json, forked: bool) -> Json | None:
    """A resumed thread ignores the instructions it is opened with. Those of its collaboration mode it takes, keeps,
    and repeats to the model only when they have changed."""
    kept = answer.get("collaborationMode") or {}
    earlier = (kept.get("settings") or {}).get("developer_instructions")
    if spec.instructions is None and earlier is None and not forked:
        return None
    return {"developer_instructions": spec.instructions, "reasoning_effort": answer.get("reasoningEffort")}


async def _turns(server: AppServer, id_: str) -> int:
    """Counted page by page, without their items."""
    count, page = 0, None
    while True:
        asked = {"threadId": id_, "itemsView": "notLoaded", "limit": _PAGE, "cursor": page}
        answer = await _call(server, "thread/turns/list", asked)
        count += len(answer.get("data") or ())
        page = answer.get("nextCursor")
        if not page:
            return count


# ---------------------------------------------------------------- fork


async def _fork(server: AppServer, spec: OpenSpec, home: Home, asked: Json) -> Opened:
    """Codex writes the fork's file before it answers. If the caller is cancelled, the call is followed to its answer,
    within its deadline, and the fork is removed."""
    call = asyncio.ensure_future(_call(server, "thread/fork", asked))
    try:
        return await _landed(server, spec, await asyncio.shield(call), forked=True)
    except BaseException:
        await run_to_end(_remove_answered(server, home, call))
        raise


async def _remove_answered(server: AppServer, home: Home, call: "asyncio.Future[Json]") -> None:
    with contextlib.suppress(CallRefused, ProgramFault):
        await _remove_fork(server, home, str(_thread(await call)["id"]))


async def discard(server: AppServer, home: Home, opened: Opened) -> None:
    """Leave no file of an opening whose caller was cancelled. Ends the server if there was one."""
    if opened.forked:
        await run_to_end(_remove_fork(server, home, opened.id))


async def _remove_fork(server: AppServer, home: Home, id_: str) -> None:
    """Codex may refuse to delete the thread, not answer in time, or write to it once more as it ends. So the server is
    ended, and what is left on disk then is removed."""
    with contextlib.suppress(CallRefused, ProgramFault):
        await server.call("thread/delete", {"threadId": id_})
    await server.close()
    await asyncio.to_thread(_remove_files, home.root, id_)


def _remove_files(root: Path, thread: str) -> None:
    # A program that has opened the fork by now keeps it.
    with contextlib.suppress(OSError, SessionBusy):
        if rollouts_of(root, thread):
            with lock_threads(root, [thread]):
                for rollout in rollouts_of(root, thread):
                    rollout.path.unlink(missing_ok=True)


# ---------------------------------------------------------------- restore


async def bind(server: AppServer, home: Home, threads: Sequence[str], place: str) -> None:
    """Let Codex load restored threads, in that directory and in the mode read.

    That proves that it can, and Codex writes down where and with which permissions a thread was opened last: so they
    belong to the directory, and grants in the archive take no effect. The last thread is the restored one. Codex counts
    the turns of the threads beneath it only after it has loaded them; those can be opened too, so they lose their
    grants as well.
    """
    for each in threads:
        await _check_queue(server, each)
        asked = {"threadId": each, "excludeTurns": True, "cwd": place, **modes.asked(PermissionMode.READ)}
        try:
            answer = await _call(server, "thread/resume", asked)
        except CallRefused as fault:
            raise _refused(home, each, fault) from fault
        there, policy = directory_at(str(answer.get("cwd"))), modes.policy_in(answer)
        if _thread(answer)["id"] != each or there != directory_at(place) or policy.mode is not PermissionMode.READ:
            words = f"Codex opened {each} in {there} as {policy.mode}, not as told."
            raise Refused(words, "Restore it into another home.")


# ---------------------------------------------------------------- probe


async def probe(server: AppServer, home: Home, id_: str, directory: Directory) -> Probe:
    thread, words = await _read(server, id_)
    current = (await asyncio.to_thread(Index, home.root)).current(id_)
    if current is None:
        detail = f"There is no file of session {id_} in {home.root}."
        return Probe(ProbeKind.MISSING, signal=NO_ROLLOUT, detail=detail)
    if current.is_archived:
        return Probe(ProbeKind.UNREACHABLE, detail=f"It was archived in Codex; bring it back: codex unarchive {id_}")
    if is_loaded(home.root, id_):
        return Probe(ProbeKind.BUSY, detail="Another process has the session open.")
    if _is_damaged(current):
        return Probe(ProbeKind.REJECTED, signal=DAMAGED, detail=f"{current.path} does not begin as a history must.")
    if thread is None:
        return Probe(ProbeKind.UNREACHABLE, detail=f"Codex does not read the session: {words}")
    if count := await _queued(server, id_):
        return Probe(ProbeKind.BUSY, detail=f"It has {count} messages waiting in Codex.")
    there = directory_at(str(thread.get("cwd")))
    if there == directory:
        return Probe(ProbeKind.FOUND_HERE, there, detail=f"its history is {current.path}")
    return Probe(ProbeKind.FOUND_ELSEWHERE, there, detail=f"it is in {there}")


async def _read(server: AppServer, id_: str) -> tuple[Json | None, str]:
    try:
        answer = await server.call("thread/read", {"threadId": id_})
    except CallRefused as fault:
        return None, fault.words
    thread = answer.get("thread")
    return (thread, "") if isinstance(thread, Mapping) else (None, "its answer was not understood")


def _is_damaged(current: Rollout) -> bool:
    if current.packed:
        return False
    try:
        with current.path.open("rb") as file:
            head_of(file.readline())
    except Broken:
        return True
    except OSError:
        pass
    return False


# ---------------------------------------------------------------- calls


async def _queued(server: AppServer, id_: str) -> int:
    """How many messages wait for the thread in Codex itself. It would send them as soon as it opens the thread."""
    try:
        return len((await _call(server, "thread/queue/list", {"threadId": id_})).get("data") or ())
    except CallRefused:
        return 0


async def _check_queue(server: AppServer, id_: str) -> None:
    if count := await _queued(server, id_):
        raise SessionBusy(
            f"Session {id_} has {count} messages waiting in Codex, which would be sent at once.",
            "Let Codex serve them, or remove them there.",
        )


async def _call(server: AppServer, method: str, asked: Json) -> Json:
    # Opening reads the whole history, so it has the deadline of a start.
    return await server.call(method, asked, server.deadlines.start)


def _thread(answer: Json) -> Json:
    thread = answer.get("thread")
    if not isinstance(thread, Mapping) or not thread.get("id") or not isinstance(answer.get("cwd", ""), str):
        raise NotUnderstood("Codex did not say which session it opened.", "Update Codex or Clew.")
    return thread


def _refused(home: Home, id_: str, fault: CallRefused, busy: bool = True) -> Refused:
    current = Index(home.root).current(id_)
    if current is None:
        return SessionMissing(f"There is no session {id_} in {home.root}.", "Start a new session.")
    if current.is_archived:
        return SessionArchived(f"Session {id_} was archived in Codex.", f"Bring it back: codex unarchive {id_}")
    if busy and has_writer_lock(home.root, id_):
        return SessionBusy(f"Session {id_} is open in another program.", "Close it there, or wait.")
    return Refused(f"Codex does not open session {id_}: {fault.words}", "Look at what it says; nothing was changed.")


# ---------------------------------------------------------------- background commands

_LIST = "thread/backgroundTerminals/list"
_TERMINATE = "thread/backgroundTerminals/terminate"


class BackgroundCommands:
    """The running commands of a thread, in whichever turn they began.

    Codex reports the end of a command also between turns; within a later turn it names the turn that began it.
    """

    def __init__(self, server: AppServer, thread: str) -> None:
        self._server, self._thread = server, {"threadId": thread}
        self._running: set[str] = set()

    def __bool__(self) -> bool:
        # They end with their program.
        return bool(self._running) and self._server.lives

    def note(self, method: str, arguments: Json) -> None:
        item = arguments.get("item")
        if arguments.get("threadId") != self._thread["threadId"] or not isinstance(item, Mapping):
            return
        if method == "item/started" and item.get("type") == "commandExecution":
            self._running.add(str(item.get("id")))
        elif method == "item/completed":
            self._running.discard(str(item.get("id")))

    async def refresh(self) -> None:
        """After a turn: forget the commands that Codex no longer lists. It may not have reported their end."""
        before = set(self._running)
        if not before or not self._server.lives:
            return
        try:
            listed = {str(each.get("itemId")) for each in await self._listed()}
        except CallRefused:
            listed = set()
        except ProgramFault:
            return
        self._running -= before - listed

    async def end(self, begun: Mapping[str, Json]) -> None:
        """Terminate the commands of an interrupted turn: Codex leaves them running."""
        for each in await self._listed():
            if each.get("itemId") in begun:
                await self._server.call(_TERMINATE, {**self._thread, "processId": each.get("processId")})

    async def _listed(self) -> list[Json]:
        return list((await self._server.call(_LIST, self._thread)).get("data") or ())
