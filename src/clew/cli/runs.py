"""`clew runs`: what was done, and what is going."""

from cyclopts import App

from clew.cli.client import Server, part
from clew.cli.harmless import one_line
from clew.cli.options import OPTIONS, Limit, Options
from clew.cli.reading import read, read_all
from clew.cli.table import facts, table
from clew.cli.telling import tell_as_is
from clew.cli.times import lasted, moment
from clew.protocol.views import RunView

app = App(name="runs", help_format="markdown")

_WORDS = 120
"""What a held run waits for, and what to do about it, is never cut."""


@app.default
def runs(
    *,
    thread: str | None = None,
    agent: str | None = None,
    state: str | None = None,
    limit: Limit = 20,
    options: Options = OPTIONS,
) -> None:
    """List runs, the latest first, or show one.

    For example:

        clew runs

        clew runs --agent ada --state failed

        clew runs show rn_01a1

    Parameters
    ----------
    thread
        Only those of this thread.
    agent
        Only those of this agent.
    state
        queued (those that are held, too), claimed, opening, running, waiting, stopping, succeeded, failed, cancelled or
        lost.
    """
    query = {"thread": thread, "agent": agent, "state": state, "limit": limit}
    said = Server(options.data).get("/runs", query)
    if options.json:
        return tell_as_is(said)
    return table(
        ("run", "thread", "agent", "state", "decision", "began", "took", "words"),
        [
            (
                run.id,
                run.thread,
                run.agent,
                state_of(run),
                f"{run.decision} (on its word)" if run.on_its_word else run.decision or "",
                moment(run.started_at or run.queued_at),
                "" if run.held else lasted(run.started_at, run.ended_at),
                "" if run.state == "succeeded" else one_line(run.words or "", 0 if run.held else _WORDS),
            )
            for run in read_all(RunView, said)
        ],
        "There are no such runs.",
    )


@app.command
def show(run: str, /, *, options: Options = OPTIONS) -> None:
    """Show one run.

    For example:

        clew runs show rn_01a1

    Parameters
    ----------
    run
        Its id, or a beginning of it that no other run has.
    """
    said = Server(options.data).get(f"/runs/{part(run)}")
    if options.json:
        return tell_as_is(said)
    found = read(RunView, said)
    return facts(run_facts(found))


def state_of(run: RunView) -> str:
    """A run that is held waits in the queue, and not for its turn."""
    return "held" if run.held else run.state


def run_facts(run: RunView) -> list[tuple[str, str]]:
    stopping = ", told to stop" if run.stopping else ""
    return [
        ("run", run.id),
        ("thread", run.thread),
        ("agent", run.agent),
        ("state", state_of(run) + stopping),
        ("words", f"{run.words} [{run.code}]" if run.words and run.code else run.words or run.code or ""),
        ("attempt", str(run.attempt)),
        ("queued", moment(run.queued_at)),
        ("not before", moment(run.not_before)),
        ("began", moment(run.started_at)),
        ("ended", moment(run.ended_at)),
        ("took", lasted(run.started_at, run.ended_at)),
        ("decision", "" if run.decision is None else f"{run.decision}: {run.decision_words or ''}"),
        ("confirmed", f"{run.claim} (on its word)" if run.claim and run.on_its_word else run.claim or ""),
        ("session", run.session or ""),
        ("runtime", run.runtime or ""),
    ]
