"""`clew say`: something said in a thread."""

from clew.cli.ending import Ending
from clew.cli.options import OPTIONS, Options, Text, Wait
from clew.cli.saying import say_in


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
    key: str | None = None,
    wait: Wait = False,
    options: Options = OPTIONS,
) -> Ending:
    """Say something in a thread, which wakes the agent whose it is.

    With --wait the answer is shown as it comes, and the exit status says whether the run succeeded. What the agent
    says stands on stdout, all else on stderr.

    For example:

        clew say chat-1 "And the tests?" -w

        git diff | clew say issue-3 - --to reviewer

        clew say chat-1 "Begin anew, please." --fresh

        clew say chat-1 "Leave the tests alone." --steer

    Parameters
    ----------
    thread
        The thread: issue-3, chat-1, own-ada, an outside subject, or an id.
    text
        What to say; - reads it from stdin.
    to
        The agent to wake, if it is not whose thread it is.
    fresh
        Begin a new session. What was said before stays out of it.
    resume
        Go on in the session of this run, whatever the policy says.
    silent
        Wake nobody.
    steer
        Tell it within the turn that is going, where the agent takes it; else it is told in the next one.
    key
        A name for this request. The same key again is the same request, and is done once.
    """
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
    )
