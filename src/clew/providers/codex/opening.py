"""Opening a thread: started, resumed or forked, with what the program then says that it opened."""

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.kernel import Landing, NativeId, PermissionMode
from clew.ports.provider import OpenSpec
from clew.programs.faults import NotUnderstood, ProgramFault, Refused
from clew.programs.rpc import CallRefused
from clew.providers.codex import modes
from clew.providers.codex.faults import SessionArchived, SessionBusy, SessionMissing
from clew.providers.codex.home import Home, directory_at
from clew.providers.codex.locks import is_locked
from clew.providers.codex.names import id_of
from clew.providers.codex.server import AppServer
from clew.providers.codex.store import Index
from clew.providers.codex.trusting import widening

Json = Mapping[str, Any]
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Opened:
    """`instructions` is what the first turn must carry; None where nothing must be said about them. `forked` is whether
    it was made by this opening, as a file that is there already."""

    id: str
    path: Path | None
    policy: modes.Policy
    model: str
    landing: Landing
    instructions: Json | None
    forked: bool


def may_be_kept(home: Home, mode: PermissionMode, directory: str) -> None:
    """Read must mean read: a rule of the home that allows a command lets it out of the sandbox, unasked. And what the
    agent itself may write, as it may in its project, must give it no more."""
    theirs = widening(home, Path(directory)) if mode is not PermissionMode.FULL else None
    if theirs is not None:
        config = home.root / "config.toml"
        raise Refused(
            f"The mode {mode} cannot be kept: {theirs} counts, for the project is trusted in {config}.",
            "Take the trust back there, or remove the file, or choose the mode full.",
        )
    rules = home.standing_rules if mode is PermissionMode.READ else None
    if rules is not None:
        raise Refused(
            f"The mode read cannot be kept: {rules} allows commands to run outside of the sandbox.",
            "Remove the rules that allow, use another CODEX_HOME, or choose the mode ask, where they stand.",
        )


async def opened(server: AppServer, spec: OpenSpec, home: Home) -> Opened:
    place = spec.directory.real or str(directory_at(spec.directory.path).real)
    may_be_kept(home, spec.mode, place)
    asked = {**modes.asked(spec.mode), **({"model": spec.model} if spec.model else {})}
    if spec.cursor is None:
        # A directory that is named here, and may be written to, is marked as trusted in the home for good. The program
        # runs in it, and that is enough.
        return await _landed(server, spec, await _call(server, "thread/start", asked), new=True)
    id_ = id_of(spec.cursor)
    asked |= {"cwd": place, "threadId": id_, "excludeTurns": True}
    try:
        if spec.fork:
            return await _forked(server, spec, asked)
        await _must_have_no_queue(server, id_)
        answer = await _call(server, "thread/resume", asked)
    except CallRefused as fault:
        raise refused(home, id_, fault, busy=not spec.fork) from fault
    landed = await _landed(server, spec, answer)
    if landed.id != id_:
        raise Refused(f"Session {id_} was asked for, and Codex opened {landed.id}.", "Look at the files of this home.")
    return landed


async def queued(server: AppServer, id_: str) -> int:
    """How many messages wait for the thread in Codex itself. It would begin to serve them when it opens the thread."""
    try:
        return len((await _call(server, "thread/queue/list", {"threadId": id_})).get("data") or ())
    except CallRefused:
        return 0


async def _must_have_no_queue(server: AppServer, id_: str) -> None:
    if count := await queued(server, id_):
        raise SessionBusy(
            f"Session {id_} has {count} messages waiting in Codex, which would be sent at once.",
            "Let Codex serve them, or remove them there.",
        )


async def bind(server: AppServer, home: Home, threads: Sequence[str], place: str) -> None:
    """Codex itself loads what was restored. By that it is proven, belongs to the directory, and has lost its grants:
    the program writes down where and as what it was opened last.

    The last thread is the one; it counts the turns of those before it only once it has loaded them, too. Those can be
    opened as well, so they lose theirs with it."""
    for each in threads:
        await _must_have_no_queue(server, each)
        asked = {"threadId": each, "excludeTurns": True, "cwd": place, **modes.asked(PermissionMode.READ)}
        try:
            answer = await _call(server, "thread/resume", asked)
        except CallRefused as fault:
            raise refused(home, each, fault) from fault
        there, kept = directory_at(str(answer.get("cwd"))), modes.told(answer)
        if _thread(answer)["id"] != each or there != directory_at(place) or kept.mode is not PermissionMode.READ:
            words = f"Codex opened {each} in {there} as {kept.mode}, not as told."
            raise Refused(words, "Restore it into another home.")


async def _forked(server: AppServer, spec: OpenSpec, asked: Json) -> Opened:
    """A fork is on disk at once, so one that is called off meanwhile is deleted again."""
    call = asyncio.ensure_future(_call(server, "thread/fork", asked))
    try:
        return await _landed(server, spec, await asyncio.shield(call), forked=True)
    except BaseException:

        async def made() -> None:
            with contextlib.suppress(CallRefused, ProgramFault):
                await _delete(server, str(_thread(await call)["id"]))

        await to_its_end(made())
        raise


async def take_back(server: AppServer, opened: Opened) -> None:
    """Leave nothing behind of an opening that nobody wants any more. The server must still run."""
    if opened.forked:
        await to_its_end(_delete(server, opened.id))


async def _delete(server: AppServer, id_: str) -> None:
    with contextlib.suppress(CallRefused, ProgramFault):
        await server.call("thread/delete", {"threadId": id_})


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Even when it is called off again meanwhile. For what is short, and done because of a cancellation."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)


async def _landed(server: AppServer, spec: OpenSpec, answer: Json, new: bool = False, forked: bool = False) -> Opened:
    thread, policy = _thread(answer), modes.told(answer)
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
    """Counted page by page, without what was said in them."""
    count, page = 0, None
    while True:
        asked = {"threadId": id_, "itemsView": "notLoaded", "limit": _PAGE, "cursor": page}
        answer = await _call(server, "thread/turns/list", asked)
        count += len(answer.get("data") or ())
        page = answer.get("nextCursor")
        if not page:
            return count


async def _call(server: AppServer, method: str, asked: Json) -> Json:
    # Opening reads the whole history, so it has the time that a start has.
    return await server.call(method, asked, server.deadlines.start)


def _thread(answer: Json) -> Json:
    thread = answer.get("thread")
    if not isinstance(thread, Mapping) or not thread.get("id") or not isinstance(answer.get("cwd", ""), str):
        raise NotUnderstood("Codex did not say which session it opened.", "Update Codex or Clew.")
    return thread


def refused(home: Home, id_: str, fault: CallRefused, busy: bool = True) -> Refused:
    """Every refusal has the same code, so what it was about is seen on disk and never in its words."""
    current = Index(home.root).current(id_)
    if current is None:
        return SessionMissing(f"There is no session {id_} in {home.root}.", "Start a new session.")
    if current.set_away:
        return SessionArchived(f"Session {id_} was archived in Codex.", f"Bring it back: codex unarchive {id_}")
    if busy and is_locked(home.root, id_):
        return SessionBusy(f"Session {id_} is open in another program.", "Close it there, or wait.")
    return Refused(f"Codex does not open session {id_}: {fault.words}", "Look at what it says; nothing was changed.")
