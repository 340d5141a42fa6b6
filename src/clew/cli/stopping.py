"""`clew cancel`, `interrupt`, `retry` and `rerun`: what a person does about a run."""

from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from clew.cli.client import NOT_FOUND, Refused, Server, part
from clew.cli.ending import Ending
from clew.cli.harmless import one_line
from clew.cli.options import OPTIONS, Options, Wait
from clew.cli.reading import read, read_all
from clew.cli.saying import receipt, refused
from clew.cli.telling import tell, tell_as_is
from clew.cli.turn import Turn
from clew.protocol.views import Cancelled, WakeView

Run = Annotated[str, Parameter(metavar="RUN", help="Its id, or a beginning of it that no other run has.")]


Taken = Annotated[bool | None, Parameter(name="--taken", negative="--not-taken")]


def cancel(subject: Annotated[str, Parameter(metavar="RUN|WAKE")], /, *, options: Options = OPTIONS) -> Ending:
    """End a run, or take back a wake that waits. The session is kept, and the next message goes on in it.

    For example:

        clew cancel rn_01a1

    Parameters
    ----------
    subject
        A run or a wake: its id, or a beginning of it that no other has.
    """
    server = Server(options.data)
    try:
        said = server.post(f"/runs/{part(subject)}/cancel")
    except Refused as no_run:
        if no_run.status != NOT_FOUND:
            raise
        try:
            said = server.delete(f"/wakes/{part(subject)}")
        except Refused as no_wake:
            raise (no_run if no_wake.status == NOT_FOUND else no_wake) from None
    return _tell(options, said)


def interrupt(run: Run, /, *, options: Options = OPTIONS) -> Ending:
    """Stop what an agent is doing now. Its session is kept and may stay warm.

    For example:

        clew interrupt rn_01a1
    """
    return _tell(options, Server(options.data).post(f"/runs/{part(run)}/interrupt"))


def retry(run: Run, /, *, taken: Taken = None, wait: Wait = False, options: Options = OPTIONS) -> Ending:
    """Serve the wakes of a run that did not end well once more, as things are now.

    Where a run is held because nobody can tell whether the agent took its prompt, you decide: with --not-taken it is
    sent again in full, and done twice if it was taken after all; with --taken it is not sent again, the agent is asked
    to go on where it has its session, and it is lost if it was not taken.

    For example:

        clew retry rn_01a1 -w

        clew retry rn_01a1 --not-taken

    Parameters
    ----------
    taken
        Say whether the agent took the prompt, where the run is held for that.
    """
    return _again(options, run, "retry", wait, {} if taken is None else {"taken": taken})


def rerun(run: Run, /, *, wait: Wait = False, options: Options = OPTIONS) -> Ending:
    """Do once more what a run was asked to do, beginning in the session that it had.

    For example:

        clew rerun rn_01a1
    """
    return _again(options, run, "rerun", wait)


def _tell(options: Options, said: bytes) -> Ending:
    done = read(Cancelled, said)
    if options.json:
        tell_as_is(said)
    else:
        tell(one_line(done.words) or f"It is {done.state}.")
    return Ending.DONE if done.taken else Ending.FAILED


def _again(options: Options, run: str, how: str, wait: bool, body: Mapping[str, Any] | None = None) -> Ending:
    server = Server(options.data)
    said = server.post(f"/runs/{part(run)}/{how}", body)
    wakes = read_all(WakeView, said) if said.startswith(b"[") else [read(WakeView, said)]
    if options.json:
        tell_as_is(said)
    elif not wait:
        for wake in wakes:
            tell(receipt(wake))
    if not wait:
        return max(map(refused, wakes), default=Ending.DONE)
    # All of them are of one lane, so the run that has the last one has them all.
    return Turn(server, wakes[-1], as_json=options.json).watch() if wakes else Ending.DONE
