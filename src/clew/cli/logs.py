"""`clew logs`: everything that happened in a run."""

import json
import sys
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from clew.cli.activity import ending_of_run, line_of
from clew.cli.client import Server, part
from clew.cli.following import Place, events_after, follow_run
from clew.cli.harmless import harmless
from clew.cli.options import OPTIONS, Options
from clew.cli.reading import read
from clew.cli.telling import tell, tell_as_is
from clew.cli.times import clock
from clew.wire.views import EventView, RunView


def logs(
    run: str,
    /,
    *,
    follow: Annotated[bool, Parameter(alias="-f")] = False,
    options: Options = OPTIONS,
) -> None:
    """Show everything that happened in a run, in order.

    For example:

        clew logs rn_01a1

        clew logs rn_01a1 -f

    Parameters
    ----------
    run
        Its id, or a beginning of it that no other run has.
    follow
        Go on until the run ends. With --json it is one event a line.
    """
    server = Server(options.data)
    found = read(RunView, server.get(f"/runs/{part(run)}"))
    place, log = Place(found.id), Log()
    place.absence.over()
    if not follow:
        every = list(events_after(server, place))
        if options.json:
            return tell_as_is(json.dumps([asdict(event) for event in every], ensure_ascii=False))
        for event in every:
            log.show(event)
        return log.end()
    for seen in follow_run(server, place):
        if isinstance(seen, EventView):
            tell_as_is(json.dumps(asdict(seen), ensure_ascii=False)) if options.json else log.show(seen)
            sys.stdout.flush()
        elif isinstance(seen, RunView):
            found = seen
    if not options.json:
        log.end()
        tell(ending_of_run(found) or f"The run {found.state}.")
    return None


class Log:
    """One event a line; the parts of a message are put together again."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._at = 0.0

    def show(self, event: EventView) -> None:
        if event.kind == "text":
            self._at = event.at
            text = str(event.body.get("text") or "")
            if not event.body.get("final", True):
                self._parts.append(text)
                return
            self._parts = [text]
        self.end()
        if line := line_of(event):
            tell(f"{clock(event.at)}  {line}")

    def end(self) -> None:
        if not self._parts:
            return
        first, *more = harmless("".join(self._parts)).splitlines() or [""]
        self._parts = []
        tell(f"{clock(self._at)}  says: {first}")
        for line in more:
            tell(f"    {line}")
