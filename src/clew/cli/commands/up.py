"""`clew up`: run the server, its timers and this machine's daemon in one process."""

import asyncio
import gc
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from clew.cli.browser import has_browser, public_address, show_page
from clew.cli.input import DEFAULT_DATA, BadNumber, DataDirectory, Exact
from clew.cli.misuse import not_together
from clew.cli.output import counted, tell

if TYPE_CHECKING:
    from clew.app.logs import Notice

PORT = 4747


def _grace(_: object, seconds: float) -> None:
    """Checked at the start, because it is used only at shutdown."""
    if not (math.isfinite(seconds) and seconds >= 0):
        raise BadNumber(
            f"--grace must be 0 seconds or more (got {seconds:g}).",
            "To wait as long as turns take, use `--on-stop finish`.",
        )


def up(
    *,
    data: DataDirectory = DEFAULT_DATA,
    port: Annotated[int, Exact, Parameter(show_default=True)] = PORT,
    host: Annotated[str, Parameter(show_default=True)] = "127.0.0.1",
    database: Annotated[str | None, Parameter(env_var="CLEW_DATABASE", metavar="ADDRESS")] = None,
    on_stop: Annotated[Literal["finish", "interrupt"], Parameter(show_default=True)] = "interrupt",
    grace: Annotated[float, Parameter(show_default=True, validator=_grace)] = 10.0,
    public: Annotated[str, Parameter(metavar="URL")] = "",
    no_browser: bool = False,
    link: bool = False,
    detach: Annotated[bool, Parameter(name=("--detach", "-d"))] = False,
) -> None:
    """Start Clew on this machine: the server, its timers, and a daemon that runs the installed agents.

    It listens on loopback only, and clients need the token in the data directory, where commands find it. Ctrl-C stops
    it: live turns finish or continue at the next start. A second Ctrl-C interrupts them now.

    For example:

        clew up

        clew up -d

        clew up --data ./here --port 0

    Parameters
    ----------
    port
        The port to listen on; 0 takes any free port.
    host
        The loopback address to listen on.
    database
        A path, sqlite:///path, or postgresql://user@host/name. Default: clew.db in the data directory.
    on_stop
        What happens to live turns when Clew stops.
    grace
        Seconds that live turns have to finish before they are interrupted.
    public
        The address under which a proxy serves Clew, such as https://box.example/clew.
    no_browser
        Do not open the page in a browser. It is opened only at a terminal, and where there is one.
    link
        Print a new login link for the running server, and exit.
    detach
        Run in the background, and return when it is ready. `clew stop` stops it.
    """
    not_together({"--link": link, "--detach": detach}, "--link starts nothing")
    if link:
        tell(_new_link(data))
        return
    if detach:
        given = [f"--port={port}", f"--host={host}", f"--on-stop={on_stop}", f"--grace={grace:g}", f"--public={public}"]
        _start(data, given, database)
        return
    # Imported objects live as long as the process: scanning them takes a tenth of the start, and time in every later
    # collection.
    gc.disable()
    from clew.app.logs import Ready  # noqa: PLC0415
    from clew.app.run_server import ServerSettings, run_server  # noqa: PLC0415
    from clew.app.shutdown import OnStop  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    settings = ServerSettings(data, host, port, database, OnStop(on_stop), grace, public_address(public))
    shows = not no_browser and sys.stdout.isatty() and has_browser()

    def notify(notice: "Notice") -> None:
        _print_notice(notice)
        if shows and isinstance(notice, Ready):
            show_page(notice.link)

    asyncio.run(run_server(settings, notify))


def _start(data: Path, options: list[str], database: str | None) -> None:
    from clew.cli.local_server import address_of, output_of, running, start  # noqa: PLC0415
    from clew.server.data_dir import DataDirectory as Files  # noqa: PLC0415

    files = Files(data.expanduser().absolute())
    if (process := running(files)) is not None:
        tell(f"Clew is running already at {address_of(files)} (process {process.pid}).")
        return
    process = start(files, options, database)
    tell(f"Clew is ready at {address_of(files)} (process {process.pid}).")
    tell(f"  data    {files.root}")
    tell(f"  output  {output_of(files)}")
    tell("  stop    clew stop")


def _new_link(data: Path) -> str:
    from clew.cli.answers import parsed  # noqa: PLC0415
    from clew.cli.client import Server  # noqa: PLC0415

    return str(parsed(Server(data).post("/tickets"))["link"])


def _print_notice(notice: "Notice") -> None:
    from clew.app.logs import FoundAgents, Ready, Stopping  # noqa: PLC0415

    match notice:
        case Ready():
            tell(f"Clew is ready at {notice.address}")
            tell("  in a browser (works once, for 15 minutes):")
            # From the first column: at 80 columns, a link that is broken over two lines cannot be clicked.
            tell(notice.link)
            tell(f"  data       {notice.data}")
            if notice.database != str(notice.data / "clew.db"):
                tell(f"  database   {notice.database}")
            tell("  stop       Ctrl-C")
        case FoundAgents():
            here = ", ".join(f"{name} {version}".strip() for name, version in notice.installed)
            tell(f"  installed  {here or 'none'}")
            tell(f"  agents     {', '.join(notice.agents)}")
        case Stopping():
            tell(f"{counted(notice.live, 'run')} still live. {notice.message}")
    sys.stdout.flush()
