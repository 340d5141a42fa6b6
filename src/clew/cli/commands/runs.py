"""`clew runs`, `cancel`, `interrupt`, `retry` and `rerun`: list runs and act on one."""

import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from clew.cli.answers import print_table, print_view, read, read_all
from clew.cli.client import NOT_FOUND, Refused, Server, thread_part
from clew.cli.commands.say import answer_wakes
from clew.cli.commands.usage import cost_of, tokens_of, used_words
from clew.cli.input import OPTIONS, Exact, Limit, Options, Wait
from clew.cli.misuse import not_together
from clew.cli.output import ExitStatus, facts, tell, tell_answer
from clew.cli.safe_text import one_line
from clew.cli.times import lasted, moment, until
from clew.protocol.views import Cancelled, RunView, WakeView

app = App(name="runs", help_format="markdown")

State = Literal[
    "queued",
    "held",
    "claimed",
    "opening",
    "running",
    "waiting",
    "stopping",
    "succeeded",
    "failed",
    "cancelled",
    "lost",
]

_WORDS = 120
"""Messages are cut to this, except for a held run: its message says what to do."""


@app.default
def runs(
    *,
    thread: str | None = None,
    agent: str | None = None,
    state: Annotated[State | None, Exact] = None,
    limit: Limit = 20,
    all_: Annotated[bool, Parameter(name="--all", negative="")] = False,
    options: Options = OPTIONS,
) -> None:
    """List runs, newest first, or show one.

    What Clew tries again after a failure is one row: its newest try, with how many there were. --all shows each.

    For example:

        clew runs

        clew runs --agent ada --state failed

        clew runs show run-17

    Parameters
    ----------
    thread
        Only runs of this thread.
    agent
        Only runs of this agent.
    state
        held, queued (includes held), claimed, opening, running, waiting, stopping, succeeded, failed, cancelled or
        lost.
    all_
        Show each try as a row of its own.
    """
    folded = str(not all_).lower()
    query = {"thread": thread, "agent": agent, "state": state, "limit": limit, "folded": folded}
    print_table(options, Server(options.data).get("/runs", query), RunView, _row, "No runs.", _NARROW)


_NARROW = ("took", "cost", "tokens", "started", "decision", "agent")


def _row(run: RunView) -> dict[str, str]:
    return {
        "run": run.ref if run.tries == 1 else f"{run.ref} ({run.tries} tries)",
        "thread": run.thread,
        "agent": run.agent,
        "state": state_of(run),
        "decision": f"{run.decision} (unverified)" if run.on_its_word else run.decision or "",
        "started": moment(run.started_at or run.queued_at),
        "took": "" if run.held else lasted(run.started_at, run.ended_at),
        "tokens": tokens_of(run.used),
        "cost": cost_of(run.used),
        "message": "" if ends_as_usual(run) else one_line(run.words or "", 0 if run.held else _WORDS),
    }


@app.command
def show(run: str, /, *, options: Options = OPTIONS) -> None:
    """Show a run.

    For example:

        clew runs show run-17

    Parameters
    ----------
    run
        Its name (run-17), a thread (its latest run), its id or a unique prefix.
    """
    said = Server(options.data).get(f"/runs/{thread_part(run)}")
    print_view(options, said, RunView, lambda found: facts(_facts(found)))


def state_of(run: RunView) -> str:
    """A held run is stored as queued. Where it goes on by itself, it is said when."""
    if not run.held:
        return run.state
    now = time.time()
    return f"held {until(run.not_before, now)}" if run.not_before is not None and run.not_before > now else "held"


def ends_as_usual(run: RunView) -> bool:
    """Whether there is nothing to say of its end: the agent replied."""
    return run.state == "succeeded" and run.code != "run:no-reply"


