"""Removing agents and projects loses nothing; an issue gets another title, description or project."""

import asyncio
from pathlib import Path

import pytest

from clew.control.agents import change_agent, list_agents, remove_agent
from clew.control.doctor import examine
from clew.control.faults import BadRequest, NotNow
from clew.control.issues import edit_thread, open_issue
from clew.control.projects import add_project, list_projects, remove_project
from clew.control.threads import close_thread, show_thread
from clew.control.wakes import poke, say
from clew.protocol.requests import AgentChange, NewIssue, NewProject, Poke, ThreadChange, Words
from clew.protocol.views import Rhythm
from clew.store.engine.database import Database
from clew.store.faults import NameTaken, NoSuchProject
from tests.control.kit import USER, Office, office


async def _project(at: Office, root: Path, name: str) -> str:
    (root / name).mkdir()
    await add_project(at.services, USER, NewProject(name, str(root / name), plain=True))
    return str(root / name)


def test_an_agent_with_work_is_not_removed(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            with pytest.raises(NotNow, match="0 running and 1 waiting runs"):
                await remove_agent(at.services, USER, "ada")
            await at.serve("n-1")
            with pytest.raises(NotNow, match=r"open issues: issue-1.*clew issue assign"):
                await remove_agent(at.services, USER, "ada")
            await close_thread(at.services, USER, "issue-1")
            assert (await remove_agent(at.services, USER, "ada")).state == "archived"

    asyncio.run(story())


def test_a_removed_agent_is_not_woken_and_can_be_brought_back(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(heartbeat=Rhythm(every=3600.0))
            await remove_agent(at.services, USER, "ada")
            assert await list_agents(at.services, USER) == ()
            (removed,) = await list_agents(at.services, USER, removed=True)
            assert (removed.name, removed.state, removed.heartbeat) == ("ada", "archived", None)
            assert "agent ada" not in {check.name for check in await examine(at.services, USER)}
            refused = await poke(at.services, USER, Poke("ada", text="hello"))
            assert (refused.state, refused.code) == ("skipped", "refused:agent-archived")
            with pytest.raises(NameTaken, match=r"was removed.*clew agent resume ada"):
                await at.agent()
            with pytest.raises(NotNow, match=r"ada was removed.*clew agent resume ada"):
                await change_agent(at.services, USER, "ada", AgentChange(paused=True))
            offered = len(at.laptop.offered)
            back = await change_agent(at.services, USER, "ada", AgentChange(paused=False))
            assert (back.state, len(at.laptop.offered)) == ("active", offered + 1)
            assert (await poke(at.services, USER, Poke("ada", text="hello"))).state == "pending"

    asyncio.run(story())


def test_only_a_project_that_no_thread_has_is_removed(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await _project(at, tmp_path, "maze")
            await _project(at, tmp_path, "tpyo")
            await open_issue(at.services, USER, NewIssue("Mend it", project="maze"))
            with pytest.raises(NotNow, match="maze is the project of issue-1, and stays"):
                await remove_project(at.services, USER, "maze")
            await remove_project(at.services, USER, "tpyo")
            assert [project.name for project in await list_projects(at.services, USER)] == ["maze"]
            assert (tmp_path / "tpyo").is_dir()
            with pytest.raises(NoSuchProject):
                await remove_project(at.services, USER, "tpyo")

    asyncio.run(story())


def test_an_issue_that_gets_another_project_works_there_next(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            maze, web = await _project(at, tmp_path, "maze"), await _project(at, tmp_path, "web")
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            await at.serve("n-1")
            for project, where in (("maze", maze), ("web", web)):
                page = await edit_thread(at.services, USER, "issue-1", ThreadChange(project=project))
                assert page.thread.project == project
                await say(at.services, USER, "issue-1", Words("go on"))
                order = await at.claim_one()
                assert order.plan.workspace is not None
                assert order.plan.workspace.directory.path == where
                await at.prompt(order, f"n-{project}")
                await at.finish(order)
            with pytest.raises(NotNow, match="maze is the project of issue-1"):
                # The thread has another one now, and its lane worked there.
                await remove_project(at.services, USER, "maze")

    asyncio.run(story())


def test_a_title_is_replaced_and_a_description_added(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", body="It is broken."))
            page = await edit_thread(at.services, USER, "issue-1", ThreadChange("Mend the door", "The door squeaks."))
            assert page.thread.title == "Mend the door"
            texts = [entry.text for entry in (await show_thread(at.services, USER, "issue-1")).entries]
            assert texts == ["It is broken.", "The description is now:\n\nThe door squeaks."]
            assert await at.claim() == []
            with pytest.raises(NoSuchProject):
                await edit_thread(at.services, USER, "issue-1", ThreadChange("Other", project="none"))
            assert (await show_thread(at.services, USER, "issue-1")).thread.title == "Mend the door"
            with pytest.raises(BadRequest, match="own thread"):
                await edit_thread(at.services, USER, "own-ada", ThreadChange("Mine"))

    asyncio.run(story())
