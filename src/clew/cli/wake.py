"""`clew wake`: an agent woken by hand."""

from typing import Any

from clew.cli.client import Server
from clew.cli.ending import Ending
from clew.cli.options import OPTIONS, Options, Text, Wait
from clew.cli.reading import read
from clew.cli.saying import new_key, receipt, refused
from clew.cli.telling import tell, tell_as_is
from clew.cli.texts import given
from clew.cli.turn import Turn
from clew.wire.views import WakeView


def wake(
    agent: str,
    text: Text | None = None,
    /,
    *,
    thread: str | None = None,
    fresh: bool = False,
    resume: str | None = None,
    priority: int = 0,
    key: str | None = None,
    wait: Wait = False,
    options: Options = OPTIONS,
) -> Ending:
    """Wake an agent in its own thread, or in another.

    For example:

        clew wake ada

        clew wake ada "Look at the build." --thread issue-3 -w

    Parameters
    ----------
    agent
        Whom to wake.
    text
        What to tell it; - reads it from stdin.
    thread
        Where to wake it: issue-3, chat-1, or an id.
    fresh
        Begin a new session. What was said before stays out of it.
    resume
        Go on in the session of this run, whatever the policy says.
    priority
        Higher goes first; each step counts as five minutes of waiting.
    key
        A name for this request. The same key again is the same request, and is done once.
    """
    body: dict[str, Any] = {
        "agent": given(agent, "name"),
        "thread": thread,
        "text": "" if text is None else given(text),
        "key": key or new_key(),
        "fresh": fresh,
        "resume_run": resume,
        "priority": priority,
    }
    server = Server(options.data)
    said = server.post("/wakes", body)
    woken = read(WakeView, said)
    if options.json:
        tell_as_is(said)
    elif not wait:
        tell(receipt(woken))
    if not wait or refused(woken) is Ending.FAILED:
        return refused(woken)
    return Turn(server, woken, as_json=options.json).watch()
