"""What was begun in a thread just now, shown to its end."""

from clew.cli.client import Server, part
from clew.cli.ending import Ending
from clew.cli.reading import read, read_all
from clew.cli.telling import tell
from clew.cli.turn import Turn
from clew.protocol.views import RunView, ThreadPage, WhyView


def watch_thread(server: Server, ref: str, *, as_json: bool) -> Ending:
    """The newest run's wake. A thread in which nothing is going has nothing to wait for."""
    runs = read_all(RunView, server.get("/runs", {"thread": ref, "limit": 1}))
    if not runs:
        thread = read(ThreadPage, server.get(f"/threads/{part(ref)}", {"limit": 1})).thread
        tell(thread.words or f"Nothing is going on in {ref}.")
        return Ending.DONE
    wakes = read(WhyView, server.get(f"/why/{part(runs[0].id)}")).wakes
    if not wakes:
        return Ending.DONE
    return Turn(server, wakes[-1], as_json=as_json).watch()
