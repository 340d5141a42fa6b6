"""`clew logs`: everything that happened in a run."""

import json
import sys
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from clew.cli.activity import ending_of_run
from clew.cli.client import Server, part
from clew.cli.following import PAGE, Place, events_after, follow_run
from clew.cli.harmless import one_line
from clew.cli.logbook import Logbook
from clew.cli.options import OPTIONS, Options
from clew.cli.reading import read, read_all
from clew.cli.telling import tell, tell_as_is
from clew.protocol.views import ApprovalView, EventView, RunView


def logs(
    run: str,
    /,
    *,
    follow: Annotated[bool, Parameter(alias="-f")] = False,
    full: bool = False,
    options: Options = OPTIONS,
) -> None:
    """Show everything that happened in a run, in order: what its agent said and did, what its tools printed, what it
    asked and who answered.

    What is long is cut, and says how much is left out.

    For example:

        clew logs rn_01a1

        clew logs rn_01a1 -f

    Parameters
    ----------
    run
        Its id, or a beginning of it that no other run has.
    follow
        Go on until the run ends. With --json it is one event a line.
    full
        Cut nothing.
    """
    server = Server(options.data)
    found = read(RunView, server.get(f"/runs/{part(run)}"))
    place, log = Place(found.id), Logbook(found.id, full=full)
    place.absence.over()
    if not follow:
        every = list(events_after(server, place))
        if options.json:
            return tell_as_is(json.dumps([asdict(event) for event in every], ensure_ascii=False))
        for answered in read_all(
            ApprovalView, server.get("/approvals", {"run": found.id, "state": "all", "limit": PAGE})
        ):
            log.answered(answered)
        for event in every:
            log.show(event)
        log.so_far()
        # Where it has not ended, the last word of its log is not the last word about it.
        return tell(f"The run is held: {one_line(found.words or '')}") if found.held else None
    for seen in follow_run(server, place):
        if isinstance(seen, EventView):
            tell_as_is(json.dumps(asdict(seen), ensure_ascii=False)) if options.json else log.show(seen)
            sys.stdout.flush()
        elif isinstance(seen, ApprovalView):
            if seen.state != "pending" and not options.json:
                log.answered(seen)
                log.answers()
        else:
            found = seen
    if not options.json:
        log.so_far()
        tell(ending_of_run(found) or f"The run {found.state}.")
    return None
