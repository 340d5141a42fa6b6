"""`clew wake`: wake an agent manually, or with an event from outside."""

from typing import Any

from clew.cli.answers import read
from clew.cli.client import Server
from clew.cli.commands.say import new_key, receipt, refused
from clew.cli.exit import ExitStatus
from clew.cli.input import OPTIONS, Options, Text, Wait, given
from clew.cli.output import tell, tell_json
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
        The thread to wake it in: issue-3, chat-1, or an id. Default: the agent's own.
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
        tell_json(said)
    elif not wait:
        tell(receipt(woken))
    if not wait or refused(woken) is ExitStatus.FAILED:
        return refused(woken)
    return Turn(server, woken, as_json=options.json).watch()
