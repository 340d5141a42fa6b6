"""Where a run works: the lane's own worktree, made again when it is gone, and never another place in its stead."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import WakeReason
from clew.store.tables import agents, projects
from clew.wire.machine import AgentProgram
from tests.daemon.kit import QUICK, World, run, until, world
from tests.workspaces.kit import git, repository

COLD = replace(QUICK, warm=0)


@pytest.fixture(autouse=True)
def nobodys_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(tmp_path))


def guide(place: Path) -> AgentProgram:
    return AgentProgram("guide", home={"GUIDE_HOME": str(place / "guide")})


async def with_project(there: World, program: AgentProgram, **settings: object) -> Path:
    await there.add_agent("ada", program)
    source = repository(there.place / "project")
    there.add_project("maze", source, **settings)
    there.add_thread("issue-1", "issue", title="Find the way out", number=1, project_id="maze")
    return source


@pytest.mark.case("C02", "C28", "D05", "D09")
def test_the_guide_works_in_its_worktree_and_goes_on_there_after_everything_was_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await with_project(there, guide(there.place))
            first = await there.tell(
                "RUN: pwd; echo one > left.txt; git add left.txt; git commit -qm one", thread="issue-1"
            )
            assert first.state == "succeeded", first.words
            (session,) = there.sessions()
            worktree = Path(session.directory)
            assert worktree.is_relative_to(there.place / "workspaces" / "maze")
            await there.restart()
            shutil.rmtree(worktree)
            second = await there.tell("RUN: pwd; ls", thread="issue-1")
            assert (second.state, second.claim) == ("succeeded", "resumed"), second.words
            reply = there.said("issue-1")[-1][1]
            assert str(worktree) in reply
            assert "a.txt" in reply
            assert "SAW users=2" in reply

    run(scene())


@pytest.mark.case("D01")
def test_a_timer_works_in_the_lanes_worktree(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await with_project(there, AgentProgram("loom"))
            await there.tell("begin", thread="issue-1")
            await there.served(there.wake("ada", "issue-1", reason=WakeReason.TIMER))
            first, second = there.loom.opened
            assert first.directory == second.directory
            assert "/workspaces/maze/" in second.directory.path

    run(scene())


@pytest.mark.case("D03", "D13")
def test_a_project_that_is_gone_holds_with_the_reason(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            source = await with_project(there, AgentProgram("loom"))
            source.rename(there.place / "moved")
            said = there.say("begin", thread="issue-1")
            await until(lambda: there.runs()[0].hold == "person", "it waits for a person")
            assert there.loom.opened == []
            assert str(source) in there.runs()[0].words
            there.put(projects, {"id": "maze"}, source=str(there.place / "moved"))
            await there.tell("now?", thread="issue-1")
            assert there.wake_row(said).state == "served"

    run(scene())


@pytest.mark.case("D03")
def test_a_setup_that_fails_holds_with_its_last_words(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await with_project(there, AgentProgram("loom"), setup=["echo no compiler; exit 3"])
            there.say("begin", thread="issue-1")
            await until(lambda: there.runs()[0].hold == "person", "it waits for a person")
            assert "no compiler" in there.runs()[0].words
            assert ("step", {"what": "setup", "words": "no compiler"}) in there.log(there.runs()[0].id)
            assert there.loom.opened == []

    run(scene())


@pytest.mark.case("D08")
def test_a_worktree_on_another_branch_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await with_project(there, AgentProgram("loom"))
            await there.tell("begin", thread="issue-1")
            git(Path(there.loom.opened[0].directory.path), "checkout", "-q", "-b", "astray")
            there.say("go on", thread="issue-1")
            await until(lambda: there.runs()[1].hold_code == "workspace:other-branch", "it is refused")
            assert len(there.loom.opened) == 1

    run(scene())


def test_a_workspace_that_is_made_too_slowly_is_tried_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, replace(COLD, workspace=0.5)) as there:
            await with_project(there, AgentProgram("loom"), setup=["sleep 60"])
            there.say("begin", thread="issue-1")
            await until(lambda: there.runs()[0].state == "failed", "it is given up for now")
            assert "more than 0.5 s" in there.runs()[0].words
            left = subprocess.run(["pgrep", "-f", f"{there.place}/workspaces"], capture_output=True, check=False)
            assert left.stdout == b""

    run(scene())


def test_settings_that_cannot_be_read_wait_for_a_person(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await with_project(there, AgentProgram("loom"))
            there.put(agents, {"id": "ada"}, settings="{")
            there.say("begin", thread="issue-1")
            await until(lambda: there.runs()[0].hold == "person", "it waits for a person")
            assert there.runs()[0].hold_code == "daemon:settings-unreadable"

    run(scene())
