"""`clew up`: everything on this machine, in one process, until it is told to stop."""

import asyncio
import gc
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from clew.cli.options import BadNumber
from clew.cli.place import DataDirectory, usual_data
from clew.cli.telling import counted, tell

if TYPE_CHECKING:
    from clew.app.notices import Notice

_USUAL = usual_data()
PORT = 4747


def _grace(_: object, seconds: float) -> None:
    """What is no time would be found out at the end, when turns are to be waited for."""
    if not (math.isfinite(seconds) and seconds >= 0):
        raise BadNumber(
            f"--grace {seconds:g} is no time that turns could be given.",
            "Give 0 seconds or more; `--on-stop finish` waits for as long as they take.",
        )


def up(
    *,
    data: DataDirectory = _USUAL,
    port: Annotated[int, Parameter(show_default=True)] = PORT,
    host: Annotated[str, Parameter(show_default=True)] = "127.0.0.1",
    database: Annotated[str | None, Parameter(env_var="CLEW_DATABASE", metavar="ADDRESS")] = None,
    on_stop: Annotated[Literal["finish", "interrupt"], Parameter(show_default=True)] = "interrupt",
    grace: Annotated[float, Parameter(show_default=True, validator=_grace)] = 10.0,
    link: bool = False,
) -> None:
    """Start Clew on this machine: its server, its timers and the agents that are installed.

    It listens on this machine alone, and whoever uses it needs the token in the data directory; commands find it
    there. Ctrl-C stops it: what the agents were doing is finished or goes on with the next start. A second Ctrl-C does
    not wait for them.

    For example:

        clew up

        clew up --data ./here --port 0

    Parameters
    ----------
    port
        The port to listen on; 0 takes any that is free.
    host
        The address to listen on: of this machine alone.
    database
        The database: a path, sqlite:///path, or postgresql://user@host/name. Without it, a file in the data directory.
    on_stop
        What becomes of agents' turns at the end.
    grace
        How many seconds turns have to finish before they are interrupted.
    link
        Print a new link to the running one, and start nothing.
    """
    if link:
        tell(_new_link(data))
        return
    # What is imported stays: looking through it for garbage takes a tenth of the start, and a while now and then later.
    gc.disable()
    from clew.app.running import Wanted, run  # noqa: PLC0415
    from clew.app.stopping import OnStop  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    asyncio.run(run(Wanted(data, host, port, database, OnStop(on_stop), grace), _say))


def _new_link(data: Path) -> str:
    from clew.cli.client import Server  # noqa: PLC0415
    from clew.cli.reading import parsed  # noqa: PLC0415

    return str(parsed(Server(data).post("/tickets"))["link"])


def _say(notice: "Notice") -> None:
    from clew.app.notices import FoundAgents, Ready, Stopping  # noqa: PLC0415

    match notice:
        case Ready():
            tell(f"Clew is ready at {notice.address}")
            tell(f"  in a browser  {notice.link} (good once)")
            tell(f"  data          {notice.data}")
            if notice.database != str(notice.data / "clew.db"):
                tell(f"  database      {notice.database}")
            tell("  stop          Ctrl-C")
        case FoundAgents():
            here = ", ".join(f"{name} {version}".strip() for name, version in notice.here)
            tell(f"  installed     {here or 'no agent but the guide'}")
            tell(f"  agents        {', '.join(notice.agents)}")
        case Stopping():
            tell(f"{counted(notice.live, 'run')} still {'goes' if notice.live == 1 else 'go'} on. {notice.words}")
    sys.stdout.flush()
