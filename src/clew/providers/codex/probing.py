"""Probing: is the session there? Asked of the program, and seen on disk, for its refusals all have one code."""

import asyncio
from collections.abc import Mapping
from typing import Any

from clew.kernel import Directory, Probe, ProbeKind
from clew.programs.rpc import CallRefused
from clew.providers.codex.history import Broken, head_of
from clew.providers.codex.home import Home, directory_at
from clew.providers.codex.locks import is_loaded
from clew.providers.codex.names import Rollout
from clew.providers.codex.opening import queued
from clew.providers.codex.server import AppServer
from clew.providers.codex.store import Index

NO_ROLLOUT = "codex:no-rollout"
"""No file holds the thread's history, and the program does not know the thread, or only where the file used to be."""

DAMAGED = "codex:damaged-rollout"
"""The file does not begin as a history must; the program lists such a thread, and never opens it."""


async def probe(server: AppServer, home: Home, id_: str, directory: Directory) -> Probe:
    thread, words = await _read(server, id_)
    current = (await asyncio.to_thread(Index, home.root)).current(id_)
    if current is None:
        detail = f"There is no file of session {id_} in {home.root}."
        return Probe(ProbeKind.MISSING, signal=NO_ROLLOUT, detail=detail)
    if current.set_away:
        return Probe(ProbeKind.UNREACHABLE, detail=f"It was archived in Codex; bring it back: codex unarchive {id_}")
    if is_loaded(home.root, id_):
        return Probe(ProbeKind.BUSY, detail="Another process has the session open.")
    if _is_damaged(current):
        return Probe(ProbeKind.REJECTED, signal=DAMAGED, detail=f"{current.path} does not begin as a history must.")
    if thread is None:
        return Probe(ProbeKind.UNREACHABLE, detail=f"Codex does not read the session: {words}")
    if count := await queued(server, id_):
        return Probe(ProbeKind.BUSY, detail=f"It has {count} messages waiting in Codex.")
    there = directory_at(str(thread.get("cwd")))
    if there == directory:
        return Probe(ProbeKind.FOUND_HERE, there, detail=f"its history is {current.path}")
    return Probe(ProbeKind.FOUND_ELSEWHERE, there, detail=f"it is in {there}")


async def _read(server: AppServer, id_: str) -> tuple[Mapping[str, Any] | None, str]:
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
