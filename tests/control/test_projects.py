"""Projects: where lanes work; a plain one in its own directory, one that has moved in its new place."""

import asyncio
from pathlib import Path

import pytest

from clew.control.doctor import examine
from clew.control.faults import BadName, BadRequest
from clew.control.issues import open_issue
from clew.control.projects import add_project, change_project, list_projects, look_for_projects, show_project
from clew.control.threads import open_chat, show_thread
from clew.control.wakes import say
from clew.control.workspaces import clean_workspaces, list_workspaces
from clew.kernel import Directory, WaitsFor, WorkspaceKind
from clew.ports.fault import Fault
from clew.ports.workspaces import Listed, ListedState
from clew.protocol.reports import Returned
from clew.protocol.requests import NewChat, NewIssue, NewProject, ProjectChange, Words
from clew.store.engine.database import Database
from clew.store.faults import NameTaken, NoSuchProject
from clew.store.schema.tables import machines
from tests.control.kit import LAPTOP, USER, office


def _repository(at: Path) -> str:
    (at / ".git").mkdir(parents=True)
    return str(at)


def test_a_project_is_looked_at_before_it_is_added(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            source = _repository(tmp_path / "maze")
            added = await add_project(
                at.services, USER, NewProject("maze", source, base="main", setup=("make",), mode_limit="ask")
            )
            assert (added.kind, added.base, added.setup, added.mode_limit, added.machine) == (
                "repository",
                "main",
                ("make",),
                "ask",
                LAPTOP,
            )
            far = await add_project(at.services, USER, NewProject("far", "https://example.org/far.git"))
            assert (far.kind, far.machine) == ("address", None)
            assert await list_projects(at.services, USER) == (far, added)
            with pytest.raises(NameTaken):
                await add_project(at.services, USER, NewProject("maze", source))
            with pytest.raises(Fault, match="no directory"):
                await add_project(at.services, USER, NewProject("none", str(tmp_path / "none")))
            (tmp_path / "plain").mkdir()
            with pytest.raises(Fault, match=r"no git repository.*plain directory"):
                await add_project(at.services, USER, NewProject("plain", str(tmp_path / "plain")))
            with pytest.raises(Fault, match="no branch 'nope'"):
                await add_project(at.services, USER, NewProject("other", source, base="nope"))
            with pytest.raises(Fault, match="no branch 'nope'"):
                await change_project(at.services, USER, "maze", ProjectChange(base="nope"))
            assert (await show_project(at.services, USER, "maze")).base == "main"
            assert (await change_project(at.services, USER, "maze", ProjectChange(base=""))).base is None
            assert (await change_project(at.services, USER, "maze", ProjectChange(setup=()))).setup == ()
            with pytest.raises(BadName):
                await add_project(at.services, USER, NewProject("../maze", source))
            with pytest.raises(BadRequest, match="Unknown permission mode"):
                await add_project(at.services, USER, NewProject("other", source, mode_limit="root"))  # type: ignore[arg-type]
            with pytest.raises(BadRequest, match="setup command"):
                await add_project(at.services, USER, NewProject("other", source, setup=(" ",)))
            with pytest.raises(NoSuchProject, match="Did you mean maze"):
                await show_project(at.services, USER, "mazes")

    asyncio.run(story())


def test_a_plain_directory_is_used_in_place(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            for name in ("one", "two"):
                (tmp_path / name).mkdir()
            await add_project(at.services, USER, NewProject("plain", str(tmp_path / "one"), plain=True))
            with pytest.raises(BadRequest, match="no branches"):
                await change_project(at.services, USER, "plain", ProjectChange(base="main"))
            await open_chat(at.services, USER, NewChat("ada", project="plain"))
            await say(at.services, USER, "chat-1", Words("hello"))
            order = await at.serve("n-1")
            place = order.plan.workspace
            assert place is not None
            assert (place.kind, place.directory.path, place.branch) == (
                WorkspaceKind.DIRECTORY,
                str(tmp_path / "one"),
                None,
            )
            assert (await show_thread(at.services, USER, "chat-1")).lanes[0].directory == str(tmp_path / "one")
            await say(at.services, USER, "chat-1", Words("again"))
            again = await at.serve("n-1")
            assert again.plan.workspace == place
            assert again.plan.outcome == "resume"
            # It has moved: the lane goes along, and never back.
            await change_project(at.services, USER, "plain", ProjectChange(source=str(tmp_path / "two")))
            await say(at.services, USER, "chat-1", Words("and now"))
            moved = await at.serve("n-2")
            assert moved.plan.workspace is not None
            assert moved.plan.workspace.directory.path == str(tmp_path / "two")

    asyncio.run(story())


def test_a_project_that_is_pointed_at_its_new_place_frees_what_waited(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await add_project(at.services, USER, NewProject("maze", _repository(tmp_path / "maze"), setup=("make",)))
            await open_issue(at.services, USER, NewIssue("Mend it", project="maze", assignee="ada"))
            order = await at.claim_one()
            assert order.plan.workspace is not None
            assert order.plan.workspace.kind is WorkspaceKind.WORKTREE
            await at.finish(order, Returned("the project has moved", "workspace:project-moved", WaitsFor.PERSON))
            assert await at.claim() == []
            changed = await change_project(
                at.services, USER, "maze", ProjectChange(source=_repository(tmp_path / "new"))
            )
            assert (changed.source, changed.setup) == (str(tmp_path / "new"), ("make",))
            again = await at.claim_one()
            assert again.project is not None
            # The lane's own worktree stays its place.
            assert (again.project.source, again.plan.workspace) == (str(tmp_path / "new"), order.plan.workspace)

    asyncio.run(story())


@pytest.mark.case("R13")
def test_a_project_whose_directory_is_back_frees_what_waited_once(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            maze, away, there = tmp_path / "maze", tmp_path / "away", set[str]()
            await add_project(at.services, USER, NewProject("maze", _repository(maze)))
            await open_issue(at.services, USER, NewIssue("Mend it", project="maze", assignee="ada"))
            order = await at.claim_one()
            assert await look_for_projects(at.services, USER, LAPTOP, there) == ()
            maze.rename(away)
            await at.finish(order, Returned("the project has moved", "workspace:project-moved", WaitsFor.PERSON))
            assert await look_for_projects(at.services, USER, LAPTOP, there) == ()
            assert await at.claim() == []
            away.rename(maze)
            assert await look_for_projects(at.services, USER, LAPTOP, there) == ("maze",)
            order = await at.claim_one()
            # Held again although the directory is there: to decide once more would change nothing.
            await at.finish(order, Returned("the project has moved", "workspace:project-moved", WaitsFor.PERSON))
            assert await look_for_projects(at.services, USER, LAPTOP, there) == ()
            assert await at.claim() == []
            # A person who asks the doctor has it tried.
            await examine(at.services, USER)
            await at.claim_one()

    asyncio.run(story())


def test_workspaces_are_shown_with_whose_they_are(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await add_project(at.services, USER, NewProject("maze", _repository(tmp_path / "maze")))
            await open_issue(at.services, USER, NewIssue("Mend it", project="maze", assignee="ada"))
            order = await at.claim_one()
            place = order.plan.workspace
            assert place is not None
            assert place.project is not None
            mine = Listed(place.directory, ListedState.READY, place.id, order.lane, place.project, place.branch)
            at.laptop.listed = [mine, Listed(Directory("/srv/odd"), ListedState.UNKNOWN)]
            shown, odd = await list_workspaces(at.services, USER)
            assert (shown.thread, shown.agent, shown.project) == ("issue-1", "ada", "maze")
            assert (odd.thread, odd.agent, odd.project, odd.state) == (None, None, None, "unknown")
            await clean_workspaces(at.services, USER)
            assert at.laptop.cleaned == []
            with pytest.raises(BadRequest, match="/srv/nothing is not a workspace"):
                await clean_workspaces(at.services, USER, [place.directory.path, "/srv/nothing"])
            assert at.laptop.cleaned == []
            await clean_workspaces(at.services, USER, [place.directory.path])
            assert at.laptop.cleaned == [place.id]

    asyncio.run(story())


def test_a_machine_may_have_a_project_before_it_has_an_agent(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await add_project(at.services, USER, NewProject("maze", _repository(tmp_path / "maze")))
            await at.agent()
            found = await at.services.read(lambda connection: connection.execute(machines.select()).all())
            assert {row.id: row.name for row in found}[LAPTOP] == "the laptop"

    asyncio.run(story())
