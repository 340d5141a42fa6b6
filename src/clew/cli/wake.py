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
from clew.protocol.views import WakeView


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
    priority: int = 0,
    key: str | None = None,
    wait: Wait = False,
    options: Options = OPTIONS,
) -> Ending:
    """Wake an agent in its own thread, or in another.

    For example:

        clew wake ada

        clew wake ada "Look at the build." --thread issue-3 -w

        clew wake ada "Review wanted: the login page" --subject github:acme/app#12

    Parameters
    ----------
    agent
        Whom to wake.
    text
        What to tell it; - reads it from stdin.
    thread
        Where to wake it: issue-3, chat-1, or an id.
    subject
        Something outside that this is an event of, as source:name. It has a thread of its own, and every event of it
        lands there. Its text is told as what it is: from outside, not from you.
    project
        Where work on a new subject is done.
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
    if subject is not None or project is not None:
        body |= {"subject": subject, "project": project}
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
