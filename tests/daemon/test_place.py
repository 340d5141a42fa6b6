"""Where a run works: the lane's own worktree, made again when it is gone, and never another place in its stead."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.daemon.reports import Reports
from clew.kernel import LaneId, WaitsFor, WakeReason
from clew.ports.events import Event
from clew.programs.faults import Refused
from clew.protocol.machine import AgentProgram
from clew.protocol.reports import Reported
from clew.store.operations import claim_sql
from clew.store.operations.workspaces import keep_remade
from clew.store.schema.tables import agents, decisions, projects
from tests.daemon.kit import QUICK, World, run, until, world
from tests.daemon.scripted import Session, plain
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
            assert "Prompts that I remember: 2" in reply

    run(scene())


@pytest.mark.case("D16")
def test_an_agent_is_told_that_its_directory_was_made_again_and_what_was_lost(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await with_project(there, AgentProgram("loom"))
            first = await there.tell("begin", thread="issue-1")
            worktree = Path(there.loom.opened[0].directory.path)
            assert "made again" not in there.loom.prompts[-1]
            assert len(there.outcomes(first.id)) == 1
            (worktree / "window").touch()
            git(worktree, "add", "window")
            shutil.rmtree(worktree)
            second = await there.tell("go on", thread="issue-1")
            assert (second.state, second.claim) == ("succeeded", "resumed"), second.words
            tip = git(worktree, "rev-parse", "--short", "HEAD")
            words = (
                f"{worktree} was gone and was made again from branch {git(worktree, 'branch', '--show-current')}, "
                f"at commit {tip} (first). Whatever was not committed there is lost. "
                "Staged there and never committed: window."
            )
            assert words in there.loom.prompts[-1]
            assert ("step", {"what": "notice", "words": words}) in there.log(second.id)
            # The server has it with the plan that was settled, and the agent is told once.
            settled = [json.loads(row.record)["plan"] for row in there.rows(decisions, "step", run_id=second.id)]
            assert [plan["notices"] for plan in settled[1:]] == [[["agent", "notice:workspace-remade", words]]] * 2
            await there.tell("and on", thread="issue-1")
            assert "made again" not in there.loom.prompts[-1]

    run(scene())


@pytest.mark.case("D16")
def test_what_was_made_again_for_a_run_that_told_nothing_is_told_in_the_next(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await with_project(there, AgentProgram("loom"))
            await there.tell("begin", thread="issue-1")
            worktree = Path(there.loom.opened[0].directory.path)
            shutil.rmtree(worktree)

            async def refuse(_: object) -> None:
                there.loom.before_open = None
                raise Refused("not now", "Try again.")

            there.loom.before_open = refuse
            there.say("go on", thread="issue-1")
            await until(lambda: there.runs()[1].hold == "person", "it waits for a person")
            held = there.runs()[1]
            (kept,) = {
                json.loads(row.record)["situation"]["place"]["remade"]
                for row in there.rows(decisions, "step", run_id=held.id)
                if row.step == 1
            }
            lane = LaneId(held.lane_id)
            there.write(lambda connection: keep_remade(connection, lane, kept))
            await there.tell("and now?", thread="issue-1")
            assert there.loom.prompts[-1].count(kept) == 1

    run(scene())


@pytest.mark.case("D16")
def test_what_the_server_did_not_hear_of_is_said_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await with_project(there, AgentProgram("loom"))
            await there.tell("begin", thread="issue-1")
            worktree = Path(there.loom.opened[0].directory.path)
            shutil.rmtree(worktree)
            with monkeypatch.context() as patch:
                ask = Reports.ask

                async def deaf(self: Reports, **said: Any) -> Reported:
                    if any(plan.situation.place.remade for plan in said.get("settled", ())):
                        patch.undo()
                        raise Refused("nobody hears it", "Try again.")
                    return await ask(self, **said)

                patch.setattr(Reports, "ask", deaf)
                there.say("go on", thread="issue-1")
                await until(lambda: there.runs()[1].hold == "person", "it waits for a person")
            await there.tell("and now?", thread="issue-1")
            assert there.loom.prompts[-1].count(f"{worktree} was gone and was made again") == 1

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


@pytest.mark.case("C18")
def test_a_project_behind_a_link_is_resolved_and_no_other_place_with_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await there.add_agent("ada", AgentProgram("loom"))
            real, link = there.place / "real", there.place / "link"
            real.mkdir()
            link.symlink_to(real)
            there.add_project("maze", link, kind="plain")
            there.add_thread("issue-1", "issue", title="Find the way out", number=1, project_id="maze")
            first = await there.tell("begin", thread="issue-1")
            assert first.state == "succeeded", first.words
            ordered, resolved = (_place_facts(row) for row in there.rows(decisions, "step", run_id=first.id))
            assert ordered["prepared"]["directory"]["place"] == str(link)
            known = {"path": str(link), "real": str(real), "place": str(real)}
            assert resolved == {**ordered, "prepared": {**ordered["prepared"], "directory": known}}

    run(scene())


def _place_facts(decision: Any) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(decision.record)["situation"]["place"]
    return facts


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


@pytest.mark.case("R13")
def test_who_waits_for_a_directory_is_told_who_has_it_and_goes_on_when_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a call it would wait for days.
    monkeypatch.setattr(claim_sql, "HELD_FOR", dict.fromkeys(WaitsFor, 1e6))

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await there.add_agent("ada", max_live=2)
            papers = there.place / "papers"
            papers.mkdir()
            there.add_project("papers", papers, kind="plain")
            for number in (1, 2):
                there.add_thread(f"issue-{number}", "issue", number=number, project_id="papers")
            gate = asyncio.Event()

            async def slow(session: Session, prompt: str) -> AsyncIterator[Event]:
                await gate.wait()
                async for event in plain(session, prompt):
                    yield event

            there.loom.turns.append(slow)
            first = there.say("one", thread="issue-1")
            await until(lambda: there.runs()[0].state == "running", "the first works")
            second = there.say("two", thread="issue-2")
            await until(lambda: there.waits().code == "workspace:in-use", "the second waits")
            assert f"{papers} is in use: ada in issue-1 works there since" in (there.waits().words or "")
            gate.set()
            assert (await there.served(first)).state == "succeeded"
            assert (await there.served(second)).state == "succeeded"

    run(scene())
