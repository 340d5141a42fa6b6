"""Saying something in a thread, and showing what comes of it. Three commands do that."""

import uuid
from collections.abc import Mapping
from typing import Any

from clew.cli.client import Refused, Server, thread_part
from clew.cli.ending import Ending
from clew.cli.harmless import one_line
from clew.cli.options import Options
from clew.cli.reading import read
from clew.cli.telling import tell, tell_as_is
from clew.cli.texts import given
from clew.cli.turn import Turn
from clew.protocol.views import Spoken, ThreadPage, WakeView


def new_key() -> str:
    """Names a request, so that it can be sent again when the connection breaks and is still one."""
    return f"cli-{uuid.uuid4().hex}"


def say_in(
    options: Options,
    thread: str,
    text: str,
    *,
    agent: str | None = None,
    fresh: bool = False,
    resume: str | None = None,
    wakes: bool = True,
    key: str | None = None,
    wait: bool = False,
    overlap: str | None = None,
) -> Ending:
    server = Server(options.data)
    body = {"text": given(text), "agent": agent, "fresh": fresh, "resume_run": resume, "wakes": wakes, "key": key}
    if overlap is not None:
        body["overlap"] = overlap
    said = send(server, thread, body)
    wake = read(Spoken, said).wake
    if options.json:
        tell_as_is(said)
    elif wake is None:
        tell(f"Said in {thread}. Nobody is woken by it.")
    elif not wait:
        tell(receipt(wake))
    if wake is None or not wait:
        return refused(wake)
    return Turn(server, wake, as_json=options.json).watch()


def send(server: Server, thread: str, body: Mapping[str, Any]) -> bytes:
    """Words to a thread. They are given a key if they have none, unless they wake nobody: a key names a wake."""
    path = f"/threads/{thread_part(thread)}/words"
    if body.get("key") is not None or not body.get("wakes", True):
        return server.post(path, body)
    try:
        return server.post(path, {**body, "key": new_key()})
    except Refused:
        if body.get("agent") is not None or _is_somebodys(server, thread):
            raise
        return server.post(path, body)


def _is_somebodys(server: Server, thread: str) -> bool:
    return read(ThreadPage, server.get(f"/threads/{thread_part(thread)}", {"limit": 1})).thread.assignee is not None


def receipt(wake: WakeView) -> str:
    """What became of a wake, in one line."""
    again = ", as it was asked before" if wake.repeated else ""
    run = f" (run {wake.run})" if wake.run else ""
    words = f" {one_line(wake.words)}" if wake.words else ""
    return f"Wake {wake.id} of {wake.agent} in {wake.thread} is {wake.state}{again}{run}.{words}"


def refused(wake: WakeView | None) -> Ending:
    """A wake that was turned away at once is a failure of the command that asked for it."""
    turned_away = wake is not None and wake.state in ("skipped", "cancelled")
    return Ending.FAILED if turned_away else Ending.DONE
