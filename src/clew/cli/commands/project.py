"""`clew project`: add, list, show, edit and remove projects."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from clew.cli.answers import print_table, print_view, read_all
from clew.cli.client import Server, part
from clew.cli.input import OPTIONS, Exact, Options, name_given, source
from clew.cli.misuse import Misused
from clew.cli.output import facts, tell
from clew.protocol.views import Mode, ProjectView

app = App(name="project", help="Add, list, edit and remove projects.", help_format="markdown")

ProjectName = Annotated[str, Parameter(help="The project's name.")]
Setup = Annotated[
    tuple[str, ...],
    Parameter(
        metavar="COMMAND", allow_leading_hyphen=True, help="A command to run in every new worktree; may be repeated."
    ),
]
Changed = Annotated[tuple[str, ...], Parameter(metavar="COMMAND", allow_leading_hyphen=True)]
_DEADLINE = 120.0
"""Checking a URL needs the network."""


@app.command
def add(
    name: str,
    path: str,
    /,
    *,
    base: str | None = None,
    setup: Setup = (),
    mode_limit: Annotated[Mode | None, Exact] = None,
    plain: bool = False,
    options: Options = OPTIONS,
) -> None:
    """Add a project: a git repository on this machine, or a URL that git can clone.

    Each agent in each thread gets its own worktree and branch.

    For example:

        clew project add web ~/src/web --setup "npm ci"

        clew project add lib https://git.example/lib.git --base main

        clew project add notes ~/notes --plain

    Parameters
    ----------
    name
        The project's name.
    path
        The directory, or the URL.
    base
        The branch that work starts from. Default: the repository's current branch.
    mode_limit
        The highest mode that any agent gets here: read, ask, edit or full.
    plain
        Use a directory without git. Agents work in it directly, one agent in one thread at a time.
    """
    body: dict[str, Any] = {
        "name": name_given(name),
        "source": source(path),
        "base": base,
        "setup": setup,
        "mode_limit": mode_limit,
        "plain": plain,
    }
    print_view(
        options,
        Server(options.data).post("/projects", body, _DEADLINE),
        ProjectView,
        lambda made: tell(
            f"Added {made.name}: {made.source} ({made.kind}). Start with `clew issue new TITLE --project {made.name}`."
        ),
    )


@app.command(name="list")
def list_(*, options: Options = OPTIONS) -> None:
    """List the projects.

    For example:

        clew project list
    """
    said = Server(options.data).get("/projects")
    print_table(options, said, ProjectView, _row, "No projects. Add one with `clew project add`.")


def _row(project: ProjectView) -> dict[str, str]:
    return {
        "name": project.name,
        "kind": project.kind,
        "source": project.source,
        "base": project.base or "",
        "mode limit": project.mode_limit or "",
    }


@app.command
def show(name: ProjectName, /, *, options: Options = OPTIONS) -> None:
    """Show a project.

    For example:

        clew project show web
    """
    print_view(options, Server(options.data).get(f"/projects/{part(name)}"), ProjectView, _show)


@app.command
def edit(
    name: ProjectName,
    /,
    *,
    path: str | None = None,
    base: str | None = None,
    setup: Changed | None = None,
    mode_limit: Annotated[Mode | None, Exact] = None,
    options: Options = OPTIONS,
) -> None:
    """Change a project. Only the given options change. Use --path after moving its directory.

    For example:

        clew project edit web --path ~/src/web

        clew project edit web --setup "npm ci" --setup "npm run build"

        clew project edit web --setup ""

    Parameters
    ----------
    path
        The directory, or the URL.
    base
        The branch that work starts from; an empty value means the repository's current branch.
    setup
        A command to run in every new worktree; may be repeated. Replaces the current ones; an empty value removes them.
    mode_limit
        The highest mode that any agent gets here: read, ask, edit or full.
    """
    change: dict[str, Any] = {
        "source": None if path is None else source(path),
        "base": base,
        "setup": () if setup == ("",) else setup,
        "mode_limit": mode_limit,
    }
    changed = {field: value for field, value in change.items() if value is not None}
    if not changed:
        raise Misused("Nothing to change.", "Give --path, --base, --setup or --mode-limit.")
    print_view(options, Server(options.data).patch(f"/projects/{part(name)}", changed), ProjectView, _show)


@app.command
def remove(name: ProjectName, /, *, options: Options = OPTIONS) -> None:
    """Remove a project that no thread uses. Its directory is not touched.

    For example:

        clew project remove web
    """
    said = Server(options.data).delete(f"/projects/{part(name)}")
    print_view(options, said, ProjectView, lambda gone: tell(f"Removed {gone.name}. {gone.source} is not touched."))


def project_here(server: Server) -> str | None:
    """The project whose directory this is, or that has it below; the innermost of several."""
    here = Path.cwd().resolve()
    found = [
        (len(root.parts), project.name)
        for project in read_all(ProjectView, server.get("/projects"))
        if (root := Path(project.source)).is_absolute() and here.is_relative_to(root.resolve())
    ]
    return max(found)[1] if found else None


def _show(project: ProjectView) -> None:
    facts(
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
