"""`clew project`: where work is done."""

from typing import Annotated, Any

from cyclopts import App, Parameter

from clew.cli.client import Server, part
from clew.cli.options import OPTIONS, Options
from clew.cli.reading import read, read_all
from clew.cli.table import facts, table
from clew.cli.telling import tell, tell_as_is
from clew.cli.texts import given, source
from clew.protocol.views import Mode, ProjectView

app = App(name="project", help="Add, list and change projects.", help_format="markdown")

Setup = Annotated[
    tuple[str, ...],
    Parameter(
        metavar="COMMAND", allow_leading_hyphen=True, help="A command run in every new worktree; may be repeated."
    ),
]
Changed = Annotated[tuple[str, ...], Parameter(metavar="COMMAND", allow_leading_hyphen=True)]
_DEADLINE = 120.0
"""Looking at an address may take the network's time."""


@app.command
def add(
    name: str,
    path: str,
    /,
    *,
    base: str | None = None,
    setup: Setup = (),
    mode_limit: Mode | None = None,
    plain: bool = False,
    options: Options = OPTIONS,
) -> None:
    """Add a project: a git repository on this machine, or an address that git can clone.

    Each agent in each thread of it works in a worktree of its own, on a branch of its own.

    For example:

        clew project add web ~/src/web --setup "npm ci"

        clew project add lib https://git.example/lib.git --base main

        clew project add notes ~/notes --plain

    Parameters
    ----------
    name
        What it is called.
    path
        The directory, or the address.
    base
        The branch that work begins from.
    mode_limit
        The widest mode that any agent has here: read, ask, edit or full.
    plain
        Take a directory without git. It is used in place, by one agent in one thread at a time.
    """
    body: dict[str, Any] = {
        "name": given(name, "name"),
        "source": source(path),
        "base": base,
        "setup": setup,
        "mode_limit": mode_limit,
        "plain": plain,
    }
    said = Server(options.data).post("/projects", body, _DEADLINE)
    if options.json:
        return tell_as_is(said)
    made = read(ProjectView, said)
    return tell(f"{made.name} is {made.source} ({made.kind}). Begin with `clew issue new TITLE --project {made.name}`.")


@app.command(name="list")
def list_(*, options: Options = OPTIONS) -> None:
    """List the projects.

    For example:

        clew project list
    """
    said = Server(options.data).get("/projects")
    if options.json:
        return tell_as_is(said)
    return table(
        ("name", "kind", "source", "base", "mode limit"),
        [
            (project.name, project.kind, project.source, project.base or "", project.mode_limit or "")
            for project in read_all(ProjectView, said)
        ],
        "There are no projects. Add one with `clew project add`.",
    )


@app.command
def show(name: str, /, *, options: Options = OPTIONS) -> None:
    """Show one project.

    For example:

        clew project show web
    """
    _tell(options, Server(options.data).get(f"/projects/{part(name)}"))


@app.command
def edit(
    name: str,
    /,
    *,
    path: str | None = None,
    base: str | None = None,
    setup: Changed | None = None,
    mode_limit: Mode | None = None,
    options: Options = OPTIONS,
) -> None:
    """Change a project; what is not named stays. One whose directory was moved is pointed at the new place so.

    For example:

        clew project edit web --path ~/work/web

        clew project edit web --setup "npm ci" --setup "npm run build"

        clew project edit web --setup ""

    Parameters
    ----------
    path
        The directory, or the address.
    base
        The branch that work begins from; an empty one is the branch the repository is on.
    setup
        A command run in every new worktree; may be repeated. They replace those it has; an empty one takes them away.
    mode_limit
        The widest mode that any agent has here: read, ask, edit or full.
    """
    change: dict[str, Any] = {
        "source": None if path is None else source(path),
        "base": base,
        "setup": () if setup == ("",) else setup,
        "mode_limit": mode_limit,
    }
    changed = {field: value for field, value in change.items() if value is not None}
    _tell(options, Server(options.data).patch(f"/projects/{part(name)}", changed))


def _tell(options: Options, said: bytes) -> None:
    if options.json:
        return tell_as_is(said)
    project = read(ProjectView, said)
    return facts(
        [
            ("name", project.name),
            ("source", project.source),
            ("kind", project.kind),
            ("base", project.base or ""),
            ("setup", "\n".join(project.setup)),
            ("mode limit", project.mode_limit or ""),
            ("machine", project.machine or ""),
        ]
    )