def _facts(run: RunView) -> list[tuple[str, str]]:
    stopping = ", stopping" if run.stopping else ""
    return [
        ("run", run.ref),
        ("id", run.id),
        ("thread", run.thread),
        ("agent", run.agent),
        ("state", state_of(run) + stopping),
        ("message", f"{run.words} [{run.code}]" if run.words and run.code else run.words or run.code or ""),
        ("tries", "" if run.tries == 1 else str(run.tries)),
        ("attempt", str(run.attempt)),
        ("queued", moment(run.queued_at)),
        ("started", moment(run.started_at)),
        ("ended", moment(run.ended_at)),
        ("took", lasted(run.started_at, run.ended_at)),
        ("used", used_words(run.used)),
        ("decision", "" if run.decision is None else f"{run.decision}: {run.decision_words or ''}"),
        ("confirmed", f"{run.claim} (unverified)" if run.claim and run.on_its_word else run.claim or ""),
        ("session", run.session or ""),
        ("runtime", run.place or run.runtime or ""),
    ]


Run = Annotated[
    str,
    Parameter(metavar="RUN|THREAD", help="Its name (run-17), a thread (its latest run), its id or a unique prefix."),
]


def cancel(
    subject: Annotated[str, Parameter(metavar="RUN|THREAD|WAKE")], /, *, options: Options = OPTIONS
) -> ExitStatus:
    """Cancel a run, or a pending wake. The session is kept, and the next message continues it.

    For example:

        clew cancel run-17

        clew cancel issue-3

    Parameters
    ----------
    subject
        A run (run-17), a thread (its latest run), or a wake; each also by its id or a unique prefix.
    """
    server = Server(options.data)
    try:
        said = server.post(f"/runs/{thread_part(subject)}/cancel")
    except Refused as no_run:
        if no_run.status != NOT_FOUND:
            raise
        try:
            said = server.delete(f"/wakes/{thread_part(subject)}")
        except Refused as no_wake:
            is_run = no_wake.status == NOT_FOUND and not subject.startswith("wk_")
            raise (no_run if is_run else no_wake) from None
    return _tell(options, said)


def interrupt(run: Run, /, *, options: Options = OPTIONS) -> ExitStatus:
    """Interrupt the agent's current turn. Its session is kept and may stay warm.

    For example:

        clew interrupt chat-1
    """
    return _tell(options, Server(options.data).post(f"/runs/{thread_part(run)}/interrupt"))


def retry(
    run: Run, /, *, taken: bool = False, not_taken: bool = False, wait: Wait = False, options: Options = OPTIONS
) -> ExitStatus:
    """Retry a run that failed or is held: serve its wakes again, with current settings.

    If a run is held because it is unknown whether the agent received the prompt, you decide. --not-taken sends the
    prompt again; if the agent had received it, the work is done twice. --taken does not send it again and asks the
    agent to continue its session; if the agent had not received it, the prompt is lost.

    For example:

        clew retry run-17 -w

        clew retry run-17 --not-taken

    Parameters
    ----------
    taken
        The agent received the prompt. For a run that is held because this is unknown.
    not_taken
        The agent did not receive the prompt. For a run that is held because this is unknown.
    """
    not_together({"--taken": taken, "--not-taken": not_taken}, "the agent received the prompt, or it did not")
    return _again(options, run, "retry", wait, {"taken": taken} if taken or not_taken else {})


def rerun(run: Run, /, *, wait: Wait = False, options: Options = OPTIONS) -> ExitStatus:
    """Repeat a run, starting from the session it had.

    For example:

        clew rerun run-17
    """
    return _again(options, run, "rerun", wait)


def _tell(options: Options, said: bytes) -> ExitStatus:
    done = read(Cancelled, said)
    tell_answer(said, lambda: tell(one_line(done.words) or f"The state is {done.state}."), as_json=options.json)
    return ExitStatus.DONE if done.taken else ExitStatus.FAILED


def _again(options: Options, run: str, how: str, wait: bool, body: Mapping[str, Any] | None = None) -> ExitStatus:
    server = Server(options.data)
    said = server.post(f"/runs/{thread_part(run)}/{how}", body)
    wakes = read_all(WakeView, said) if said.startswith(b"[") else [read(WakeView, said)]
    if not wakes:
        text = "It is recorded. No wake of this run is left to serve."
        tell_answer(said, lambda: tell(text), as_json=options.json)
        return ExitStatus.DONE
    return answer_wakes(options, server, said, wakes, wait=wait)
