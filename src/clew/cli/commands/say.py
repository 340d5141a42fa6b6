"""`clew say` and `clew wake`, and sending messages for the commands `issue comment` and `chat`."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from clew.cli.answers import get_thread, read
from clew.cli.client import Query, Refused, Server, thread_part
from clew.cli.input import OPTIONS, Exact, Options, Text, Wait, given, name_given
from clew.cli.misuse import needs, not_together
from clew.cli.output import ExitStatus, short_ids, tell, tell_answer
from clew.cli.safe_text import one_line
from clew.cli.turn import Turn
from clew.cli.uploads import upload_all
from clew.protocol.preview import PreviewView
from clew.protocol.views import Spoken, WakeView


def say(
    thread: str,
    text: Text,
    /,
    *,
    to: str | None = None,
    fresh: bool = False,
    resume: str | None = None,
    silent: bool = False,
    steer: bool = False,
    begin: Annotated[str | None, Parameter(name="--from")] = None,
    key: str | None = None,
    file: tuple[Path, ...] = (),
    dry_run: bool = False,
    wait: Wait = False,
    options: Options = OPTIONS,
) -> ExitStatus:
    """Send a message to a thread. This wakes the thread's agent.

    With --wait, the reply is shown as it arrives and the exit status is 1 if the run fails. The agent's messages go to
    stdout, everything else to stderr.

    For example:

        clew say chat-1 "And the tests?" -w

        git diff | clew say issue-3 - --to reviewer

        clew say chat-1 "What is wrong in this log?" --file build.log --file screen.png

        clew say chat-1 "Start over." --fresh

        clew say chat-1 "Leave the tests alone." --steer

        clew say issue-3 "And the tests?" --dry-run

    Parameters
    ----------
    thread
        The thread: issue-3 or 3, chat-1, own-ada, a subject, or an id.
    text
        The message; - reads it from stdin.
    to
        The agent to wake. Default: the thread's agent.
    fresh
        Start a new session without the earlier conversation.
    resume
        Continue the session of this run, whatever the policy says.
    silent
        Wake no agent.
    steer
        Send it during the current turn, if the agent supports it; otherwise it waits for the next.
    begin
        Where its branch begins, for an agent that is new in the thread: an agent of the thread, a branch, or base.
        Default: with the newest work in the thread.
    key
        An idempotency key: requests with the same key are done once.
    file
        A file to send with it; may be given up to 10 times. The agent finds it in its directory, in .clew-files.
    dry_run
        Send nothing; say what the message would do: which session it continues and where, or what it waits behind.
    """
    for other, given_ in {"--fresh": fresh, "--resume": resume, "--silent": silent}.items():
        not_together({"--steer": steer, other: given_})
    not_together({"--fresh": fresh, "--resume": resume})
    not_together({"--dry-run": dry_run, "--wait": wait}, "nothing is sent, so there is nothing to wait for")
    if dry_run:
        given(text)
        asked: Query = {"agent": to, "resume_run": resume, "overlap": "steer" if steer else None}
        switches = {"fresh": "true" if fresh else None, "wakes": "false" if silent else None}
        return _preview(options, thread, {**asked, **switches})
    return say_in(
        options,
        thread,
        text,
        agent=to,
        fresh=fresh,
        resume=resume,
        wakes=not silent,
        key=key,
        wait=wait,
        overlap="steer" if steer else None,
        begin=begin,
        files=file,
    )


def _preview(options: Options, thread: str, query: Query) -> ExitStatus:
    said = Server(options.data).get(f"/threads/{thread_part(thread)}/preview", query)
    found = read(PreviewView, said)
    tell_answer(said, lambda: tell(f"{one_line(found.words)} (Nothing was sent.)"), as_json=options.json)
    return ExitStatus.FAILED if found.outcome == "refused" else ExitStatus.DONE


def new_key() -> str:
    """An idempotency key, so that the request can be sent again after the connection broke."""
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
    begin: str | None = None,
    files: Sequence[Path] = (),
) -> ExitStatus:
    not_together({"--silent": not wakes, "--wait": wait}, "no agent is woken, so there is nothing to wait for")
    for other, value in {"--to": agent, "--from": begin, "--fresh": fresh, "--resume": resume, "--key": key}.items():
        not_together({"--silent": not wakes, other: value is not None and value is not False}, "it wakes no agent")
    server = Server(options.data)
    body: dict[str, Any] = {"text": given(text), "agent": agent, "key": key}
    body |= {"fresh": fresh, "resume_run": resume, "wakes": wakes}
    if overlap is not None:
        body["overlap"] = overlap
    if begin is not None:
        body["begin_from"] = begin
    if files:
        body["files"] = upload_all(server, files)
    said = send(server, thread, body)
    woken = read(Spoken, said).wake
    if woken is None:
        tell_answer(said, lambda: tell(f"Sent to {thread}. {nobody_woken(thread, wakes)}"), as_json=options.json)
        return ExitStatus.DONE
    return answer_wakes(options, server, said, [woken], wait=wait)


def nobody_woken(thread: str, wakes: bool = True) -> str:
    """Why a message wakes no agent, and what to type so that one is woken."""
    if not wakes:
        return "No agent is woken."
    return (
        f"No agent is woken: {thread} is not assigned to one. Name one with `clew say {thread} TEXT --to AGENT`, or "
        f"assign it with `clew issue assign {thread} AGENT`."
    )


def answer_wakes(options: Options, server: Server, said: bytes, wakes: Sequence[WakeView], *, wait: bool) -> ExitStatus:
    """Prints a receipt for each wake, or with `wait` shows the work live. The command fails if a wake was refused."""

    def receipts() -> None:
        for each in () if wait else wakes:
            tell(short_ids(receipt(each)))

    tell_answer(said, receipts, as_json=options.json)
    if wait:
        # All wakes are of one lane, so the run that serves the last one serves them all.
        return Turn(server, wakes[-1], as_json=options.json).watch()
    refused = any(each.state in ("skipped", "cancelled") for each in wakes)
    return ExitStatus.FAILED if refused else ExitStatus.DONE


def send(server: Server, thread: str, body: Mapping[str, Any]) -> bytes:
    """Adds a key unless the message wakes nobody: a key identifies a wake."""
    path = f"/threads/{thread_part(thread)}/words"
    if body.get("key") is not None or not body.get("wakes", True):
        return server.post(path, body)
    try:
        return server.post(path, {**body, "key": new_key()})
    except Refused:
        if body.get("agent") is not None or get_thread(server, thread).assignee is not None:
            raise
        return server.post(path, body)


STARTS = {
    "accepted:lane-free": "; starting now",
    "accepted:queued": ". {agent} is busy; it will be told in the next turn",
    "accepted:steered": ". {agent} is busy; it will be told during this turn, or at the start of the next",
    "accepted:interrupts": ". {agent} is busy; its turn is interrupted for this",
}


def receipt(wake: WakeView) -> str:
    """What happens with a wake, in one line."""
    run = f"run {wake.run}, " if wake.run else ""
    ids = f" ({run}wake {wake.id})"
    if wake.state == "pending" and wake.code in STARTS and not wake.repeated:
        return f"Sent to {wake.agent} in {wake.thread}{STARTS[wake.code].format(agent=wake.agent)}.{ids}"
    again = ", requested before" if wake.repeated else ""
    words = f" {one_line(wake.words)}" if wake.words else ""
    return f"Wake for {wake.agent} in {wake.thread}: {wake.state}{again}.{words}{ids}"


def wake(
    agent: str,
    text: Text | None = None,
    /,
    *,
    thread: str | None = None,
    subject: str | None = None,
    project: str | None = None,
    fresh: bool = False,
    resume: str | None = None,
    priority: Annotated[int, Exact] = 0,
    key: str | None = None,
    wait: Wait = False,
    options: Options = OPTIONS,
) -> ExitStatus:
    """Wake an agent, in its own thread or in another.

    For example:

        clew wake ada

        clew wake ada "Check the build." --thread issue-3 -w

        clew wake ada "Review requested: the login page" --subject github:acme/app#12

    Parameters
    ----------
    agent
        The agent to wake.
    text
        The message; - reads it from stdin.
    thread
        The thread to wake it in: issue-3 or 3, chat-1, or an id. Default: the agent's own.
    subject
        Something outside that this is an event of, as source:name. All events of a subject go to one thread. The agent
        is told that the text is from outside, not from you.
    project
        The project to work in, for a new subject.
    fresh
        Start a new session without the earlier conversation.
    resume
        Continue the session of this run, whatever the policy says.
    priority
        Higher goes first; each step counts as five minutes of waiting.
    key
        An idempotency key: requests with the same key are done once.
    """
    not_together({"--fresh": fresh, "--resume": resume})
    not_together({"--thread": thread, "--subject": subject}, "a subject has its own thread")
    needs({"--project": project}, "--subject: it is the project of a new subject", bool(subject), "Leave it out.")
    body: dict[str, Any] = {
        "agent": name_given(agent),
        "thread": thread,
        "text": "" if text is None else given(text),
        "key": key or new_key(),
        "fresh": fresh,
        "resume_run": resume,
        "priority": priority,
    }
    if subject is not None or project is not None:
        body |= {"subject": subject, "project": project}
    server = Server(options.data)
    said = server.post("/wakes", body)
    return answer_wakes(options, server, said, [read(WakeView, said)], wait=wait)
